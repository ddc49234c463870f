/* Privacy criteria on the two sides of a cut. */
#include "splitting.h"

/* Whether both sides of a cut have need distinct sensitive codes, not counting those below first;
 * stops as soon as they have. */
static int both_diverse(node here, cut tried, int64_t column, int64_t first, double need,
                        workspace *work) {
  const layout *of = work->layout;
  field side = of->column[tried.attribute], value = sensitive_field(of, column);
  uint64_t span = (uint64_t)(tried.high - tried.low);
  int64_t stamp = ++work->clock, left = 0, right = 0;
  for (int64_t i = 0; i < here.count; i++) {
    const unsigned char *record = here.rows + i * of->stride;
    int64_t s = code_of(record, value);
    if (s < first) continue;
    if ((uint64_t)(code_of(record, side) - tried.low) <= span) {
      left += work->left_seen[s] != stamp;
      work->left_seen[s] = stamp;
    } else {
      right += work->right_seen[s] != stamp;
      work->right_seen[s] = stamp;
    }
    if ((double)left >= need && (double)right >= need) return 1;
  }
  return 0;
}

static int sides_satisfy(node here, cut tried, int64_t j, workspace *work) {
  const layout *of = work->layout;
  const mo_criteria *criteria = work->criteria;
  field side = of->column[tried.attribute], value = sensitive_field(of, criteria->column[j]);
  uint64_t span = (uint64_t)(tried.high - tried.low);
  size_t bytes = (size_t)criteria->codes[j] * sizeof *work->left_counts;
  int64_t below = 0;
  memset(work->left_counts, 0, bytes);
  memset(work->right_counts, 0, bytes);
  for (int64_t i = 0; i < here.count; i++) {
    const unsigned char *record = here.rows + i * of->stride;
    int goes_left = (uint64_t)(code_of(record, side) - tried.low) <= span;
    (goes_left ? work->left_counts : work->right_counts)[code_of(record, value)]++;
    below += goes_left;
  }
  return satisfies(work->left_counts, below, 0, criteria, j, work->surplus, work->deficit) &&
         satisfies(work->right_counts, here.count - below, 0, criteria, j, work->surplus,
                   work->deficit);
}

/* Zeroes counts (codes,) before the values of a node are counted for criterion j.
 *
 * Distinct and near values are counted by reading the counts of the node's own values and of the
 * missing one only. Where there are many codes, such as persons, only those are zeroed. */
static void forget(int64_t *counts, node here, int64_t j, workspace *work) {
  const layout *of = work->layout;
  const mo_criteria *criteria = work->criteria;
  int of_own_values = criteria->kind[j] == MO_DISTINCT || criteria->kind[j] == MO_NEAR;
  if (!of_own_values || criteria->codes[j] <= here.count) {
    memset(counts, 0, (size_t)criteria->codes[j] * sizeof *counts);
    return;
  }
  field value = sensitive_field(of, criteria->column[j]);
  counts[0] = 0;
  for (int64_t i = 0; i < here.count; i++) counts[code_of(here.rows + i * of->stride, value)] = 0;
}

/* Whether the rows on one side of a cut satisfy criterion j, an MO_NEAR. */
static int side_is_spread(node here, cut tried, int is_left, int64_t j, workspace *work) {
  const layout *of = work->layout;
  const mo_criteria *criteria = work->criteria;
  field side = of->column[tried.attribute], value = sensitive_field(of, criteria->column[j]);
  uint64_t span = (uint64_t)(tried.high - tried.low);
  int64_t *counts = work->left_counts, distinct = 0, total = 0;
  forget(counts, here, j, work);
  for (int64_t i = 0; i < here.count; i++) {
    const unsigned char *record = here.rows + i * of->stride;
    if (((uint64_t)(code_of(record, side) - tried.low) <= span) != is_left) continue;
    int64_t s = code_of(record, value);
    if (counts[s]++ == 0) work->list.listed[distinct++] = (int32_t)s;
    total++;
  }
  return spread_satisfies(counts, total, distinct, criteria, j, &work->list);
}

/* Whether both sides of a cut satisfy every criterion on sensitive columns. */
int cut_satisfies(node here, cut tried, workspace *work) {
  const mo_criteria *criteria = work->criteria;
  if (here.members) {
    uint64_t left = here.members & members_between(tried.attribute, tried.low, tried.high, work);
    return members_satisfy(left, work) && members_satisfy(here.members & ~left, work);
  }
  for (int64_t j = 0; j < criteria->count; j++) {
    int holds;
    if (criteria->kind[j] == MO_DISTINCT)
      holds = both_diverse(here, tried, criteria->column[j], criteria->uncounted[j],
                           criteria->level[j], work);
    else if (criteria->kind[j] == MO_NEAR)
      holds = side_is_spread(here, tried, 1, j, work) && side_is_spread(here, tried, 0, j, work);
    else holds = sides_satisfy(here, tried, j, work);
    if (!holds) return 0;
  }
  return 1;
}

/* Counts the sensitive values of a node into work->left_counts, and lists the distinct ones;
 * returns their number. */
static int64_t list_codes(node here, int64_t j, workspace *work) {
  field value = sensitive_field(work->layout, work->criteria->column[j]);
  int64_t *counts = work->left_counts, distinct = 0;
  forget(counts, here, j, work);
  for (int64_t i = 0; i < here.count; i++) {
    int64_t s = code_of(here.rows + i * work->layout->stride, value);
    if (counts[s]++ == 0) work->list.listed[distinct++] = (int32_t)s;
  }
  return distinct;
}

