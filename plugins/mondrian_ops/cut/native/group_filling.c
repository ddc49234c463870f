/* Filling groups of fewer than k rows with the rows that fit best; the order that decides ties. */
#include <assert.h>
#include <stdlib.h>

#include "splitting.h"

enum { DIGIT = 0xFFFF };

/* One stable pass of a radix sort, by 16 bits of a column's codes. */
static void sort_by(node here, field at, int shift, int64_t most, int64_t *place, workspace *work) {
  size_t stride = (size_t)work->layout->stride;
  int64_t digits = most >> shift < DIGIT ? most >> shift : DIGIT;
  memset(place, 0, (size_t)(digits + 2) * sizeof *place);
  for (int64_t i = 0; i < here.count; i++)
    place[((code_of(here.rows + (size_t)i * stride, at) >> shift) & DIGIT) + 1]++;
  for (int64_t digit = 0; digit < digits; digit++) place[digit + 1] += place[digit];
  for (int64_t i = 0; i < here.count; i++) {
    const unsigned char *record = here.rows + (size_t)i * stride;
    int64_t to = place[(code_of(record, at) >> shift) & DIGIT]++;
    memcpy(work->others + (size_t)to * stride, record, stride);
  }
  memcpy(here.rows, work->others, (size_t)here.count * stride);
}

/* Sorts a node's rows by all their codes, so that ties do not depend on the source's order.
 *
 * The sensitive columns, which may tell millions of persons apart, are sorted by first: they
 * matter least. */
int sort_by_all_codes(node here, workspace *work) {
  const layout *of = work->layout;
  int64_t *place = malloc((DIGIT + 2) * sizeof *place);
  if (!place) return MO_NO_MEMORY;
  int32_t columns = of->attributes + of->sensitive;
  for (int32_t column = 0; column < columns; column++) {
    field at = of->column[(column + of->attributes) % columns];
    int64_t most = 0;
    for (int64_t i = 0; i < here.count; i++) {
      int64_t code = code_of(here.rows + i * of->stride, at);
      most = code > most ? code : most;
    }
    for (int shift = 0; shift < 32 && (shift == 0 || most >> shift); shift += 16)
      sort_by(here, at, shift, most, place, work);
  }
  free(place);
  return MO_DONE;
}

/* The loss per row that a row with a new code v adds to a group by attribute a. */
static double widening_of(const layout *of, int32_t a, reach group, int64_t v) {
  if (of->kind[a] != MO_SET && group.low <= v && v <= group.high && group.low > 0) return 0.0;
  int64_t low = v < group.low ? v : group.low, high = v > group.high ? v : group.high;
  return width(of, a, low, high, group.distinct + 1) - group.loss;
}

/* Writes how much each row of rest widens the group in an attribute of few codes, by its code. */
static void look_up_widening(node rest, int32_t a, workspace *work) {
  field at = work->layout->column[a];
  const double *by_code = work->by_code + at.offset * FEW;
  double *widening = work->widening + a * rest.count;
  const unsigned char *code = rest.rows + at.offset;
  for (int64_t i = 0; i < rest.count; i++, code += work->layout->stride)
    widening[i] = by_code[*code];
}

/* The codes that the tables of an attribute have: of a block fewer than its column has room for. */
static int64_t listed_codes(const layout *of, int32_t a) { return of->first[a + 1] - of->first[a]; }

/* Writes the reach of a group in an attribute of few codes, whose codes find_present has found, and
 * how much each row of rest widens it: by code first, as there are fewer codes than rows. */
static void measure_few(node rest, int32_t a, workspace *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  uint64_t present = work->present[at.offset];
  double *by_code = work->by_code + at.offset * FEW;
  reach bounds = reach_of(of, a, present);
  work->reaches[a] = bounds;
  for (int64_t v = 0; v < listed_codes(of, a); v++)
    by_code[v] = present >> v & 1 ? 0.0 : widening_of(of, a, bounds, v);
  look_up_widening(rest, a, work);
}

