/* Working memory of the cutting. */
#include <assert.h>
#include <string.h>

#include "cutting.h"

static int64_t least_of(int64_t one, int64_t other) { return one < other ? one : other; }

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(from, bytes) ((void)(from), (void)(bytes))
#endif

enum { LINE = 64 }; /* bytes between two arrays, and what the first one begins at a multiple of */

/* One piece of memory from which arrays are taken; without memory it only counts. */
typedef struct {
  unsigned char *memory;
  size_t used;
} arena;

/* The next array; between two of them AddressSanitizer allows no access. */
static void *take(arena *from, int64_t length, size_t bytes) {
  size_t size = (size_t)(length > 0 ? length : 1) * bytes, begin = from->used;
  from->used += (size + LINE - 1) / LINE * LINE + LINE;
  if (!from->memory) return NULL;
  ASAN_POISON_MEMORY_REGION(from->memory + begin + size, from->used - begin - size);
  return from->memory + begin;
}

/* Takes the arrays of a workspace of so many rows from an arena. */
static void take_arrays(workspace *work, int64_t rows, int64_t sensitive, int64_t asked,
                        arena *from) {
  const layout *of = work->layout;
  const mo_policy *policy = &work->policy;
  int64_t codes = work->codes, most = work->most_codes, attributes = of->attributes;
  int64_t stride = of->stride, candidates = policy->candidates > 0 ? policy->candidates : 1;
  int64_t group_rows = least_of(rows, policy->group_rows);
#define TAKE(name, count) work->name = take(from, count, sizeof *work->name)
  TAKE(histogram, codes);
  TAKE(bits, most / 64 + 1);
  TAKE(with, most);
  TAKE(counts, of->narrow * WORD_BITS);
  TAKE(value, codes);
  TAKE(below, codes);
  TAKE(right, codes);
  TAKE(valid, codes);
  TAKE(score, attributes);
  TAKE(best, attributes);
  TAKE(distinct, attributes);
  TAKE(known, attributes);
  TAKE(lacks, attributes);
  TAKE(present, of->narrow);
  TAKE(tried, 2 * candidates * attributes);
  TAKE(masks, attributes + of->sensitive);
  TAKE(stack, MAX_WAITING);
  TAKE(reaches, attributes);
  TAKE(widening, (attributes + 1) * group_rows);
  TAKE(by_code, group_rows > 0 ? of->few * FEW : 0);
  TAKE(taken, group_rows);
  TAKE(asked_counts, 2 * (work->asked_cuts + 1) * asked);
  TAKE(left_seen, sensitive);
  TAKE(right_seen, sensitive);
  TAKE(others, (rows + 1) * stride);
  TAKE(order, rows);
  TAKE(before, least_of(rows, policy->rollout_rows) * stride);
#undef TAKE
}

/* Allocates working memory for nodes of at most so many rows, and codes per attribute.
 * close_workspace frees it, whatever this returns. */
int open_workspace(workspace *work, const layout *of, int64_t codes, int64_t rows,
                   const mo_criteria *criteria, const mo_policy *policy) {
  int64_t near = 0, asked = 0, most = codes;
  for (int64_t j = 0; j < criteria->count; j++) {
    if (criteria->kind[j] == MO_NEAR && criteria->codes[j] > near) near = criteria->codes[j];
    if (criteria->kind[j] == MO_ASKED && criteria->codes[j] > asked) asked = criteria->codes[j];
  }
  for (int64_t c = 0; c < of->attributes + of->sensitive; c++)
    most = of->column[c].codes > most ? of->column[c].codes : most;
  memset(work, 0, sizeof *work);
  work->layout = of;
  work->criteria = criteria;
  work->policy = *policy;
  work->codes = codes;
  work->most_codes = most;
  work->asked_cuts = least_of(ASKED_CUTS, ASKED_COUNTS / (2 * (asked > 0 ? asked : 1)));
  if (work->asked_cuts < 1) work->asked_cuts = 1;
  int left = allocate_tally(&work->left_tally, criteria, rows);
  int right = allocate_tally(&work->right_tally, criteria, rows);
  int spread = open_stretches(&work->near, least_of(near, rows));
  arena from = {0};
  take_arrays(work, rows, work->left_tally.codes, asked, &from);
  from = (arena){.memory = zeros(1, from.used)};
  if (!from.memory) return MO_NO_MEMORY;
  work->memory = from.memory;
  take_arrays(work, rows, work->left_tally.codes, asked, &from);
  return left == MO_DONE && right == MO_DONE && spread == MO_DONE ? MO_DONE : MO_NO_MEMORY;
}

#ifndef NDEBUG
static int is_zero(const void *memory, size_t bytes) {
  const unsigned char *at = memory;
  for (size_t i = 0; memory && i < bytes; i++)
    if (at[i]) return 0;
  return 1;
}

static int is_empty(const mo_tally *tally) {
  return tally->total == 0 && tally->distinct == 0 &&
         is_zero(tally->counts, (size_t)tally->codes * sizeof *tally->counts);
}

/* Whether what is zero between uses is: whoever was stopped may have left something. */
static int is_clean(const workspace *work) {
  size_t codes = (size_t)work->codes, most = (size_t)work->most_codes;
  size_t narrow = work->layout ? (size_t)work->layout->narrow * WORD_BITS : 0;
  return stopped() || (is_zero(work->histogram, codes * sizeof *work->histogram) &&
                       is_zero(work->bits, (most / 64 + 1) * sizeof *work->bits) &&
                       is_zero(work->with, most * sizeof *work->with) &&
                       is_zero(work->counts, narrow * sizeof *work->counts) &&
                       is_empty(&work->left_tally) && is_empty(&work->right_tally));
}
#endif

void close_workspace(workspace *work) {
  assert(is_clean(work));
  free(work->memory);
  free_tally(&work->left_tally);
  free_tally(&work->right_tally);
  close_stretches(&work->near);
  memset(work, 0, sizeof *work);
}

/* A digest of the sources; native/library.py compares it with that of the files beside it. */
MO_API extern const char mo_sources[];
const char mo_sources[] = MO_SOURCES;
