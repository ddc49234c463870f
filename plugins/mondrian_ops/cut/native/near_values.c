/* Diversity of numbers: no stretch of near values holds more than 1/l of a class's rows.
 *
 * Code e is near code s <= e where e <= near_end[s]. A stretch begins at a code and ends with the
 * greatest one near it. Rows are counted by code, and only the codes that occur are looked at: a
 * column of numbers may have as many codes as rows. */
#include "near_values.h"

#include <string.h>

static const double TOLERANCE = 1e-12; /* l may be a fraction */

enum { FEW = 24 }; /* codes that are sorted by insertion */

static void sort_few(int32_t *codes, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    int32_t code = codes[i];
    int64_t at = i;
    for (; at > 0 && codes[at - 1] > code; at--) codes[at] = codes[at - 1];
    codes[at] = code;
  }
}

/* Sorts by one byte of each code. */
static void sort_by_byte(const int32_t *from, int32_t *into, int64_t count, int shift) {
  int64_t place[257] = {0};
  for (int64_t i = 0; i < count; i++) place[((from[i] >> shift) & 255) + 1]++;
  for (int byte = 0; byte < 256; byte++) place[byte + 1] += place[byte];
  for (int64_t i = 0; i < count; i++) into[place[(from[i] >> shift) & 255]++] = from[i];
}

/* Sorts the list of a tally, whose codes are not negative. */
void sort_codes(mo_tally *tally) {
  int64_t count = tally->distinct;
  if (count <= FEW) {
    sort_few(tally->listed, count);
    return;
  }
  int32_t greatest = 0;
  for (int64_t i = 0; i < count; i++) greatest |= tally->listed[i];
  for (int shift = 0; shift < 32 && greatest >> shift; shift += 8) {
    sort_by_byte(tally->listed, tally->others, count, shift);
    int32_t *sorted = tally->others;
    tally->others = tally->listed;
    tally->listed = sorted;
  }
}

/* Whether the rows of the fullest stretch are at most 1/level of those that count, if any does. */
int is_spread(int64_t most, int64_t counted, double level) {
  return counted > 0 && (double)most * level <= (double)counted * (1 + TOLERANCE);
}

/* tally_satisfies, of an MO_NEAR. */
int spread_satisfies(mo_tally *tally, const mo_criteria *criteria, int64_t j) {
  const int32_t *near_end = criteria->near_end + criteria->near_first[j];
  const int64_t *counts = tally->counts;
  int64_t most = 0, within = 0, next = 0, i = 0, distinct = tally->distinct, total = tally->total;
  sort_codes(tally);
  const int32_t *listed = tally->listed;
  if (criteria->uncounted[j] && distinct > 0 && listed[0] == 0) {
    total -= counts[0];
    next = i = 1;
  }
  for (; i < distinct; i++) {
    while (next < distinct && listed[next] <= near_end[listed[i]]) within += counts[listed[next++]];
    if (within > most) most = within;
    within -= counts[listed[i]];
  }
  return is_spread(most, total, criteria->level[j]);
}

/* Stretches of a node, while rows join and leave */

int open_stretches(stretches *opened, int64_t codes) {
  memset(opened, 0, sizeof *opened);
  if (codes == 0) return MO_DONE;
  int64_t leaves = 1;
  while (leaves < codes) leaves *= 2;
  opened->begin = zeros(codes, sizeof *opened->begin);
  for (int side = 0; side < 2; side++) {
    opened->most[side] = zeros(2 * leaves, sizeof **opened->most);
    opened->added[side] = zeros(2 * leaves, sizeof **opened->added);
    if (!opened->most[side] || !opened->added[side]) return MO_NO_MEMORY;
  }
  return opened->begin ? MO_DONE : MO_NO_MEMORY;
}

void close_stretches(stretches *closed) {
  free(closed->begin);
  for (int side = 0; side < 2; side++) {
    free(closed->most[side]);
    free(closed->added[side]);
  }
}

/* Begins anew, without rows, for some ascending codes. */
void clear_stretches(stretches *of, const int32_t *listed, int64_t count, const int32_t *near_end) {
  for (of->leaves = 1; of->leaves < count;) of->leaves *= 2;
  for (int side = 0; side < 2; side++) {
    memset(of->most[side], 0, (size_t)(2 * of->leaves) * sizeof **of->most);
    memset(of->added[side], 0, (size_t)(2 * of->leaves) * sizeof **of->added);
  }
  for (int64_t i = 0, first = 0; i < count; i++) {
    while (near_end[listed[first]] < listed[i]) first++;
    of->begin[i] = (int32_t)first;
  }
}

/* Adds rows of the code at a place to a side: they are in each stretch that begins at one of the
 * places from begin on and reaches the code.
 *
 * A tree has a leaf for each stretch. A node has what was added to all leaves below it, and the
 * most rows that a leaf below it has, without what was added above. */
void add_to_stretches(stretches *of, int side, int64_t place, int32_t rows) {
  int32_t *most = of->most[side], *added = of->added[side];
  int64_t low = of->begin[place] + of->leaves, high = place + of->leaves;
  int64_t left = low, right = high;
  for (; left <= right; left /= 2, right /= 2) {
    if (left % 2 == 1) {
      most[left] += rows;
      added[left++] += rows;
    }
    if (right % 2 == 0) {
      most[right] += rows;
      added[right--] += rows;
    }
  }
  for (low /= 2, high /= 2; low > 0; low /= 2, high /= 2) {
    int32_t one = most[2 * low], other = most[2 * low + 1];
    most[low] = (one > other ? one : other) + added[low];
    if (high == low) continue;
    one = most[2 * high];
    other = most[2 * high + 1];
    most[high] = (one > other ? one : other) + added[high];
  }
}
