/* Integers within a small range: which of them occur, how often, and what a table has for each. */
#include "kernels.h"

#include "bytes.h" /* after headers that name other things bytes */

#include <string.h>

/* Some values: their distances from the least one are below size. An entry of a table stands for
 * each distance; the one behind these, for missing values. */
typedef struct {
  const void *values; /* (count,) */
  const uint8_t *valid; /* Arrow's bits, of which that of the first value is bit first; or NULL */
  int64_t first, count;
  uint64_t least, size;
} small_range;

/* Distances wrap around within the width of the values, so they are right for signed ones, too. */
ALWAYS_INLINE uint64_t distance(int64_t width, const void *values, uint64_t least, int64_t i) {
  switch (width) {
  case 1:
    return (uint8_t)(((const uint8_t *)values)[i] - (uint8_t)least);
  case 2:
    return (uint16_t)(((const uint16_t *)values)[i] - (uint16_t)least);
  case 4:
    return ((const uint32_t *)values)[i] - (uint32_t)least;
  default:
    return ((const uint64_t *)values)[i] - least;
  }
}

/* Whether the values from start to stop are all within the range. Without an end in the middle of
 * the loop, and in their own width, compilers look at many at once. */
ALWAYS_INLINE int all_within(int64_t width, const small_range *in, int64_t start, int64_t stop) {
  uint8_t most_1 = 0;
  uint16_t most_2 = 0;
  uint32_t most_4 = 0;
  uint64_t most = 0;
  for (int64_t i = start; i < stop && width == 1; i++) {
    uint8_t entry = (uint8_t)distance(1, in->values, in->least, i);
    most_1 = entry > most_1 ? entry : most_1;
  }
  for (int64_t i = start; i < stop && width == 2; i++) {
    uint16_t entry = (uint16_t)distance(2, in->values, in->least, i);
    most_2 = entry > most_2 ? entry : most_2;
  }
  for (int64_t i = start; i < stop && width == 4; i++) {
    uint32_t entry = (uint32_t)distance(4, in->values, in->least, i);
    most_4 = entry > most_4 ? entry : most_4;
  }
  for (int64_t i = start; i < stop && width == 8; i++) {
    uint64_t entry = distance(8, in->values, in->least, i);
    most = entry > most ? entry : most;
  }
  return (most | most_4 | most_2 | most_1) < in->size;
}

enum { BLOCK = 1 << 12 }; /* values that are in the nearest cache when they are looked at again */

/* Does work with the entry of each value; returns MO_OUT_OF_BOUNDS at one beyond the range. The
 * copy is what the compiler keeps in registers, whatever work writes to. */
#define FOR_ENTRIES(width, work)                                                                   \
  const small_range in = *of;                                                                      \
  if (!in.valid) {                                                                                 \
    for (int64_t start = 0; start < in.count; start += BLOCK) {                                    \
      int64_t stop = in.count - start < BLOCK ? in.count : start + BLOCK;                          \
      if (!all_within(width, &in, start, stop)) return MO_OUT_OF_BOUNDS;                           \
      for (int64_t i = start; i < stop; i++) {                                                     \
        uint64_t entry = distance(width, in.values, in.least, i);                                  \
        (work);                                                                                    \
      }                                                                                            \
    }                                                                                              \
    return MO_DONE;                                                                                \
  }                                                                                                \
  for (int64_t i = 0, bit = in.first; i < in.count; i++, bit++) {                                  \
    uint64_t entry = in.size;                                                                      \
    if (in.valid[bit >> 3] >> (bit & 7) & 1) {                                                     \
      entry = distance(width, in.values, in.least, i);                                             \
      if (entry >= in.size) return MO_OUT_OF_BOUNDS;                                               \
    }                                                                                              \
    (work);                                                                                        \
  }                                                                                                \
  return MO_DONE

/* Returns what loop does, which is compiled for each width. */
#define FOR_WIDTH(width, loop, ...)                                                                \
  switch (width) {                                                                                 \
  case 1:                                                                                          \
    return loop(1, __VA_ARGS__);                                                                   \
  case 2:                                                                                          \
    return loop(2, __VA_ARGS__);                                                                   \
  case 4:                                                                                          \
    return loop(4, __VA_ARGS__);                                                                   \
  default:                                                                                         \
    return loop(8, __VA_ARGS__);                                                                   \
  }

ALWAYS_INLINE int mark(int64_t width, const small_range *of, uint8_t *occurs) {
  FOR_ENTRIES(width, occurs[entry] = 1);
}

/* As mark; values of a block add nothing where all of the range occurred before. */
ALWAYS_INLINE int mark_blocks(int64_t width, const small_range *of, uint8_t *occurs) {
  int is_full = 0;
  for (int64_t start = 0; start < of->count; start += BLOCK) {
    int64_t stop = of->count - start < BLOCK ? of->count : start + BLOCK;
    if (!all_within(width, of, start, stop)) return MO_OUT_OF_BOUNDS;
    if (is_full) continue;
    for (int64_t i = start; i < stop; i++) occurs[distance(width, of->values, of->least, i)] = 1;
    is_full = of->size <= BLOCK && !memchr(occurs, 0, (size_t)of->size);
  }
  return MO_DONE;
}

