/* The best cut of a node by itself: by medians, or by the fall of loss. */
#include "splitting.h"

ALWAYS_INLINE int64_t part_by(node here, int32_t offset, int bytes, size_t stride, cut by,
                              unsigned char *others) {
  uint64_t span =
      (uint64_t)(by.high - by.low); /* one comparison: what lies below low wraps around */
  size_t left = 0; /* of the i rows before */
  for (size_t i = 0; i < (size_t)here.count; i++) {
    const unsigned char *row = here.rows + i * stride;
    size_t goes_left = (uint64_t)(read_code(row, offset, bytes) - by.low) <= span;
    memcpy(others + (i - left) * stride, row, stride);
    memmove(here.rows + left * stride, row, stride);
    left += goes_left;
  }
  memcpy(here.rows + left * stride, others, ((size_t)here.count - left) * stride);
  return (int64_t)left;
}

ALWAYS_INLINE int64_t part_wide(node here, field at, size_t stride, cut by, unsigned char *others) {
  if (at.bytes == 1) return part_by(here, at.offset, 1, stride, by, others);
  if (at.bytes == 2) return part_by(here, at.offset, 2, stride, by, others);
  return part_by(here, at.offset, 4, stride, by, others);
}

/* Bring the rows that a cut parts to the front; returns how many they are.
 *
 * Stable, and without a branch that the processor could mispredict. */
int64_t part_rows(node here, cut by, cutter *work) {
  field at = work->layout->column[by.attribute];
  size_t stride = (size_t)work->layout->stride;
  if (stride == 16) return part_wide(here, at, 16, by, work->others);
  if (stride == 24) return part_wide(here, at, 24, by, work->others);
  if (stride == 32) return part_wide(here, at, 32, by, work->others);
  return part_wide(here, at, stride, by, work->others);
}

/* The rows that a cut parts, and the others. */
void part(node here, cut by, node *left, node *right, cutter *work) {
  *left = *right = here;
  if (here.members) {
    left->members = here.members & members_between(by.attribute, by.low, by.high, work);
    right->members = here.members & ~left->members;
    left->count = __builtin_popcountll(left->members);
  } else {
    left->count = part_rows(here, by, work);
    right->rows += left->count * work->layout->stride;
  }
  right->count = here.count - left->count;
}

/* Rank of a cut: its fall of loss; MO_WIDEST_GAIN adds the loss of the attribute. */
static double score_of(double fall, int64_t n, double whole, int64_t greedy) {
  return greedy == MO_WIDEST_GAIN ? fall / (double)n + whole : fall;
}

static int by_gain(int64_t greedy) { return greedy == MO_GAIN || greedy == MO_WIDEST_GAIN; }

/* The best cut that keeps k of attribute a, tallied before, into work->best and its score; returns
 * the attribute's loss per row. */
static double offer(int32_t a, int64_t d, int64_t n, int64_t greedy, int groups, cutter *work) {
  const layout *of = work->layout;
  int64_t k = work->criteria->k, low = 0, j;
  double whole, fall;
  if (by_gain(greedy)) {
    j = gain_cut(a, d, n, k, NULL, &fall, &whole, work);
    if (groups && of->kind[a] != MO_INTERVAL) {
      int64_t first, last;
      double more = gain_group(a, d, k, n - k, whole, &first, &last, work);
      if (first >= 0 && more > fall) {
        low = work->value[first];
        j = last;
        fall = more;
      }
    }
    work->score[a] = score_of(fall, n, whole, greedy);
  } else {
    j = median_cut(d, n, k, work->below, NULL);
    whole = width(of, a, work->value[0], work->value[d - 1], d);
    /* Seed, equation 1. */
    work->score[a] = of->kind[a] == MO_INTERVAL ? whole : (double)d / of->present[a];
  }
  if (j >= 0) work->best[a] = (cut){a, low, work->value[j]};
  return whole;
}

/* Fill work->best, score, distinct: of each attribute the best cut that keeps k, among ordered cuts
 * and, if groups, those of a group amid the others.
 *
 * Returns the loss per row of the node; *missing: the first attribute whose missing values can be
 * parted from the present ones, -1 without one. */
