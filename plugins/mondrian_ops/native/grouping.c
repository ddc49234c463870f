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

/* How much a row with code v widens attribute a of a group, where it is new to it. */
static double widening_by(const layout *of, int32_t a, reach group, int64_t v) {
  if (of->kind[a] != MO_SET && group.low <= v && v <= group.high && group.low > 0) return 0.0;
  int64_t low = v < group.low ? v : group.low, high = v > group.high ? v : group.high;
  return width(of, a, low, high, group.distinct + 1) - group.loss;
}

/* Note what attribute a of a group reaches over, and how much each row of rest widens it. */
static void open_reach(node group, node rest, int32_t a, cutter *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  int64_t d = tally(group, a, work);
  reach *told = &work->reaches[a];
  double *widening = work->widening + a * rest.count;
  *told = (reach){work->value[0], work->value[d - 1], d, 0.0};
  told->loss = width(of, a, told->low, told->high, d);
  for (int64_t j = 0; j < d; j++) work->histogram[work->value[j]] = 1;
  for (int64_t i = 0; i < rest.count; i++) {
    int64_t v = code_of(rest.rows + i * of->stride, at);
    widening[i] = work->histogram[v] ? 0.0 : widening_by(of, a, *told, v);
  }
  for (int64_t j = 0; j < d; j++) work->histogram[work->value[j]] = 0;
}

/* The same after a row with code new, which widened the group, came into it. */
static void widen(node rest, int32_t a, int64_t new, cutter *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  reach *told = &work->reaches[a];
  double *widening = work->widening + a * rest.count;
  told->low = new < told->low ? new : told->low;
  told->high = new > told->high ? new : told->high;
  told->loss = width(of, a, told->low, told->high, ++told->distinct);
  for (int64_t i = 0; i < rest.count; i++) {
    if (widening[i] == 0.0) continue;
    int64_t v = code_of(rest.rows + i * of->stride, at);
    widening[i] = v == new ? 0.0 : widening_by(of, a, *told, v);
  }
}

/* Add up how much each row of rest widens all attributes of the group, and find the least. */
static double add_up(node rest, const uint8_t *taken, double *total, cutter *work) {
  double least = INFINITY;
  memset(total, 0, (size_t)rest.count * sizeof *total);
  for (int32_t a = 0; a < work->layout->attributes; a++) {
    const double *widening = work->widening + a * rest.count;
    for (int64_t i = 0; i < rest.count; i++) total[i] += widening[i];
  }
  for (int64_t i = 0; i < rest.count; i++) least = !taken[i] && total[i] < least ? total[i] : least;
  return least;
}

/* Bring into the group of the first middle rows those that widen it least, until it has k.
 *
 * One after another, ties by their order; those that widen it no more all at once. Returns how many
 * the group has; all rows keep their order. */
int64_t top_up(node here, int64_t middle, cutter *work) {
  const layout *of = work->layout;
  int64_t k = work->criteria->k;
  if (middle >= k) return middle;
  node group = part_of(here, 0, middle, of), rest = part_of(here, middle, here.count, of);
  double *total = work->widening + of->attributes * rest.count;
  uint8_t *taken = work->taken;
  memset(taken, 0, (size_t)rest.count);
  for (int32_t a = 0; a < of->attributes; a++) open_reach(group, rest, a, work);
  for (int64_t missing = k - middle; missing > 0;) {
    double least = add_up(rest, taken, total, work);
    int64_t most = least > 0 ? 1 : missing, last = 0;
    for (int64_t i = 0; i < rest.count && most > 0; i++) {
      if (taken[i] || total[i] > least) continue;
      taken[last = i] = 1;
      missing--;
      most--;
    }
    for (int32_t a = 0; a < of->attributes; a++)
      if (work->widening[a * rest.count + last] > 0.0)
        widen(rest, a, code_of(rest.rows + last * of->stride, of->column[a]), work);
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
