/* Looking ahead: the cut of a node whose sides lose least once they are cut to the end (rollout).
 *
 * An ordered cut takes the lowest codes of an attribute, and leaves k rows on both sides. Small
 * nodes also try groups out of the middle (one value, or a subtree), and groups of fewer than k
 * rows, which fill_group fills with the rows that fit best. */
#include <assert.h>

#include "splitting.h"

/* Inserts a cut by its gain into work->tried[begin:count], of at most most cuts; returns the new
 * count. */
static int64_t keep_candidate(cut of, double gain, int64_t begin, int64_t count, int64_t most,
                              workspace *work) {
  candidate *tried = work->tried;
  if (count - begin < most) count++;
  else if (gain <= tried[count - 1].gain) return count;
  int64_t at = count - 1;
  for (; at > begin && tried[at - 1].gain < gain; at--) tried[at] = tried[at - 1];
  tried[at] = (candidate){of, gain};
  return count;
}

/* Keeps the best group out of the middle that has least to most rows. */
static int64_t collect_group(int32_t a, int64_t d, int64_t n, int64_t least, int64_t most,
                             double whole, int64_t begin, int64_t count, workspace *work) {
  if (work->layout->kind[a] == MO_INTERVAL) return count;
  int64_t first, last;
  double gain = gain_group(a, d, least, most, whole, &first, &last, work);
  if (first < 0) return count;
  cut found = {a, work->value[first], work->value[last]};
  return keep_candidate(found, gain - (double)n * whole, begin, count, work->policy.candidates,
                        work);
}

/* Keeps the best cuts of attribute a that leave k rows on both sides; returns the new count. */
static int64_t collect_cuts(int32_t a, int64_t d, int64_t n, int groups, int64_t begin,
                            workspace *work) {
  const layout *of = work->layout;
  int64_t k = work->criteria->k, count = begin;
  double loss = 0.0;
  for (int64_t j = 0; j + 1 < d; j++) {
    loss = loss_below(of, a, j, work->value, loss);
    if (!allowed(j, n, k, work->below, NULL)) continue;
    double rest = (double)work->below[j] * loss + (double)(n - work->below[j]) * work->right[j];
    count = keep_candidate((cut){a, 0, work->value[j]}, -rest, begin, count,
                           work->policy.candidates, work);
  }
  if (!groups) return count;
  double whole = width(of, a, work->value[0], work->value[d - 1], d);
  return collect_group(a, d, n, k, n - k, whole, begin, count, work);
}

/* Keeps groups of attribute a of fewer than k rows, judged as if filling them cost nothing. */
static int64_t collect_short(int32_t a, int64_t d, int64_t n, int64_t begin, workspace *work) {
  const layout *of = work->layout;
  const int64_t *value = work->value;
  int64_t k = work->criteria->k, count = begin;
  double whole = width(of, a, value[0], value[d - 1], d), loss = 0.0;
  for (int64_t j = 0; j + 1 < d; j++) {
    loss = loss_below(of, a, j, value, loss);
    double all = (double)n * whole, rest = all;
    cut found = {a, 0, value[j]};
    if (work->below[j] < k) {
      rest = (double)k * loss + (double)(n - k) * work->right[j];
    } else if (n - work->below[j] < k) {
      rest = (double)k * work->right[j] + (double)(n - k) * loss;
      found = (cut){a, value[j + 1], value[d - 1]};
    }
    if (rest < all)
      count = keep_candidate(found, -rest, begin, count, work->policy.candidates, work);
  }
  return collect_group(a, d, n, 1, k - 1, whole, begin, count, work);
}

/* Puts the cuts of each attribute after which rows lose least into work->tried; returns how many.
 *
 * At most policy.candidates that leave k rows on both sides and, if groups, as many of fewer
 * rows. */
static int64_t collect_candidates(node here, int groups, workspace *work) {
  int64_t count = 0;
  for (int32_t a = 0; a < work->layout->attributes; a++) {
    int64_t d = tally(here, a, work);
    if (d < 2) continue;
    losses_above(work->layout, a, d, work->value, work->right);
    count = collect_cuts(a, d, here.count, groups, count, work);
    if (groups) count = collect_short(a, d, here.count, count, work);
  }
  return count;
}