double examine(node here, int64_t greedy, int groups, int32_t *missing, cutter *work) {
  const layout *of = work->layout;
  int64_t n = here.count, k = work->criteria->k;
  double loss = 0.0;
  *missing = -1;
  if (!here.members) count_few(here, work);
  for (int32_t a = 0; a < of->attributes; a++) {
    int counted = !here.members && of->column[a].codes <= FEW;
    int64_t d = counted ? tally_counted(of->column[a], work) : tally(here, a, work);
    work->best[a].attribute = -1;
    work->distinct[a] = d;
    if (d < 2) {
      loss += width(of, a, work->value[0], work->value[0], 1);
      continue;
    }
    int64_t first = work->below[0];
    if (work->value[0] == 0 && *missing < 0 && first >= k && n - first >= k) *missing = a;
    loss += offer(a, d, n, greedy, groups, work);
  }
  return loss;
}

/* The attribute of the best score that has a cut, ties broken by distinct codes; -1: none. */
static int32_t leader(const cutter *work) {
  int32_t best = -1;
  for (int32_t a = 0; a < work->layout->attributes; a++) {
    if (work->best[a].attribute < 0) continue;
    if (best < 0 || work->score[a] > work->score[best] ||
        (work->score[a] == work->score[best] && work->distinct[a] > work->distinct[best]))
      best = a;
  }
  return best;
}

/* Put the best ordered cut of attribute a that keeps every criterion into work->best. */
static void offer_valid(node here, int32_t a, int64_t greedy, cutter *work) {
  int64_t n = here.count, k = work->criteria->k, d = tally(here, a, work), j;
  mark_valid(here, a, d, work);
  if (by_gain(greedy)) {
    double fall, whole;
    j = gain_cut(a, d, n, k, work->valid, &fall, &whole, work);
    work->score[a] = score_of(fall, n, whole, greedy);
  } else {
    j = median_cut(d, n, k, work->below, work->valid);
  }
  work->best[a] = j < 0 ? (cut){-1, 0, 0} : (cut){a, 0, work->value[j]};
}

/* A node's cut, and its loss per row.
 *
 * Missing values are parted first, but by MO_BALANCED. An attribute whose best cut breaks a
 * criterion offers its best ordered one that does not; the node is final only when no attribute has
 * any. */
cut decide(node here, int64_t greedy, int groups, double *loss, cutter *work) {
  int32_t attributes = work->layout->attributes, missing;
  *loss = examine(here, greedy, groups, &missing, work);
  if (missing >= 0 && greedy != MO_BALANCED) {
    for (int32_t a = missing; a < attributes; a++)
      if (parts_missing(here, a, work)) return (cut){a, 0, 0};
  }
  memset(work->checked, 0, (size_t)attributes);
  for (;;) {
    int32_t a = leader(work);
    if (a < 0) return (cut){-1, 0, 0};
    if (work->checked[a] || cut_holds(here, work->best[a], work)) return work->best[a];
    offer_valid(here, a, greedy, work);
    work->checked[a] = 1;
  }
}

/* Whether the missing values of an attribute can have classes of their own. */
int parts_missing(node here, int32_t a, cutter *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  int64_t missing = 0, k = work->criteria->k;
  if (here.members) missing = __builtin_popcountll(here.members & members_between(a, 0, 0, work));
  else
    for (int64_t i = 0; i < here.count; i++)
      missing += code_of(here.rows + i * of->stride, at) == 0;
  if (missing < k || here.count - missing < k) return 0;
  return cut_holds(here, (cut){a, 0, 0}, work);
}

/* Loss of a node published as one class. */
double loss_of(node here, cutter *work) {
  double loss = 0.0;
  for (int32_t a = 0; a < work->layout->attributes; a++) {
    int64_t d = tally(here, a, work);
    loss += width(work->layout, a, work->value[0], work->value[d - 1], d);
  }
  return loss * (double)here.count;
}
