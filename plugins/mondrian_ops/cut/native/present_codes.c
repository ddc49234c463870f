/* Which codes of each narrow attribute a node has: a word for each, bit v for code v.
 *
 * A score by medians needs the least and the greatest code of each attribute, and how many there
 * are; it counts rows of the attribute that is cut only. Codes below FEW are looked up for 16
 * attributes at once, as a record begins with them, a byte each. Example, of four attributes:
 *
 *     record                    3  0  9 15
 *     LOW[code]             2^3=8  1  0  0      codes 0 to 7
 *     HIGH[code]                0  0  2 128     codes 8 to 15, of which 9 is the second
 *
 * Both are ORed over all records: two look-ups and two ORs for each. Bytes of a record behind
 * those attributes are looked up, too, and what is found there is not read.
 *
 * The rows of a small node are counted in a register as well, see count_few. */
#include <assert.h>

#include "splitting.h"

#include "bytes.h" /* after headers that name other things bytes */

#ifndef WITHOUT_LOOK_UPS
static const unsigned char LOW[FEW] = {1, 2, 4, 8, 16, 32, 64, 128};
static const unsigned char HIGH[FEW] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128};

/* The codes of the attributes in bytes first to first + FEW - 1 of a record. A record is followed
 * by room for another one, so the bytes are there even where the last record ends before them. */
ALWAYS_INLINE void look_up_few(node here, int32_t first, size_t stride, uint64_t *present,
                               int32_t attributes) {
  bytes low = load(LOW), high = load(HIGH);
  const unsigned char *record = here.rows + first;
  bytes codes = load(record), found_low = look_up(low, codes), found_high = look_up(high, codes);
#pragma GCC unroll 4
  for (int64_t i = 1; i < here.count; i++) {
    codes = load(record += stride);
    found_low = either(found_low, look_up(low, codes));
    found_high = either(found_high, look_up(high, codes));
  }
  unsigned char below_8[FEW], from_8[FEW];
  store(below_8, found_low);
  store(from_8, found_high);
  for (int32_t j = 0; j < attributes && j < FEW; j++)
    present[j] = below_8[j] | (uint64_t)from_8[j] << 8;
}
#endif

/* The codes of the attributes in bytes first to stop of a record. */
static void mark_each(node here, int32_t first, int32_t stop, size_t stride, uint64_t *present) {
  for (int32_t j = first; j < stop; j++) {
    const unsigned char *code = here.rows + j;
    uint64_t found = 0;
    for (int64_t i = 0; i < here.count; i++, code += stride) found |= UINT64_C(1) << *code;
    present[j] = found;
  }
}

/* Writes which codes the rows of a node have to work->present, for the attributes that a record
 * begins with. */
void find_present(node here, workspace *work) {
  const layout *of = work->layout;
  size_t stride = (size_t)of->stride;
  int32_t looked_up = 0;
  assert(here.count > 0 && !here.members);
#ifndef WITHOUT_LOOK_UPS
  for (; looked_up < of->few; looked_up += FEW) {
    int32_t left = of->few - looked_up;
    assert(looked_up + FEW <= 2 * of->stride);
    if (stride == 16) look_up_few(here, looked_up, 16, work->present + looked_up, left);
    else look_up_few(here, looked_up, stride, work->present + looked_up, left);
  }
  looked_up = of->few;
#endif
  mark_each(here, looked_up, of->narrow, stride, work->present);
}

/* Writes how many rows of a small node have a code of at most 0, 1, ... to below (FEW,), for an
 * attribute of few codes; returns 0, and writes nothing, for other nodes.
 *
 * Each code adds a register whose byte at the code is 1. Sums of the bytes before each come by
 * moving and adding 4 times: of the counts 1 2 0 3, by one place, 1 3 2 3, then by two, 1 3 3 6. */
int count_few(node here, field at, unsigned char *below, workspace *work) {
  if (here.members || at.codes > FEW || here.count > UINT8_MAX) return 0;
  size_t stride = (size_t)work->layout->stride;
  const unsigned char *code = here.rows + at.offset;
#ifdef WITHOUT_LOOK_UPS
  memset(below, 0, FEW);
  for (int64_t i = 0; i < here.count; i++, code += stride) below[*code]++;
  for (int v = 1; v < FEW; v++) below[v] = (unsigned char)(below[v] + below[v - 1]);
#else
  static const unsigned char ONE[2 * FEW - 1] = {[FEW - 1] = 1};
  bytes rows = load(ONE + FEW - 1 - *code);
  for (int64_t i = 1; i < here.count; i++)
    rows = sum(rows, load(ONE + FEW - 1 - *(code += stride)));
  rows = sum(rows, MOVED(rows, 1));
  rows = sum(rows, MOVED(rows, 2));
  rows = sum(rows, MOVED(rows, 4));
  rows = sum(rows, MOVED(rows, 8));
  store(below, rows);
#endif
  assert(below[FEW - 1] == here.count);
  return 1;
}
