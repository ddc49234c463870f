/* Groups of fewer than k rows, topped up with the rows that fit them best; the order of ties. */
#include <stdlib.h>

#include "splitting.h"

enum { DIGIT = 0xFFFF };

/* One stable pass of a radix sort, by 16 bits of a column's codes. */
static void sort_by(node here, field at, int shift, int64_t most, int64_t *place, cutter *work) {
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

/* Sort a node's rows by all their codes, so that ties do not depend on the source's order.
 *
 * By the sensitive ones first, which may tell millions of persons apart. */
int arrange_rows(node here, cutter *work) {
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

/* right[v] of an MO_TREE for first <= v < low: what v adds to the loss of the group. */
static void widen_down(const layout *of, int32_t a, int64_t first, int64_t low, int64_t high,
                       int64_t d, double now, double *right) {
  const double *step = of->step + of->first[a];
  double loss = now;
  for (int64_t v = low - 1; v >= first; v--) {
    if (v == 0) loss = width(of, a, v, high, d + 1);
    loss = step[v] > loss ? step[v] : loss;
    right[v] = loss - now;
  }
}

/* right[v] of an MO_TREE for high < v <= last: likewise. */
static void widen_up(const layout *of, int32_t a, int64_t low, int64_t high, int64_t last,
                     int64_t d, double now, double *right) {
  const double *step = of->step + of->first[a];
  double loss = now;
  for (int64_t v = high + 1; v <= last; v++) {
    if (low == 0) loss = width(of, a, low, v, d + 1);
    else loss = step[v - 1] > loss ? step[v - 1] : loss;
    right[v] = loss - now;
  }
}

/* Add to work->widening how much each of the rows rest widens attribute a of a group; work->right
 * holds it by code. */
static void add_widening(node group, node rest, int32_t a, cutter *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  int64_t d = tally(group, a, work);
  int64_t low = work->value[0], high = work->value[d - 1], first = low, last = high;
  for (int64_t i = 0; i < rest.count; i++) {
    int64_t v = code_of(rest.rows + i * of->stride, at);
    first = v < first ? v : first;
    last = v > last ? v : last;
  }
  if (first == last) return;
  double now = width(of, a, low, high, d), *right = work->right;
  if (of->kind[a] == MO_TREE) {
    for (int64_t v = low; v <= high; v++) right[v] = 0.0;
    widen_down(of, a, first, low, high, d, now, right);
    widen_up(of, a, low, high, last, d, now, right);
  } else {
    for (int64_t i = 0; i < rest.count; i++) {
      int64_t v = code_of(rest.rows + i * of->stride, at);
      right[v] = width(of, a, v < low ? v : low, v > high ? v : high, d + 1) - now;
    }
    for (int64_t j = 0; j < d; j++) right[work->value[j]] = 0.0;
  }
  for (int64_t i = 0; i < rest.count; i++)
    work->widening[i] += right[code_of(rest.rows + i * of->stride, at)];
}

/* Bring the first most rows of the least widening to the front; returns how many they are, one at
 * least: what losses beyond all numbers make no number of is not more. */
static int64_t take(node rest, double least, int64_t most, cutter *work) {
  size_t stride = (size_t)work->layout->stride;
  int64_t taken = 0, left = 0;
  for (int64_t i = 0; i < rest.count; i++) {
    const unsigned char *record = rest.rows + (size_t)i * stride;
    if (taken < most && !(work->widening[i] > least))
      memmove(rest.rows + (size_t)taken++ * stride, record, stride);
    else memcpy(work->others + (size_t)left++ * stride, record, stride);
  }
  memcpy(rest.rows + (size_t)taken * stride, work->others, (size_t)left * stride);
  return taken;
}

/* Bring into the group of the first middle rows those that widen it least, until it has k.
 *
 * One after another, ties by their order; those that widen it no more all at once. Returns how many
 * the group has; the rows left over keep their order. */
int64_t top_up(node here, int64_t middle, cutter *work) {
  const layout *of = work->layout;
  int64_t k = work->criteria->k;
  while (middle < k) {
    node group = {.rows = here.rows, .count = middle};
    node rest = {.rows = here.rows + middle * of->stride, .count = here.count - middle};
    for (int64_t i = 0; i < rest.count; i++) work->widening[i] = 0.0;
    for (int32_t a = 0; a < of->attributes; a++) add_widening(group, rest, a, work);
    double least = INFINITY;
    for (int64_t i = 0; i < rest.count; i++)
      least = work->widening[i] < least ? work->widening[i] : least;
    middle += take(rest, least, least > 0 ? 1 : k - middle, work);
  }
  return middle;
}
