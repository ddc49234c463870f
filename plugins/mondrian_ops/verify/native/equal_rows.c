/* Which rows of a release are equal: runs of neighbours, then groups of equal keys. A hash only
 * says where to look: keys are equal where all their bits are. */
#include "recount.h"

#include <string.h>

/* Rows at a time, of which what is computed stays in the first cache. */
enum { BLOCK = 2048 };

/* Slots of so many rows ahead are fetched into the cache. */
enum { AHEAD = 16 };

static int64_t block_from(int64_t start, int64_t rows) {
  return rows - start < BLOCK ? rows - start : BLOCK;
}

int64_t mo_equal_runs(const int32_t *const *places, int64_t columns, int64_t rows,
                      int32_t *starts) {
  uint8_t differs[BLOCK];
  int64_t runs = 0;
  for (int64_t start = 0; start < rows; start += BLOCK) {
    int64_t length = block_from(start, rows);
    memset(differs, 0, sizeof differs);
    differs[0] = start == 0;
    for (int64_t a = 0; a < columns; a++) {
      const int32_t *column = places[a] + start;
      for (int64_t i = start == 0; i < length; i++) differs[i] |= column[i] != column[i - 1];
    }
    for (int64_t i = 0; i < length; i++) {
      starts[runs] = (int32_t)(start + i);
      runs += differs[i];
    }
  }
  return runs;
}

/* Unsigned subtraction wraps around, so that the distance is right whatever the sign. */
#define DISTANCES(number_type)                                                                     \
  for (int64_t i = 0; i < rows; i++) {                                                             \
    number_type distance = (number_type)(((const number_type *)numbers)[i] - (number_type)least);  \
    if ((uint64_t)distance >= (uint64_t)size) return MO_OUT_OF_BOUNDS;                             \
    places[i] = (int32_t)distance;                                                                 \
    met[distance] = 1;                                                                             \
  }                                                                                                \
  return MO_DONE

int mo_distances(const void *numbers, int64_t number_bytes, int64_t rows, uint64_t least,
                 int64_t size, int32_t *places, uint8_t *met) {
  switch (number_bytes) {
  case 1:
    DISTANCES(uint8_t);
  case 2:
    DISTANCES(uint16_t);
  case 4:
    DISTANCES(uint32_t);
  default:
    DISTANCES(uint64_t);
  }
}

#define JOIN(code_type)                                                                            \
  do {                                                                                             \
    const code_type *column = (const code_type *)codes + start;                                    \
    for (int64_t i = 0; i < length; i++) {                                                         \
      outside |= column[i] >= radix;                                                               \
      keys[start + i] = keys[start + i] * radix + column[i];                                       \
    }                                                                                              \
  } while (0)

/* Adds the codes of one column to the keys of a block; returns whether one is not below radix. */
static int join_block(const void *codes, int64_t code_bytes, uint64_t radix, int64_t start,
                      int64_t length, uint64_t *keys) {
  int outside = 0;
  switch (code_bytes) {
  case 1:
    JOIN(uint8_t);
    break;
  case 2:
    JOIN(uint16_t);
    break;
  default:
    JOIN(uint32_t);
  }
  return outside;
}

int mo_join_codes(const void *const *codes, const int64_t *code_bytes, const uint64_t *radices,
                  int64_t columns, int64_t rows, uint64_t *keys) {
  for (int64_t start = 0; start < rows; start += BLOCK) {
    int64_t length = block_from(start, rows);
    for (int64_t a = 0; a < columns; a++)
      if (join_block(codes[a], code_bytes[a], radices[a], start, length, keys))
        return MO_OUT_OF_BOUNDS;
  }
  return MO_DONE;
}

/* The number of each key's group, by open addressing. A slot is 0 or holds the number of a group,
 * from 1 on, in its lower half, and in its upper half that of the key's hash. */
typedef struct {
  uint64_t *slots;
  uint64_t last;
  const uint64_t *keys;
  int32_t *first; /* (groups,): the first row of each group */
  int64_t groups;
} key_table;

static uint64_t hash(uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  key ^= key >> 32;
  return key * 0xD6E8FEB86659FD93u;
}

static uint64_t slot_of(const key_table *table, uint64_t hashed) {
  return hashed >> 20 & table->last;
}

static int32_t group_of(key_table *table, int64_t row) {
  uint64_t key = table->keys[row], hashed = hash(key), upper = hashed & 0xFFFFFFFF00000000u;
  uint64_t slot = slot_of(table, hashed), held;
  for (; (held = table->slots[slot]); slot = (slot + 1) & table->last) {
    int64_t group = (int64_t)(held & 0xFFFFFFFFu) - 1;
    if ((held & 0xFFFFFFFF00000000u) == upper && table->keys[table->first[group]] == key)
      return (int32_t)group;
  }
  table->slots[slot] = upper | (uint64_t)(table->groups + 1);
  table->first[table->groups] = (int32_t)row;
  return (int32_t)table->groups++;
}

/* A counting sort of the rows by their groups. */
static int sort_by_group(const int32_t *group_of_row, int64_t rows, int64_t groups, int32_t *order,
                         int32_t *starts) {
  int32_t *following = zeros(groups, sizeof *following);
  if (!following) return MO_NO_MEMORY;
  for (int64_t i = 0; i < rows; i++) following[group_of_row[i]]++;
  int32_t before = 0;
  for (int64_t group = 0; group < groups; group++) {
    starts[group] = before;
    before += following[group];
    following[group] = starts[group];
  }
  for (int64_t i = 0; i < rows; i++) order[following[group_of_row[i]]++] = (int32_t)i;
  free(following);
  return MO_DONE;
}

int mo_group_keys(const uint64_t *keys, int64_t rows, int32_t *order, int32_t *starts,
                  int64_t *groups) {
  uint64_t size = 1;
  while (size < 2 * (uint64_t)rows) size *= 2;
  /* The first rows are kept in starts, which is filled later. */
  key_table table = {
      .slots = zeros((int64_t)size, sizeof *table.slots),
      .last = size - 1,
      .keys = keys,
      .first = starts,
  };
  int32_t *group_of_row = zeros(rows, sizeof *group_of_row);
  int status = table.slots && group_of_row ? MO_DONE : MO_NO_MEMORY;
  for (int64_t i = 0; i < rows && status == MO_DONE; i++) {
    if (i + AHEAD < rows)
      __builtin_prefetch(table.slots + slot_of(&table, hash(keys[i + AHEAD])), 1);
    group_of_row[i] = group_of(&table, i);
  }
  free(table.slots);
  if (status == MO_DONE) status = sort_by_group(group_of_row, rows, table.groups, order, starts);
  *groups = table.groups;
  free(group_of_row);
  return status;
}
