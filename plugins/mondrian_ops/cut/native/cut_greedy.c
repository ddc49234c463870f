/* The greedy cut of a node: by medians or by gain. */
#include "splitting.h"

/* Copies a record to two places; the first one may overlap it. */
ALWAYS_INLINE void copy_twice(unsigned char *left, unsigned char *right, const unsigned char *row,
                              size_t stride) {
  unsigned char copy[32]; /* where the stride is known when this is compiled: registers */
  if (stride > sizeof copy) {
    memcpy(right, row, stride);
    memmove(left, row, stride);
  } else {
    memcpy(copy, row, stride);
    memcpy(right, copy, stride);
    memcpy(left, copy, stride);
  }
}

/* Each row is written to both sides, where the next one will be written over it on the side where
 * it does not belong. */
ALWAYS_INLINE int64_t split_by(node here, int32_t offset, int bytes, size_t stride, cut by,
                               unsigned char *others) {
  uint64_t span =
      (uint64_t)(by.high - by.low); /* codes below low wrap around, so one comparison does */
  const unsigned char *row = here.rows, *stop = row + (size_t)here.count * stride;
  unsigned char *left = here.rows;
#pragma GCC unroll 4
  for (; row < stop; row += stride) {
    size_t goes_left = (uint64_t)(read_code(row, offset, bytes) - by.low) <= span;
    copy_twice(left, others + (row - left), row, stride); /* as many went right as left lags */
    left += goes_left * stride;
  }
  memcpy(left, others, (size_t)(stop - left));
  return (left - here.rows) / (int64_t)stride;
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

/* What is known of the best cut of an attribute: that there may be one; which one it is; that it
 * satisfies every criterion. */
enum { PROMISED, RATED, VALID };

/* Writes the best cut of attribute a, which was just tallied, that leaves k rows on both sides to
 * work->best; attribute -1: there is none. */
static void write_best(int32_t a, int64_t low, int64_t j, workspace *work) {
  work->best[a] = j < 0 ? (cut){-1, 0, 0} : (cut){a, low, work->value[j]};
  work->known[a] = RATED;
}

/* Writes the best cut of attribute a, which was just tallied, by gain, and its score. */
static double rate_gain(int32_t a, int64_t d, int64_t n, int64_t greedy, int groups,
                        workspace *work) {
  int64_t k = work->criteria->k, low = 0;
  double whole, gain;
  int64_t j = gain_cut(a, d, n, k, NULL, &gain, &whole, work);
  if (groups && work->layout->kind[a] != MO_INTERVAL) {
    int64_t first, last;
    double more = gain_group(a, d, k, n - k, whole, &first, &last, work);
    if (first >= 0 && more > gain) {
      low = work->value[first];
      j = last;
      gain = more;
    }
  }
  work->score[a] = score_of(gain, n, whole, greedy);
  write_best(a, low, j, work);
  return whole;
}

/* rate_attributes by gain: the rows of every code are counted. */
static double rate_gains(node here, int64_t greedy, int groups, workspace *work) {
  const layout *of = work->layout;
  int64_t n = here.count, k = work->criteria->k;
  double loss = 0.0;
  if (!here.members) count_narrow(here, work);
  for (int32_t a = 0; a < of->attributes; a++) {
    int counted = !here.members && of->column[a].codes <= WORD_BITS;
    int64_t d = counted ? tally_counted(of->column[a], work) : tally(here, a, work);
    int64_t first = work->below[0];
    work->best[a].attribute = -1;
    work->distinct[a] = d;
    work->lacks[a] = d > 1 && work->value[0] == 0 && first >= k && n - first >= k;
    loss += d < 2 ? width(of, a, work->value[0], work->value[0], 1)
                  : rate_gain(a, d, n, greedy, groups, work);
  }
  return loss;
}

/* The reach of a node in an attribute; find_present, or make_masks, was called before. */
static reach measured(node here, int32_t a, workspace *work) {
  const layout *of = work->layout;
  if (here.members) return reach_of_members(here, a, work);
  if (of->column[a].codes <= WORD_BITS) return reach_of(of, a, work->present[of->column[a].offset]);
  int64_t d = tally(here, a, work), low = work->value[0], high = work->value[d - 1];
  return (reach){low, high, d, width(of, a, low, high, d)};
}

/* The attribute that leads so far: of equal scores the one of more distinct codes, then the first.
 */
typedef struct {
  int32_t attribute; /* -1: there is none */
  int64_t distinct;
  double score;
} leader;

static const leader NONE = {.attribute = -1};

/* The leader among those before and an attribute, which has a cut or not. */
ALWAYS_INLINE leader led_by(leader before, int32_t a, double score, int64_t distinct, int has_cut) {
  int better = (score > before.score) | ((score == before.score) & (distinct > before.distinct)) |
               (before.attribute < 0);
  better &= has_cut;
  return (leader){better ? a : before.attribute, better ? distinct : before.distinct,
                  better ? score : before.score};
}

/* rate_attributes by medians: which codes are present is enough, so the best cut of an attribute
 * is sought when it is the attribute to cut. Writes what best_attribute would return to *best. */
static double rate_widths(node here, int32_t *best, workspace *work) {
  const layout *of = work->layout;
  leader first = NONE;
  double loss = 0.0;
  if (!here.members) find_present(here, work);
  for (int32_t a = 0; a < of->attributes; a++) {
    reach bounds = measured(here, a, work);
    double score = bounds.loss;
    /* De Capitani di Vimercati et al. 2023, equation 1. */
    if (of->kind[a] != MO_INTERVAL) score = of->most[a] * (double)bounds.distinct / of->present[a];
    first = led_by(first, a, score, bounds.distinct, bounds.distinct > 1);
    work->score[a] = score;
    work->best[a].attribute = bounds.distinct > 1 ? a : -1;
    work->known[a] = PROMISED;
    work->distinct[a] = bounds.distinct;
    work->lacks[a] = bounds.distinct > 1 && bounds.low == 0;
    loss += bounds.loss;
  }
  *best = first.attribute;
  return loss;
}

/* Fills work->best, score, distinct and lacks: for each attribute the best cut that leaves k rows
 * on both sides, among ordered cuts and, if groups, those that take a group out of the middle.
 *
 * Returns the loss per row of the node. */
double rate_attributes(node here, int64_t greedy, int groups, workspace *work) {
  int32_t best;
  return by_gain(greedy) ? rate_gains(here, greedy, groups, work) : rate_widths(here, &best, work);
}

/* tally of an attribute whose rows count_few counted; find_present knows its codes. */
static int64_t tally_few(field at, const unsigned char *below, workspace *work) {
  int64_t d = 0;
  for (uint64_t present = work->present[at.offset]; present; present &= present - 1) {
    int code = __builtin_ctzll(present);
    work->value[d] = code;
    work->below[d++] = below[code];
  }
  return d;
}

/* The code at the median of n rows that count_few counted, if its cut leaves k rows on both sides;
 * else -1. */
static int64_t median_of_few(uint64_t present, const unsigned char *below, int64_t n, int64_t k) {
  int code = __builtin_ctzll(present); /* the codes of these rows, so one is at the median */
  while (2 * (int64_t)below[code] < n) code = __builtin_ctzll(present &= present - 1);
  return below[code] >= k && n - below[code] >= k ? code : -1;
}

/* Writes the median cut of an attribute that leaves k rows on both sides. */
static void find_median_cut(node here, int32_t a, workspace *work) {
  field at = work->layout->column[a];
  int64_t n = here.count, k = work->criteria->k, d;
  unsigned char below[FEW];
  if (count_few(here, at, below, work)) {
    int64_t code = median_of_few(work->present[at.offset], below, n, k);
    if (code >= 0) {
      work->best[a] = (cut){a, 0, code};
      work->known[a] = RATED;
      return;
    }
    d = tally_few(at, below, work);
  } else {
    d = tally(here, a, work);
  }
  write_best(a, 0, median_cut(d, n, k, work->below, NULL), work);
}

/* The attribute of the best score that has a cut, -1: there is none. Of equal scores the one of
 * more distinct codes wins. */
int32_t best_attribute(const workspace *work) {
  leader first = NONE;
  for (int32_t a = 0; a < work->layout->attributes; a++)
    first = led_by(first, a, work->score[a], work->distinct[a], work->best[a].attribute >= 0);
  return first.attribute;
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
  write_best(a, 0, j, work);
  work->known[a] = VALID;
}

/* The greedy cut of a node (attribute -1: the node is final), and its loss per row.
 *
 * Missing values are split from present ones first, except by MO_BALANCED. Where the best cut of
 * an attribute breaks a criterion, its best ordered cut that satisfies all takes its place; a
 * node is final only when no attribute has a valid cut. */
cut greedy_cut(node here, int64_t greedy, int groups, double *loss, workspace *work) {
  int32_t a = -1;
  *loss = by_gain(greedy) ? rate_gains(here, greedy, groups, work) : rate_widths(here, &a, work);
  for (int32_t m = 0; m < work->layout->attributes && greedy != MO_BALANCED; m++)
    if (work->lacks[m] && can_split_missing(here, m, work)) return (cut){m, 0, 0};
  if (by_gain(greedy)) a = best_attribute(work);
  while (a >= 0) {
    double score = work->score[a];
    if (work->known[a] == PROMISED) find_median_cut(here, a, work);
    else if (stopped()) break;
    else if (work->known[a] == VALID || cut_satisfies(here, work->best[a], work))
      return work->best[a];
    else find_valid_cut(here, a, greedy, work);
    /* With a cut and the same score it is the best one still. */
    if (work->best[a].attribute < 0 || work->score[a] != score) a = best_attribute(work);
  }
  return (cut){-1, 0, 0};
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
  if (!here.members) find_present(here, work);
  for (int32_t a = 0; a < work->layout->attributes; a++) loss += measured(here, a, work).loss;
  return loss * (double)here.count;
}