static int node_satisfies(node here, int64_t j, workspace *work) {
  const layout *of = work->layout;
  field value = sensitive_field(of, work->criteria->column[j]);
  int64_t *counts = work->left_counts, distinct = 0;
  if (work->criteria->kind[j] == MO_NEAR) {
    distinct = list_codes(here, j, work);
    return spread_satisfies(counts, here.count, distinct, work->criteria, j, &work->list);
  }
  forget(counts, here, j, work);
  for (int64_t i = 0; i < here.count; i++)
    distinct += counts[code_of(here.rows + i * of->stride, value)]++ == 0;
  return satisfies(counts, here.count, distinct, work->criteria, j, work->surplus, work->deficit);
}

/* Whether the first middle rows of a node satisfy every criterion, and the others do, too. */
int halves_satisfy(node here, int64_t middle, workspace *work) {
  node left = {.rows = here.rows, .count = middle};
  node right = {.rows = here.rows + middle * work->layout->stride, .count = here.count - middle};
  for (int64_t j = 0; j < work->criteria->count; j++)
    if (!node_satisfies(left, j, work) || !node_satisfies(right, j, work)) return 0;
  return 1;
}

/* Sorts the places of a node's rows by attribute a, which was just tallied, into work->order.
 *
 * A counting sort: the histogram holds where the next row of each code goes. */
void order_rows(node here, int32_t a, int64_t d, workspace *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  for (int64_t j = 0; j < d; j++) work->histogram[work->value[j]] = j > 0 ? work->below[j - 1] : 0;
  for (int64_t i = 0; i < here.count; i++)
    work->order[work->histogram[code_of(here.rows + i * of->stride, at)]++] = (uint32_t)i;
  for (int64_t j = 0; j < d; j++) work->histogram[work->value[j]] = 0;
}

/* Checks one criterion for all cuts in one sweep over the rows in the attribute's order: each
 * row's sensitive value moves from the right side to the left. */
static void mark_by(node here, int64_t d, int64_t c, workspace *work) {
  const layout *of = work->layout;
  const mo_criteria *criteria = work->criteria;
  field value = sensitive_field(of, criteria->column[c]);
  int64_t *left = work->left_counts, *right = work->right_counts, on_left = 0, on_right = 0;
  forget(left, here, c, work);
  forget(right, here, c, work);
  for (int64_t i = 0; i < here.count; i++)
    on_right += right[code_of(here.rows + i * of->stride, value)]++ == 0;
  for (int64_t j = 0, i = 0; j + 1 < d; j++) {
    int64_t below = work->below[j];
    for (; i < below; i++) {
      int64_t s = code_of(here.rows + (int64_t)work->order[i] * of->stride, value);
      on_left += left[s]++ == 0;
      on_right -= --right[s] == 0;
    }
    if (work->valid[j])
      work->valid[j] =
          satisfies(left, below, on_left, criteria, c, work->surplus, work->deficit) &&
          satisfies(right, here.count - below, on_right, criteria, c, work->surplus, work->deficit);
  }
}

/* mark_by of an MO_NEAR: the fullest stretch of each side is known while rows move. */
static void mark_spread(node here, int64_t d, int64_t c, workspace *work) {
  const layout *of = work->layout;
  const mo_criteria *criteria = work->criteria;
  field value = sensitive_field(of, criteria->column[c]);
  int64_t *place = work->right_counts, first = criteria->uncounted[c], counted[2] = {0, 0};
  int64_t distinct = list_codes(here, c, work);
  sort_codes(&work->list, distinct);
  const int32_t *listed = work->list.listed;
  clear_stretches(&work->near, listed, distinct, criteria->near_end + criteria->near_first[c]);
  for (int64_t i = 0; i < distinct; i++) {
    place[listed[i]] = i;
    if (listed[i] < first) continue;
    counted[1] += work->left_counts[listed[i]];
    add_to_stretches(&work->near, 1, i, (int32_t)work->left_counts[listed[i]]);
  }
  for (int64_t j = 0, i = 0; j + 1 < d; j++) {
    for (; i < work->below[j]; i++) {
      int64_t s = code_of(here.rows + (int64_t)work->order[i] * of->stride, value);
      if (s < first) continue;
      counted[0]++;
      counted[1]--;
      add_to_stretches(&work->near, 0, place[s], 1);
      add_to_stretches(&work->near, 1, place[s], -1);
    }
    for (int side = 0; side < 2 && work->valid[j]; side++)
      work->valid[j] =
          (uint8_t)is_spread(work->near.most[side][1], counted[side], criteria->level[c]);
  }
}

/* Writes to work->valid[j] whether the cut above the j-th of d distinct codes, which were just
 * tallied, leaves k rows and satisfies every criterion on both sides. */
void mark_valid(node here, int32_t a, int64_t d, workspace *work) {
  int64_t k = work->criteria->k;
  for (int64_t j = 0; j + 1 < d; j++)
    work->valid[j] = work->below[j] >= k && here.count - work->below[j] >= k;
  if (here.members) {
    for (int64_t j = 0; j + 1 < d; j++)
      work->valid[j] = work->valid[j] && cut_satisfies(here, (cut){a, 0, work->value[j]}, work);
    return;
  }
  order_rows(here, a, d, work);
  for (int64_t c = 0; c < work->criteria->count; c++)
    (work->criteria->kind[c] == MO_NEAR ? mark_spread : mark_by)(here, d, c, work);
}
