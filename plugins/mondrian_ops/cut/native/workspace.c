/* Working memory of the cutting. */
#include <assert.h>
#include <string.h>

#include "cutting.h"

static int64_t least_of(int64_t one, int64_t other) { return one < other ? one : other; }

/* Passes a pointer on; clears *complete if it is NULL. */
static void *noted(void *found, int *complete) {
  if (!found) *complete = 0;
  return found;
}

/* Allocates working memory for nodes of at most so many rows, and codes per attribute.
 * close_workspace frees it, whatever this returns. */
int open_workspace(workspace *work, const layout *of, int64_t codes, int64_t rows,
                   const mo_criteria *criteria, const mo_policy *policy) {
  int64_t candidates = policy->candidates > 0 ? policy->candidates : 1;
  int64_t sensitive = 1, nodes = 1, near = 0, attributes = of->attributes, stride = of->stride;
  for (int64_t j = 0; j < criteria->count; j++) {
    int64_t tree = criteria->parent_first[j + 1] - criteria->parent_first[j];
    sensitive = criteria->codes[j] > sensitive ? criteria->codes[j] : sensitive;
    nodes = tree > nodes ? tree : nodes;
    if (criteria->kind[j] == MO_NEAR && criteria->codes[j] > near) near = criteria->codes[j];
  }
  int64_t rollout = least_of(rows, policy->rollout_rows);
  int64_t most = codes;
  for (int64_t c = 0; c < attributes + of->sensitive; c++)
    most = of->column[c].codes > most ? of->column[c].codes : most;
  int complete = 1;
  memset(work, 0, sizeof *work);
  work->layout = of;
  work->criteria = criteria;
  work->policy = *policy;
  work->codes = codes;
  work->most_codes = most;
#define ALLOCATE(name, count) work->name = noted(zeros(count, sizeof *work->name), &complete)
#define ALLOCATE_ROWS(name, bytes) work->name = noted(malloc((size_t)(bytes) + 1), &complete)
  ALLOCATE(histogram, codes);
  ALLOCATE(bits, most / 64 + 1);
  ALLOCATE(with, most);
  ALLOCATE(counts, of->narrow * WORD_BITS);
  ALLOCATE(value, codes);
  ALLOCATE(below, codes);
  ALLOCATE(right, codes);
  ALLOCATE(valid, codes);
  ALLOCATE_ROWS(others, (rows + 1) * stride);
  ALLOCATE_ROWS(order, rows * (int64_t)sizeof *work->order);
  ALLOCATE(score, attributes);
  ALLOCATE(best, attributes);
  ALLOCATE(distinct, attributes);
  ALLOCATE(checked, attributes);
  ALLOCATE(tried, 2 * candidates * attributes);
  ALLOCATE_ROWS(before, rollout * stride);
  ALLOCATE(masks, attributes + of->sensitive);
  ALLOCATE(stack, MAX_WAITING);
  ALLOCATE(reaches, attributes);
  ALLOCATE(widening, (attributes + 1) * least_of(rows, policy->group_rows));
  ALLOCATE(taken, least_of(rows, policy->group_rows));
  ALLOCATE(left_counts, sensitive);
  ALLOCATE(right_counts, sensitive);
  ALLOCATE(left_seen, sensitive);
  ALLOCATE(right_seen, sensitive);
  ALLOCATE(surplus, nodes);
  ALLOCATE(deficit, nodes);
#undef ALLOCATE
#undef ALLOCATE_ROWS
  near = least_of(near, rows);
  if (allocate_code_list(&work->list, near) != MO_DONE) complete = 0;
  if (open_stretches(&work->near, near) != MO_DONE) complete = 0;
  return complete ? MO_DONE : MO_NO_MEMORY;
}

#ifndef NDEBUG
static int is_zero(const void *memory, size_t bytes) {
  const unsigned char *at = memory;
  for (size_t i = 0; memory && i < bytes; i++)
    if (at[i]) return 0;
  return 1;
}

/* Whether what is zero between uses is: whoever was stopped may have left something. */
static int is_clean(const workspace *work) {
  size_t codes = (size_t)work->codes, most = (size_t)work->most_codes;
  size_t narrow = work->layout ? (size_t)work->layout->narrow * WORD_BITS : 0;
  return stopped() || (is_zero(work->histogram, codes * sizeof *work->histogram) &&
                       is_zero(work->bits, (most / 64 + 1) * sizeof *work->bits) &&
                       is_zero(work->with, most * sizeof *work->with) &&
                       is_zero(work->counts, narrow * sizeof *work->counts));
}
#endif

void close_workspace(workspace *work) {
  assert(is_clean(work));
  void *const owned[] = {
      work->histogram, work->bits,        work->with,         work->counts,    work->value,
      work->below,     work->right,       work->valid,        work->others,    work->order,
      work->score,     work->best,        work->distinct,     work->checked,   work->tried,
      work->before,    work->stack,       work->widening,     work->reaches,   work->taken,
      work->masks,     work->left_counts, work->right_counts, work->left_seen, work->right_seen,
      work->surplus,   work->deficit,
  };
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
  free_code_list(&work->list);
  close_stretches(&work->near);
  memset(work, 0, sizeof *work);
}

/* A digest of the sources; native/library.py compares it with that of the files beside it. */
MO_API extern const char mo_sources[];
const char mo_sources[] = MO_SOURCES;