/* The same of any attribute. */
static void measure_any(node group, node rest, int32_t a, workspace *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  int64_t d = tally(group, a, work);
  reach *bounds = &work->reaches[a];
  double *widening = work->widening + a * rest.count;
  *bounds = (reach){work->value[0], work->value[d - 1], d, 0.0};
  bounds->loss = width(of, a, bounds->low, bounds->high, d);
  for (int64_t j = 0; j < d; j++) work->histogram[work->value[j]] = 1;
  for (int64_t i = 0; i < rest.count; i++) {
    int64_t v = code_of(rest.rows + i * of->stride, at);
    widening[i] = work->histogram[v] ? 0.0 : widening_of(of, a, *bounds, v);
  }
  for (int64_t j = 0; j < d; j++) work->histogram[work->value[j]] = 0;
}

/* Updates the same after a row with code new, which widened the group, joined it. */
static void update_widening(node rest, int32_t a, int64_t new, workspace *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  reach *bounds = &work->reaches[a];
  bounds->low = new < bounds->low ? new : bounds->low;
  bounds->high = new > bounds->high ? new : bounds->high;
  bounds->loss = width(of, a, bounds->low, bounds->high, ++bounds->distinct);
  if (at.codes <= FEW) {
    double *by_code = work->by_code + at.offset * FEW;
    by_code[new] = 0.0;
    for (int64_t v = 0; v < listed_codes(of, a); v++)
      if (by_code[v] != 0.0) by_code[v] = widening_of(of, a, *bounds, v);
    look_up_widening(rest, a, work);
    return;
  }
  double *widening = work->widening + a * rest.count;
  for (int64_t i = 0; i < rest.count; i++) {
    if (widening[i] == 0.0) continue;
    int64_t v = code_of(rest.rows + i * of->stride, at);
    widening[i] = v == new ? 0.0 : widening_of(of, a, *bounds, v);
  }
}

/* Sums how much each row of rest widens the group over all attributes; returns the least sum of
 * rows not taken. */
static double sum_widenings(node rest, const uint8_t *taken, double *total, workspace *work) {
  double least = INFINITY;
  memset(total, 0, (size_t)rest.count * sizeof *total);
  for (int32_t a = 0; a < work->layout->attributes; a++) {
    const double *widening = work->widening + a * rest.count;
    for (int64_t i = 0; i < rest.count; i++) total[i] += widening[i];
  }
  for (int64_t i = 0; i < rest.count; i++) least = !taken[i] && total[i] < least ? total[i] : least;
  return least;
}

/* Fills the group of the first middle rows of a node up to k rows, with those that widen it
 * least.
 *
 * Rows join one by one, the first of equal ones; rows that do not widen the group join at once.
 * Returns the rows of the group; within it and outside of it rows keep their order. */
int64_t fill_group(node here, int64_t middle, workspace *work) {
  const layout *of = work->layout;
  int64_t k = work->criteria->k;
  if (middle >= k) return middle;
  node group = node_slice(here, 0, middle, of), rest = node_slice(here, middle, here.count, of);
  double *total = work->widening + of->attributes * rest.count;
  uint8_t *taken = work->taken;
  assert(middle < k && here.count >= 2 * k);
  memset(taken, 0, (size_t)rest.count);
  find_present(group, work);
  for (int32_t a = 0; a < of->attributes; a++) {
    if (of->column[a].codes <= FEW) measure_few(rest, a, work);
    else measure_any(group, rest, a, work);
  }
  for (int64_t missing = k - middle; missing > 0;) {
    double least = sum_widenings(rest, taken, total, work);
    int64_t most = least > 0 ? 1 : missing, last = 0;
    for (int64_t i = 0; i < rest.count && most > 0; i++) {
      if (taken[i] || total[i] > least) continue;
      taken[last = i] = 1;
      missing--;
      most--;
    }
    for (int32_t a = 0; a < of->attributes; a++)
      if (work->widening[a * rest.count + last] > 0.0)
        update_widening(rest, a, code_of(rest.rows + last * of->stride, of->column[a]), work);
  }
  size_t stride = (size_t)of->stride;
  unsigned char *front = rest.rows, *back = work->others;
  for (int64_t i = 0; i < rest.count; i++) {
    const unsigned char *record = rest.rows + (size_t)i * stride;
    unsigned char **to = taken[i] ? &front : &back;
    memmove(*to, record, stride);
    *to += stride;
  }
  memcpy(front, work->others, (size_t)(back - work->others));
  return k;
}
