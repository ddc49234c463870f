/* DI-Mondrian: cuts into several parts at once (docs/algorithms.md, DI-Mondrian). */
#include <stdlib.h>

#include "mondrian.h"
#include "splitting.h"

/* Sums of n ln n are sums of whole numbers of these units, so they do not depend on the rows'
 * order. */
static const double UNIT = 1 << 20;

static int open_parts(parts *opened, const mo_multiway *asked, int64_t rows, int64_t k) {
  int64_t most = asked->cut_points < rows / k ? asked->cut_points : rows / k;
  most = most > 1 ? most : 1;
  opened->most = most;
  opened->room = asked->room;
  opened->point = calloc((size_t)most, sizeof *opened->point);
  opened->counts = calloc((size_t)asked->sensitive_codes + 1, sizeof *opened->counts);
  opened->waiting = calloc((size_t)(rows / k) + 1, sizeof *opened->waiting);
  return opened->point && opened->counts && opened->waiting ? MO_DONE : MO_NO_MEMORY;
}

/* Where to cut an attribute */

/* The inner quantile of n rows, of so many points, that is nearest to a rank, and the distance in
 * rows times points + 1.
 *
 * Quantiles count from 0; -1 and points are the ends of the node. */
static int64_t nearest_quantile(int64_t rank, int64_t n, int64_t points, int64_t *away) {
  int64_t q = (2 * rank * (points + 1) + n) / (2 * n) - 1;
  int64_t off = rank * (points + 1) - (q + 1) * n;
  *away = off < 0 ? -off : off;
  return q;
}

/* Of the cuts nearest to quantile q, the one after which the rows of the distinct codes first to
 * last lose least; -1: none leaves k rows on both sides.
 *
 * Of equal losses the cut nearer to the quantile wins, then the lower one. */
static int64_t seek_point(int32_t a, int64_t first, int64_t last, int64_t n, int64_t q,
                          int64_t points, workspace *work) {
  const layout *of = work->layout;
  const int64_t *value = work->value + first;
  double *right = work->right + first, least = INFINITY, loss = 0.0;
  int64_t before = first > 0 ? work->below[first - 1] : 0, k = work->criteria->k;
  int64_t best = -1, best_away = 0;
  losses_above(of, a, last - first + 1, value, right);
  for (int64_t j = first; j < last; j++) {
    int64_t rank = work->below[j], away;
    loss = loss_below(of, a, j - first, value, loss);
    if (nearest_quantile(rank, n, points, &away) != q || rank < k || n - rank < k) continue;
    double rest =
        (double)(rank - before) * loss + (double)(work->below[last] - rank) * right[j - first];
    if (rest < least || (rest == least && away < best_away)) {
      best = j;
      least = rest;
      best_away = away;
    }
  }
  return best;
}

/* For each quantile the best cut near it; -1: none leaves k rows on both sides.
 *
 * A cut is judged by the rows between the quantiles before and after its own. */
static void seek_points(int32_t a, int64_t n, int64_t points, workspace *work, parts *own) {
  int64_t first = 0, last = 0;
  for (int64_t q = 0; q < points; q++) {
    while (work->below[first] * (points + 1) <= q * n) first++;
    while (work->below[last] * (points + 1) < (q + 2) * n) last++;
    own->point[q] = first < last ? seek_point(a, first, last, n, q, points, work) : -1;
  }
}

/* Writes the points at which to cut an attribute, which was just tallied, to own->point,
 * ascending; returns how many.
 *
 * Every part has k rows. Where no cut near a quantile allows that, the only point is the cut that
 * balances best. */
static int64_t place_points(int32_t a, int64_t d, int64_t n, workspace *work, parts *own) {
  if (d < 2) return 0;
  int64_t k = work->criteria->k, points = n / (own->room * k) - 1, count = 0, last = 0;
  points = points < own->most ? points : own->most;
  points = points > 1 ? points : 1;
  seek_points(a, n, points, work, own);
  for (int64_t q = 0; q < points; q++) {
    int64_t j = own->point[q];
    if (j < 0 || work->below[j] - last < k) continue;
    own->point[count++] = j;
    last = work->below[j];
  }
  if (count > 0) return count;
  own->point[0] = median_cut(d, n, k, work->below, NULL);
  return own->point[0] >= 0;
}

/* Which attribute to cut */

static int64_t rows_at(const workspace *work, int64_t j) {
  return work->below[j] - (j > 0 ? work->below[j - 1] : 0);
}

/* Coefficient of variation of an attribute's values in the node, of their places plus one. */
static double variation(int32_t a, int64_t d, int64_t n, const workspace *work) {
  const double *place = work->layout->low + work->layout->first[a];
  double mean = 0.0, variance = 0.0;
  for (int64_t j = 0; j < d; j++)
    mean += (double)rows_at(work, j) * place[work->value[j]] / (double)n;
  for (int64_t j = 0; j < d; j++) {
    double off = place[work->value[j]] - mean;
    variance += (double)rows_at(work, j) * (off * off) / (double)n;
  }
  return sqrt(variance) / (1.0 + mean);
}