/* Loss of a node once it is cut greedily to the end; stops when it exceeds limit. */
static double rollout(node here, double limit, workspace *work) {
  double total = 0.0;
  int groups = work->policy.group_rows > 0;
  node *stack = work->stack;
  int64_t top = 0;
  stack[0] = here;
  while (top >= 0 && total < limit && !stopped()) {
    here = stack[top--];
    if (fits_word(here, work)) here = make_masks(here, work);
    if (here.count < 2 * work->criteria->k) {
      total += loss_of(here, work);
      continue;
    }
    double loss;
    cut by = greedy_cut(here, work->policy.greedy, groups, &loss, work);
    if (by.attribute < 0) {
      total += loss * (double)here.count;
      continue;
    }
    node left, right;
    split_node(here, by, &left, &right, work);
    top = push_sides(stack, top, left, right);
    assert(top < MAX_WAITING);
  }
  return total;
}

/* Moves the rows of a cut's left side to the front, filled up to k; returns how many they are. */
int64_t apply_cut(node here, cut by, workspace *work) {
  int64_t middle = split_rows(here, by, work);
  return middle < work->criteria->k ? fill_group(here, middle, work) : middle;
}

/* Loss of a node after a cut and greedy cuts to the end; infinite if the cut breaks a criterion;
 * stops when it exceeds limit. */
static double loss_ahead(node here, cut by, double limit, workspace *work) {
  node left, right;
  int holds;
  split_node(here, by, &left, &right, work);
  if (left.count < work->criteria->k) {
    int64_t middle = fill_group(here, left.count, work);
    left = node_slice(here, 0, middle, work->layout);
    right = node_slice(here, middle, here.count, work->layout);
    holds = halves_satisfy(here, middle, work);
  } else {
    holds = cut_satisfies(here, by, work);
  }
  if (!holds) return INFINITY;
  double loss = rollout(left, limit, work);
  if (loss < limit) loss += rollout(right, limit - loss, work);
  return loss;
}

/* The candidate whose sides lose least once cut greedily to the end; -1: all break a criterion. */
static int64_t look_ahead(node here, workspace *work) {
  size_t bytes = (size_t)(here.count * work->layout->stride);
  int64_t count = collect_candidates(here, here.count <= work->policy.group_rows, work), best = -1;
  int ordered = work->policy.group_rows > 0;
  if (ordered) memcpy(work->before, here.rows, bytes);
  double least = INFINITY;
  for (int64_t t = 0; t < count && least > 0.0 && !stopped(); t++) { /* nothing loses less than 0 */
    double loss = loss_ahead(here, work->tried[t].of, least, work);
    if (loss < least) {
      best = t;
      least = loss;
    }
    if (ordered) memcpy(here.rows, work->before, bytes);
  }
  return best;
}

/* The greedy cut of a node. */
static cut cut_by_itself(node here, workspace *work) {
  double loss;
  return greedy_cut(here, work->policy.greedy, here.count <= work->policy.group_rows, &loss, work);
}

/* The first attribute whose missing values can be split from the present ones; -1: none. */
static int32_t missing_first(node here, workspace *work) {
  for (int32_t a = 0; a < work->layout->attributes; a++)
    if (can_split_missing(here, a, work)) return a;
  return -1;
}

/* The cut of a node by looking ahead. */
static cut best_ahead(node here, workspace *work) {
  int32_t a = missing_first(here, work);
  if (a >= 0) return (cut){a, 0, 0};
  int64_t best = look_ahead(here, work);
  return best < 0 ? cut_by_itself(here, work) : work->tried[best].of;
}

/* The cut of a node by the policy. Where its left side has fewer than k rows, apply_cut fills it.
 */
cut chosen_cut(node here, workspace *work) {
  if (here.count <= work->policy.rollout_rows) return best_ahead(here, work);
  return cut_by_itself(here, work);
}
