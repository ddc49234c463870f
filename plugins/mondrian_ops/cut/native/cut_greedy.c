/* The greedy cut of a node: by medians or by gain. */
#include "splitting.h"

ALWAYS_INLINE int64_t split_by(node here, int32_t offset, int bytes, size_t stride, cut by,
                               unsigned char *others) {
  uint64_t span =
      (uint64_t)(by.high - by.low); /* codes below low wrap around, so one comparison does */
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

ALWAYS_INLINE int64_t split_wide(node here, field at, size_t stride, cut by,
                                 unsigned char *others) {
  if (at.bytes == 1) return split_by(here, at.offset, 1, stride, by, others);
  if (at.bytes == 2) return split_by(here, at.offset, 2, stride, by, others);
  return split_by(here, at.offset, 4, stride, by, others);
}

/* Moves the rows of a cut's left side to the front; returns how many they are.
 *
 * Keeps the order within both sides. Has no branch that the processor could mispredict. */
int64_t split_rows(node here, cut by, workspace *work) {
  field at = work->layout->column[by.attribute];
  size_t stride = (size_t)work->layout->stride;
  if (stride == 16) return split_wide(here, at, 16, by, work->others);
  if (stride == 24) return split_wide(here, at, 24, by, work->others);
  if (stride == 32) return split_wide(here, at, 32, by, work->others);
  return split_wide(here, at, stride, by, work->others);
}

/* Splits a node into the two sides of a cut. */
void split_node(node here, cut by, node *left, node *right, workspace *work) {
  *left = *right = here;
  if (here.members) {
    left->members = here.members & members_between(by.attribute, by.low, by.high, work);
    right->members = here.members & ~left->members;
    left->count = __builtin_popcountll(left->members);
  } else {
    left->count = split_rows(here, by, work);
    right->rows += left->count * work->layout->stride;
  }
  right->count = here.count - left->count;
}

/* Score of a cut: its gain. MO_WIDEST_GAIN takes the gain per row and adds the attribute's loss. */
static double score_of(double gain, int64_t n, double whole, int64_t greedy) {
  return greedy == MO_WIDEST_GAIN ? gain / (double)n + whole : gain;
}

static int by_gain(int64_t greedy) { return greedy == MO_GAIN || greedy == MO_WIDEST_GAIN; }

/* Writes the best cut of attribute a, which was just tallied, that leaves k rows on both sides to
 * work->best, and its score; returns the attribute's loss per row. */
static double rate_attribute(int32_t a, int64_t d, int64_t n, int64_t greedy, int groups,
                             workspace *work) {
  const layout *of = work->layout;
  int64_t k = work->criteria->k, low = 0, j;
  double whole, gain;
  if (by_gain(greedy)) {
    j = gain_cut(a, d, n, k, NULL, &gain, &whole, work);
    if (groups && of->kind[a] != MO_INTERVAL) {
      int64_t first, last;
      double more = gain_group(a, d, k, n - k, whole, &first, &last, work);
      if (first >= 0 && more > gain) {
        low = work->value[first];
        j = last;
        gain = more;
      }
    }
    work->score[a] = score_of(gain, n, whole, greedy);
  } else {
    j = median_cut(d, n, k, work->below, NULL);
    whole = width(of, a, work->value[0], work->value[d - 1], d);
    /* De Capitani di Vimercati et al. 2023, equation 1. */
    work->score[a] = of->kind[a] == MO_INTERVAL ? whole : (double)d / of->present[a];
  }
  if (j >= 0) work->best[a] = (cut){a, low, work->value[j]};
  return whole;
}

/* Fills work->best, score and distinct: for each attribute the best cut that leaves k rows on
 * both sides, among ordered cuts and, if groups, those that take a group out of the middle.
 *
 * Returns the loss per row of the node; *missing: the first attribute with k missing and k
 * present values, -1: there is none. */
double rate_attributes(node here, int64_t greedy, int groups, int32_t *missing, workspace *work) {
  const layout *of = work->layout;
  int64_t n = here.count, k = work->criteria->k;
  double loss = 0.0;
  *missing = -1;
  if (!here.members) count_narrow(here, work);
  for (int32_t a = 0; a < of->attributes; a++) {
    int counted = !here.members && of->column[a].codes <= WORD_BITS;
    int64_t d = counted ? tally_counted(of->column[a], work) : tally(here, a, work);
    work->best[a].attribute = -1;
    work->distinct[a] = d;
    if (d < 2) {
      loss += width(of, a, work->value[0], work->value[0], 1);
      continue;
    }
    int64_t first = work->below[0];
    if (work->value[0] == 0 && *missing < 0 && first >= k && n - first >= k) *missing = a;
    loss += rate_attribute(a, d, n, greedy, groups, work);
  }
  return loss;
}

/* The attribute of the best score that has a cut, -1: there is none. Of equal scores the one of
 * more distinct codes wins. */
static int32_t best_attribute(const workspace *work) {
  int32_t best = -1;
  for (int32_t a = 0; a < work->layout->attributes; a++) {
    if (work->best[a].attribute < 0) continue;
    if (best < 0 || work->score[a] > work->score[best] ||
        (work->score[a] == work->score[best] && work->distinct[a] > work->distinct[best]))
      best = a;
  }
  return best;
}

/* Writes the best ordered cut of attribute a that satisfies every criterion to work->best. */
static void find_valid_cut(node here, int32_t a, int64_t greedy, workspace *work) {
  int64_t n = here.count, k = work->criteria->k, d = tally(here, a, work), j;
  mark_valid(here, a, d, work);
  if (by_gain(greedy)) {
    double gain, whole;
    j = gain_cut(a, d, n, k, work->valid, &gain, &whole, work);
    work->score[a] = score_of(gain, n, whole, greedy);
  } else {
    j = median_cut(d, n, k, work->below, work->valid);
  }
  work->best[a] = j < 0 ? (cut){-1, 0, 0} : (cut){a, 0, work->value[j]};
}

/* The greedy cut of a node (attribute -1: the node is final), and its loss per row.
 *
 * Missing values are split from present ones first, except by MO_BALANCED. Where the best cut of
 * an attribute breaks a criterion, its best ordered cut that satisfies all takes its place; a
 * node is final only when no attribute has a valid cut. */
cut greedy_cut(node here, int64_t greedy, int groups, double *loss, workspace *work) {
  int32_t attributes = work->layout->attributes, missing;
  *loss = rate_attributes(here, greedy, groups, &missing, work);
  if (missing >= 0 && greedy != MO_BALANCED) {
    for (int32_t a = missing; a < attributes; a++)
      if (can_split_missing(here, a, work)) return (cut){a, 0, 0};
  }
  memset(work->checked, 0, (size_t)attributes);
  for (;;) {
    int32_t a = best_attribute(work);
    if (a < 0 || stopped()) return (cut){-1, 0, 0};
    if (work->checked[a] || cut_satisfies(here, work->best[a], work)) return work->best[a];
    find_valid_cut(here, a, greedy, work);
    work->checked[a] = 1;
  }
}

/* Whether the missing values of an attribute can have classes of their own. */
int can_split_missing(node here, int32_t a, workspace *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  int64_t missing = 0, k = work->criteria->k;
  if (here.members) missing = __builtin_popcountll(here.members & members_between(a, 0, 0, work));
  else
    for (int64_t i = 0; i < here.count; i++)
      missing += code_of(here.rows + i * of->stride, at) == 0;
  if (missing < k || here.count - missing < k) return 0;
  return cut_satisfies(here, (cut){a, 0, 0}, work);
}

/* Loss of a node published as one class. */
double loss_of(node here, workspace *work) {
  double loss = 0.0;
  for (int32_t a = 0; a < work->layout->attributes; a++) {
    int64_t d = tally(here, a, work);
    loss += width(work->layout, a, work->value[0], work->value[d - 1], d);
  }
  return loss * (double)here.count;
}