int mo_mark_values(const void *values, int64_t width, int64_t count, const uint8_t *valid,
                   int64_t first, uint64_t least, uint64_t size, uint8_t *occurs) {
  small_range of = {values, valid, first, count, least, size};
  if (valid) FOR_WIDTH(width, mark, &of, occurs)
  FOR_WIDTH(width, mark_blocks, &of, occurs)
}

ALWAYS_INLINE int count_entries(int64_t width, const small_range *of, int64_t *rows) {
  FOR_ENTRIES(width, rows[entry]++);
}

int mo_tally_values(const void *values, int64_t width, int64_t count, const uint8_t *valid,
                    int64_t first, uint64_t least, uint64_t size, int64_t *rows) {
  small_range of = {values, valid, first, count, least, size};
  FOR_WIDTH(width, count_entries, &of, rows)
}

ALWAYS_INLINE int look_up_1(int64_t width, const small_range *of, const uint8_t *table,
                            uint8_t *found) {
  FOR_ENTRIES(width, found[i] = table[entry]);
}

#ifndef WITHOUT_LOOK_UPS
enum { FEW = 128 }; /* entries that are looked up in registers */

/* look_up_1 of bytes, none of which is missing, in a table of at most FEW entries: each register
 * has BYTES of these, and entries of another one find 0 there. */
static int look_up_in_registers(const small_range *of, const uint8_t *table, uint8_t *found) {
  uint8_t padded[FEW] = {0};
  bytes tables[FEW / BYTES], least = repeated((uint8_t)of->least);
  int registers = (int)((of->size + BYTES - 1) / BYTES);
  const uint8_t *values = of->values;
  memcpy(padded, table, of->size);
  for (int t = 0; t < registers; t++) tables[t] = load(padded + t * BYTES);
  for (int64_t start = 0; start < of->count; start += BLOCK) {
    int64_t stop = of->count - start < BLOCK ? of->count : start + BLOCK, i = start;
    if (!all_within(1, of, start, stop)) return MO_OUT_OF_BOUNDS;
    for (; i + BYTES <= stop; i += BYTES) {
      bytes entry = difference(load(values + i), least);
      bytes all = look_up_within(tables[0], entry);
      for (int t = 1; t < registers; t++) {
        bytes own = unlike(entry, repeated((unsigned char)(t * BYTES))); /* below BYTES: here */
        all = either(all, look_up_within(tables[t], own));
      }
      store(found + i, all);
    }
    for (; i < stop; i++) found[i] = table[distance(1, values, of->least, i)];
  }
  return MO_DONE;
}
#endif

ALWAYS_INLINE int look_up_2(int64_t width, const small_range *of, const uint16_t *table,
                            uint16_t *found) {
  FOR_ENTRIES(width, found[i] = table[entry]);
}

ALWAYS_INLINE int look_up_4(int64_t width, const small_range *of, const uint32_t *table,
                            uint32_t *found) {
  FOR_ENTRIES(width, found[i] = table[entry]);
}

ALWAYS_INLINE int look_up_8(int64_t width, const small_range *of, const uint64_t *table,
                            uint64_t *found) {
  FOR_ENTRIES(width, found[i] = table[entry]);
}

int mo_look_up(const void *values, int64_t width, int64_t count, const uint8_t *valid,
               int64_t first, uint64_t least, uint64_t size, const void *table, int64_t entry_bytes,
               void *found) {
  small_range of = {values, valid, first, count, least, size};
#ifndef WITHOUT_LOOK_UPS
  if (entry_bytes == 1 && width == 1 && !valid && 0 < size && size <= FEW)
    return look_up_in_registers(&of, table, found);
#endif
  switch (entry_bytes) {
  case 1:
    FOR_WIDTH(width, look_up_1, &of, table, found)
  case 2:
    FOR_WIDTH(width, look_up_2, &of, table, found)
  case 4:
    FOR_WIDTH(width, look_up_4, &of, table, found)
  default:
    FOR_WIDTH(width, look_up_8, &of, table, found)
  }
}

ALWAYS_INLINE int count_pairs(int64_t width, const small_range *of, const int32_t *codes,
                              uint64_t size, int64_t *rows) {
  const small_range in = *of;
  for (int64_t i = 0; i < in.count; i++) {
    uint64_t leaf = distance(width, in.values, 0, i), code = (uint64_t)codes[i];
    if (leaf >= in.size || code >= size) return MO_OUT_OF_BOUNDS;
    rows[leaf * size + code]++;
  }
  return MO_DONE;
}

int mo_count_pairs(const void *leaf, int64_t leaf_bytes, const int32_t *codes, int64_t count,
                   int64_t leaves, int64_t size, int64_t *rows) {
  small_range of = {leaf, NULL, 0, count, 0, (uint64_t)leaves};
  FOR_WIDTH(leaf_bytes, count_pairs, &of, codes, (uint64_t)size, rows)
}
