/* Growing the tree of cuts: cutting nodes until they are small enough, or have no cut. */
#include <assert.h>

#include "splitting.h"

/* Sorts a node's rows by attribute a. */
static void sort_rows(node here, int32_t a, workspace *work) {
  size_t stride = (size_t)work->layout->stride;
  order_rows(here, a, tally(here, a, work), work);
  for (int64_t i = 0; i < here.count; i++)
    memcpy(work->others + (size_t)i * stride, here.rows + work->order[i] * stride, stride);
  memcpy(here.rows, work->others, (size_t)here.count * stride);
}

/* Relaxed partitioning (LeFevre et al. 2006, section 3.2): cuts a node in halves; returns the
 * rows of the first, -1: no cut is valid.
 *
 * Rows of the median value may lie on both sides, so both halves have k rows whenever the node
 * has 2k. The widest attribute whose halves satisfy every criterion is cut. Missing values are
 * split from present ones first. */
static int64_t halve(node here, workspace *work) {
  int32_t attributes = work->layout->attributes;
  for (int32_t a = 0; a < attributes; a++)
    if (can_split_missing(here, a, work)) return split_rows(here, (cut){a, 0, 0}, work);
  rate_attributes(here, MO_RELAXED, 0, work);
  int64_t middle = here.count / 2;
  for (;;) {
    int32_t widest = -1;
    for (int32_t a = 0; a < attributes; a++)
      if (work->distinct[a] > 1 && (widest < 0 || work->score[a] > work->score[widest])) widest = a;
    if (widest < 0 || stopped()) return -1;
    sort_rows(here, widest, work);
    if (halves_satisfy(here, middle, work)) return middle;
    work->distinct[widest] = 0;
  }
}

/* Cuts a node once; returns the rows of its first side, -1: the node is final. */
int64_t middle_of(node here, workspace *work) {
  if (work->policy.greedy == MO_RELAXED) return halve(here, work);
  cut by = chosen_cut(here, work);
  return by.attribute < 0 ? -1 : apply_cut(here, by, work);
}

/* Whether cut_members may cut a node to the end: the policy counts rows of every attribute, and
 * needs neither the order of the rows nor their numbers. */
static int by_members(node here, const workspace *work) {
  const mo_policy *policy = &work->policy;
  return fits_word(here, work) && by_gain(policy->greedy) && policy->group_rows == 0;
}

/* Cuts a node of at most WORD_BITS rows until no valid cut is left. */
static void cut_members(node here, uint8_t *class_starts, workspace *work) {
  size_t stride = (size_t)work->layout->stride, bytes = (size_t)here.count * stride;
  unsigned char order[WORD_BITS];
  node waiting[WORD_BITS + 1];
  int64_t top = 0, placed = 0;
  waiting[0] = make_masks(here, work);
  while (top >= 0) {
    node next = waiting[top--], left, right;
    cut by = {-1, 0, 0};
    if (next.count >= 2 * work->criteria->k) by = chosen_cut(next, work);
    if (by.attribute >= 0) {
      split_node(next, by, &left, &right, work);
      waiting[++top] = right;
      waiting[++top] = left;
      continue;
    }
    class_starts[placed] = 1;
    for (uint64_t rest = next.members; rest; rest &= rest - 1)
      order[placed++] = (unsigned char)__builtin_ctzll(rest);
  }
  for (int64_t i = 0; i < placed; i++)
    memcpy(work->others + (size_t)i * stride, here.rows + order[i] * stride, stride);
  memcpy(here.rows, work->others, bytes);
}

/* Cuts until nodes have at most floor rows, or no cut is left. */
void cut_down(node whole, int64_t floor, uint8_t *class_starts, workspace *work) {
  int64_t stride = work->layout->stride, k = work->criteria->k;
  node waiting[MAX_WAITING];
  int64_t top = 0;
  waiting[0] = whole;
  while (top >= 0 && !stopped()) {
    node here = waiting[top--];
    if (here.count > floor && by_members(here, work)) {
      cut_members(here, class_starts + (here.rows - whole.rows) / stride, work);
      continue;
    }
    int64_t middle = here.count > floor && here.count >= 2 * k ? middle_of(here, work) : -1;
    if (middle < 0) {
      class_starts[(here.rows - whole.rows) / stride] = 1;
      continue;
    }
    top = push_sides(waiting, top, node_slice(here, 0, middle, work->layout),
                     node_slice(here, middle, here.count, work->layout));
    assert(top < MAX_WAITING);
  }
}