/* How much less a row loses on an attribute when the node is cut at its points. */
static double gain_of_parts(int32_t a, int64_t d, int64_t n, int64_t count, const workspace *work,
                            const parts *own) {
  const layout *of = work->layout;
  double rest = 0.0;
  int64_t first = 0, below = 0;
  for (int64_t p = 0; p <= count; p++) {
    int64_t last = p < count ? own->point[p] : d - 1;
    double loss = width(of, a, work->value[first], work->value[last], last - first + 1);
    rest += (double)(work->below[last] - below) * loss;
    first = last + 1;
    below = work->below[last];
  }
  return width(of, a, work->value[0], work->value[d - 1], d) - rest / (double)n;
}

static int64_t ordered_code(node here, int64_t i, field value, const workspace *work) {
  return code_of(here.rows + (int64_t)work->order[i] * work->layout->stride, value);
}

/* Sum of c ln c over the counts c of a sensitive attribute among rows first to last of work->order,
 * in units; and how many distinct values there are. */
static int64_t concentration(node here, int64_t s, int64_t first, int64_t last, int64_t *distinct,
                             const workspace *work, parts *own) {
  field value = sensitive_field(work->layout, s);
  int64_t *counts = own->counts, total = 0;
  *distinct = 0;
  for (int64_t i = first; i < last; i++) counts[ordered_code(here, i, value, work)]++;
  for (int64_t i = first; i < last; i++) {
    int64_t code = ordered_code(here, i, value, work);
    if (counts[code] == 0) continue;
    total += (int64_t)rint((double)counts[code] * log((double)counts[code]) * UNIT);
    ++*distinct;
    counts[code] = 0;
  }
  return total;
}

/* The share of a sensitive attribute's entropy that cutting at the points takes away, less what
 * chance takes: half the logarithm of n for each free parameter (Schwarz 1978).
 *
 * work->order must hold the rows in the attribute's order. */
static double information_gain(node here, int64_t s, int64_t count, const workspace *work,
                               parts *own) {
  int64_t n = here.count, inside = 0, first = 0, distinct, ignored;
  int64_t whole = concentration(here, s, 0, n, &distinct, work, own);
  if (distinct < 2) return 0.0;
  double sizes = 0.0;
  for (int64_t p = 0; p <= count; p++) {
    int64_t last = p < count ? work->below[own->point[p]] : n;
    inside += concentration(here, s, first, last, &ignored, work, own);
    sizes += (double)(last - first) * log((double)(last - first));
    first = last;
  }
  double entropy = (double)n * log((double)n) - (double)whole / UNIT;
  double gained = entropy - sizes + (double)inside / UNIT;
  double chance = 0.5 * (double)count * (double)(distinct - 1) * log((double)n);
  return gained > chance ? (gained - chance) / entropy : 0.0;
}

/* Score of an attribute: its variation, its gain and the average information gain. */
static double score_of(node here, int32_t a, int64_t d, int64_t count, workspace *work,
                       parts *own) {
  int64_t sensitive = work->layout->sensitive - work->layout->persons;
  double found =
      variation(a, d, here.count, work) + gain_of_parts(a, d, here.count, count, work, own);
  if (sensitive > 0) order_rows(here, a, d, work);
  for (int64_t s = 0; s < sensitive; s++)
    found += information_gain(here, s, count, work, own) / (double)sensitive;
  return found;
}

/* Which points are valid */

/* Whether rows first to last of work->order are k or more, and satisfy every criterion. */
static int part_satisfies(node here, int64_t first, int64_t last, workspace *work) {
  const mo_criteria *criteria = work->criteria;
  if (last - first < criteria->k) return 0;
  for (int64_t j = 0; j < criteria->count; j++) {
    field value = sensitive_field(work->layout, criteria->column[j]);
    for (int64_t i = first; i < last; i++)
      count_rows(&work->left_tally, ordered_code(here, i, value, work), 1);
    if (!counted_satisfy(&work->left_tally, criteria, j)) return 0;
  }
  return 1;
}

/* Drops points until all parts satisfy the criteria; returns how many are left.
 *
 * From the lowest on, a point stays if the part between it and the point before is valid; then
 * the highest points are dropped until the part above the last one is valid, too. */
static int64_t keep_points(node here, int64_t count, workspace *work, parts *own) {
  int64_t kept = 0, first = 0;
  for (int64_t p = 0; p < count; p++) {
    int64_t last = work->below[own->point[p]];
    if (!part_satisfies(here, first, last, work)) continue;
    own->point[kept++] = own->point[p];
    first = last;
  }
  while (kept > 0 && !part_satisfies(here, work->below[own->point[kept - 1]], here.count, work))
    kept--;
  return kept;
}

/* Writes the codes above which attribute a is cut to own->point; returns how many, 0: no cut is
 * valid.
 *
 * They are the points of place_points that are valid; where none is, the valid cut that balances
 * best. */
static int64_t valid_points(node here, int32_t a, workspace *work, parts *own) {
  int64_t n = here.count, d = tally(here, a, work), count = place_points(a, d, n, work, own);
  order_rows(here, a, d, work);
  count = keep_points(here, count, work, own);
  if (count == 0) {
    mark_valid(here, a, d, work);
    own->point[0] = median_cut(d, n, work->criteria->k, work->below, work->valid);
    count = own->point[0] >= 0;
  }
  for (int64_t p = 0; p < count; p++) own->point[p] = work->value[own->point[p]];
  return count;
}

