/* The cut of a node whose sides, once finished, lose least: a rollout.
 *
 * A cut parts the rows whose codes of one attribute lie in a range from the others. An ordered cut
 * takes the lowest codes, and leaves k rows on both sides. In small nodes two more are tried: a
 * group amid the others (one value or a subtree of theirs), and a group of fewer than k rows, which
 * top_up fills with those that fit best. */
#include "splitting.h"

/* Insert a cut into work->tried from begin, in order, at most most of them; returns how many in
 * all. */
static int64_t keep(cut of, double fall, int64_t begin, int64_t count, int64_t most, cutter *work) {
  candidate *tried = work->tried;
  if (count - begin < most) count++;
  else if (fall <= tried[count - 1].fall) return count;
  int64_t at = count - 1;
  for (; at > begin && tried[at - 1].fall < fall; at--) tried[at] = tried[at - 1];
  tried[at] = (candidate){of, fall};
  return count;
}

/* Keep a group amid the others that has least to most rows. */
static int64_t collect_group(int32_t a, int64_t d, int64_t n, int64_t least, int64_t most,
                             double whole, int64_t begin, int64_t count, cutter *work) {
  if (work->layout->kind[a] == MO_INTERVAL) return count;
  int64_t first, last;
  double fall = gain_group(a, d, least, most, whole, &first, &last, work);
  if (first < 0) return count;
  cut found = {a, work->value[first], work->value[last]};
  return keep(found, fall - (double)n * whole, begin, count, work->policy.candidates, work);
}

/* Keep the cuts of attribute a that leave k rows on both sides; returns how many in all. */
static int64_t collect_cuts(int32_t a, int64_t d, int64_t n, int groups, int64_t begin,
                            cutter *work) {
  const layout *of = work->layout;
  int64_t k = work->criteria->k, count = begin;
  double loss = 0.0;
  for (int64_t j = 0; j + 1 < d; j++) {
    loss = loss_below(of, a, j, work->value, loss);
    if (!allowed(j, n, k, work->below, NULL)) continue;
    double rest = (double)work->below[j] * loss + (double)(n - work->below[j]) * work->right[j];
    count = keep((cut){a, 0, work->value[j]}, -rest, begin, count, work->policy.candidates, work);
  }
  if (!groups) return count;
  double whole = width(of, a, work->value[0], work->value[d - 1], d);
  return collect_group(a, d, n, k, n - k, whole, begin, count, work);
}

/* Keep groups of attribute a with fewer than k rows, as if topped up at no further loss. */
static int64_t collect_short(int32_t a, int64_t d, int64_t n, int64_t begin, cutter *work) {
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
    if (rest < all) count = keep(found, -rest, begin, count, work->policy.candidates, work);
  }
  return collect_group(a, d, n, 1, k - 1, whole, begin, count, work);
}

/* Put the cuts of each attribute that leave least loss into work->tried; returns how many.
 *
 * At most policy.candidates that leave k rows on both sides; as many groups of fewer if groups. */
static int64_t collect_candidates(node here, int groups, cutter *work) {
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

/* Loss of a node when it is cut greedily to the end; gives up above limit. */
static double rollout(node here, double limit, cutter *work) {
  double total = 0.0;
  int groups = work->policy.group_rows > 0;
  node *stack = work->stack;
  int64_t top = 0;
  stack[0] = here;
  while (top >= 0 && total < limit) {
    here = stack[top--];
    if (is_few(here, work)) here = masked(here, work);
    if (here.count < 2 * work->criteria->k) {
      total += loss_of(here, work);
      continue;
    }
    double loss;
    cut by = decide(here, work->policy.greedy, groups, &loss, work);
    if (by.attribute < 0) {
      total += loss * (double)here.count;
      continue;
    }
    node left, right;
    part(here, by, &left, &right, work);
    top = push_sides(stack, top, left, right);
  }
  return total;
}

/* Bring the rows that a cut parts to the front, topped up to k; returns how many they are. */
int64_t apply_cut(node here, cut by, cutter *work) {
  int64_t middle = part_rows(here, by, work);
  return middle < work->criteria->k ? top_up(here, middle, work) : middle;
}

/* Loss of a node that is cut and then greedily to the end; infinite where the cut breaks a
 * criterion; gives up above limit. */
static double loss_ahead(node here, cut by, double limit, cutter *work) {
  node left, right;
  int holds;
  part(here, by, &left, &right, work);
  if (left.count < work->criteria->k) {
    int64_t middle = top_up(here, left.count, work);
    left = part_of(here, 0, middle, work->layout);
    right = part_of(here, middle, here.count, work->layout);
    holds = halves_hold(here, middle, work);
  } else {
    holds = cut_holds(here, by, work);
  }
  if (!holds) return INFINITY;
  double loss = rollout(left, limit, work);
  if (loss < limit) loss += rollout(right, limit - loss, work);
  return loss;
}

/* The candidate whose sides, finished greedily, lose least; -1: none holds. */
static int64_t look_ahead(node here, cutter *work) {
  size_t bytes = (size_t)(here.count * work->layout->stride);
  int64_t count = collect_candidates(here, here.count <= work->policy.group_rows, work), best = -1;
  int ordered = work->policy.group_rows > 0;
  if (ordered) memcpy(work->before, here.rows, bytes);
  double least = INFINITY;
  for (int64_t t = 0; t < count && least > 0.0; t++) { /* nothing loses less than 0 */
    double loss = loss_ahead(here, work->tried[t].of, least, work);
    if (loss < least) {
      best = t;
      least = loss;
    }
    if (ordered) memcpy(here.rows, work->before, bytes);
  }
  return best;
}

/* The best cut of a node without looking ahead. */
static cut cut_by_itself(node here, cutter *work) {
  double loss;
  return decide(here, work->policy.greedy, here.count <= work->policy.group_rows, &loss, work);
}

/* The first attribute whose missing values can have classes of their own; -1: none. */
static int32_t missing_first(node here, cutter *work) {
  for (int32_t a = 0; a < work->layout->attributes; a++)
    if (parts_missing(here, a, work)) return a;
  return -1;
}

/* The cut of a node whose sides, finished greedily, lose least. */
static cut best_ahead(node here, cutter *work) {
  int32_t a = missing_first(here, work);
  if (a >= 0) return (cut){a, 0, 0};
  int64_t best = look_ahead(here, work);
  return best < 0 ? cut_by_itself(here, work) : work->tried[best].of;
}

/* The cut of a node by the policy; if the rows that it parts are fewer than k, apply_cut tops them
 * up. */
cut chosen_cut(node here, cutter *work) {
  if (here.count <= work->policy.rollout_rows) return best_ahead(here, work);
  return cut_by_itself(here, work);
}