/* Fills work->score and distinct; work->best has the attribute -1 where no cut leaves k rows on
 * both sides. */
static void rate_all_attributes(node here, workspace *work, parts *own) {
  for (int32_t a = 0; a < work->layout->attributes; a++) {
    int64_t d = tally(here, a, work), count = place_points(a, d, here.count, work, own);
    work->distinct[a] = d;
    work->best[a].attribute = count > 0 ? a : -1;
    if (count > 0) work->score[a] = score_of(here, a, d, count, work, own);
  }
}

/* The attribute of a node's cut (-1: the node is final); own->point then holds the count codes
 * above which it is cut.
 *
 * Missing values are split from present ones first. Else the attribute of the highest score that
 * has a valid cut is cut. */
static int32_t multiway_cut_of(node here, int64_t *count, workspace *work, parts *own) {
  *count = 1;
  own->point[0] = 0;
  for (int32_t a = 0; a < work->layout->attributes; a++)
    if (can_split_missing(here, a, work)) return a;
  rate_all_attributes(here, work, own);
  for (;;) {
    int32_t best = stopped() ? -1 : best_attribute(work);
    *count = best < 0 ? 0 : valid_points(here, best, work, own);
    if (best < 0 || *count > 0) return best;
    work->best[best].attribute = -1;
  }
}

/* Cuts until nodes have at most floor rows, or no cut is left. */
static void cut_into_parts(node whole, int64_t floor, uint8_t *class_starts, workspace *work,
                           parts *own) {
  int64_t stride = work->layout->stride, k = work->criteria->k, top = 0;
  own->waiting[0] = whole;
  while (top >= 0 && !stopped()) {
    node here = own->waiting[top--];
    int64_t count = 0;
    int32_t a =
        here.count > floor && here.count >= 2 * k ? multiway_cut_of(here, &count, work, own) : -1;
    if (a < 0) {
      class_starts[(here.rows - whole.rows) / stride] = 1;
      continue;
    }
    for (int64_t p = 0; p < count; p++) {
      int64_t middle = split_rows(here, (cut){a, 0, own->point[p]}, work);
      own->waiting[++top] = (node){.rows = here.rows, .count = middle};
      here = (node){.rows = here.rows + middle * stride, .count = here.count - middle};
    }
    own->waiting[++top] = here;
  }
}

/* For the size of the working memory only. */
static const mo_policy POLICY = {.greedy = MO_MEDIAN};

static int grow_parts(packed_rows *from, parts *own, int32_t *index, uint8_t *class_starts) {
  const layout *of = &from->packed.of;
  blocks small;
  int status = open_blocks(&small, from);
  if (status == MO_DONE) {
    cut_into_parts(from->whole, BLOCK, class_starts, &from->work, own);
    for (int64_t start = 0, stop; start < from->whole.count && !stopped(); start = stop) {
      stop = next_class_start(class_starts, start, from->whole.count);
      node here = node_slice(from->whole, start, stop, of);
      if (here.count < 2 * from->work.criteria->k || here.count > BLOCK) {
        write_numbers(here, of, index + start);
        continue;
      }
      fill_block(&small.block, here, &from->work);
      cut_into_parts((node){.rows = small.block.rows, .count = here.count}, 0, class_starts + start,
                     &small.work, own);
      write_block_numbers(here, of, &small.block, index + start);
    }
  }
  close_blocks(&small);
  return status;
}

int mo_multiway_classes(const mo_rows *places, const mo_criteria *criteria,
                        const mo_multiway *multiway, int32_t *index, uint8_t *class_starts) {
  packed_rows from;
  parts own = {0};
  int status = open_packed_rows(&from, places, criteria, &POLICY);
  if (status == MO_DONE) status = open_parts(&own, multiway, places->rows, criteria->k);
  if (status == MO_DONE) status = grow_parts(&from, &own, index, class_starts);
  close_parts(&own);
  close_packed_rows(&from);
  return status;
}

int mo_open_multiway_tree(const mo_rows *places, const mo_criteria *criteria,
                          const mo_multiway *multiway, mo_tree **opened) {
  int status = mo_open_tree(places, criteria, &POLICY, opened);
  if (status == MO_DONE)
    status = open_parts(&(*opened)->parts, multiway, places->rows, criteria->k);
  if (status == MO_DONE) return status;
  mo_close_tree(*opened);
  *opened = NULL;
  return status;
}

void mo_multiway_cut(mo_tree *tree, int64_t start, int64_t stop, int64_t *attribute, int64_t *count,
                     int64_t *points) {
  int64_t stride = tree->rows.packed.of.stride;
  node here = {.rows = tree->rows.whole.rows + start * stride, .count = stop - start};
  *attribute = multiway_cut_of(here, count, &tree->rows.work, &tree->parts);
  memcpy(points, tree->parts.point, (size_t)*count * sizeof *points);
}
