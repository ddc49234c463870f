/* Counting packed combinations of codes by hashing.
 *
 * The table has two slots for each combination; only the slots of distinct combinations are
 * touched, so that few of them stay in the caches. */
#include "kernels.h"

#include <string.h>

enum { POLLED = 1 << 16 }; /* combinations between two looks at the flag that stops a kernel */

static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u;

/* The distinct combinations so far, and the slots that hold their numbers, -1 where free. */
typedef struct {
  uint64_t *known; /* (wide, n) */
  int64_t wide;
  int64_t n;
  int32_t *slots;
  uint64_t last;
  int32_t found;
} hash_table;

static int allocate_slots(hash_table *table) {
  uint64_t slots = 1;
  while (slots < 2 * (uint64_t)table->n) slots *= 2;
  table->last = slots - 1;
  table->slots = malloc(slots * sizeof *table->slots);
  if (!table->slots) return MO_NO_MEMORY;
  memset(table->slots, 0xff, slots * sizeof *table->slots);
  return MO_DONE;
}

static uint64_t hash(const hash_table *table, int64_t number) {
  uint64_t mixed = 0;
  for (int64_t w = 0; w < table->wide; w++) {
    mixed = (mixed ^ table->known[w * table->n + number]) * GOLDEN;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

static int same(const hash_table *table, int64_t one, int64_t other) {
  int found = 1;
  for (int64_t w = 0; w < table->wide; w++)
    found &= table->known[w * table->n + one] == table->known[w * table->n + other];
  return found;
}

/* The number of the combination stored behind the known ones: that of its equal or, if it is new,
 * its own; it is known from now on. */
static int32_t number_of(hash_table *table) {
  uint64_t slot = hash(table, table->found) & table->last;
  int32_t number;
  while ((number = table->slots[slot]) >= 0 && !same(table, number, table->found))
    slot = (slot + 1) & table->last;
  if (number >= 0) return number;
  table->slots[slot] = table->found;
  return table->found++;
}

/* Replaces the codes of the combination stored behind the known ones: code c of column a becomes
 * tables[first[a] + c]. places (columns, 3): word, shift and mask of a column. */
static int replace(hash_table *table, const uint64_t *places, int64_t columns,
                   const uint64_t *tables, const int64_t *first) {
  for (int64_t a = 0; a < columns; a++) {
    const uint64_t *place = places + 3 * a;
    uint64_t *word = table->known + place[0] * (uint64_t)table->n + table->found;
    uint64_t code = *word >> place[1] & place[2];
    if (code >= (uint64_t)(first[a + 1] - first[a])) return MO_OUT_OF_BOUNDS;
    *word ^= (code ^ tables[(uint64_t)first[a] + code]) << place[1];
  }
  return MO_DONE;
}

int mo_recode(const uint64_t *words, int64_t wide, int64_t n, const int64_t *rows,
              const uint64_t *places, int64_t columns, const uint64_t *tables, const int64_t *first,
              uint64_t *known, int64_t *total, int64_t *distinct) {
  hash_table table = {.known = known, .wide = wide, .n = n};
  int status = allocate_slots(&table);
  for (int64_t i = 0; i < n && status == MO_DONE; i++) {
    if (i % POLLED == 0 && stopped()) {
      status = MO_STOPPED;
      break;
    }
    for (int64_t w = 0; w < wide; w++) known[w * n + table.found] = words[w * n + i];
    status = replace(&table, places, columns, tables, first);
    if (status != MO_DONE) break;
    int32_t before = table.found, number = number_of(&table);
    if (number == before) total[number] = 0;
    total[number] += rows[i];
  }
  *distinct = table.found;
  free(table.slots);
  return status;
}

/* A counting sort: writes the places of each group's number to index, and where the groups start.
 */
static void sort(const int32_t *number, int64_t n, int64_t groups, int64_t *following,
                 int32_t *index, int64_t *starts) {
  for (int64_t i = 0; i < n; i++) following[number[i]]++;
  int64_t before = 0;
  for (int64_t group = 0; group < groups; group++) {
    starts[group] = before;
    before += following[group];
    following[group] = starts[group];
  }
  for (int64_t i = 0; i < n; i++) index[following[number[i]]++] = (int32_t)i;
}

int mo_group_by_bits(const uint64_t *words, int64_t wide, int64_t n, const uint64_t *keys,
                     int32_t *index, int64_t *starts, int64_t *groups) {
  hash_table table = {.known = zeros(wide * n, sizeof *words), .wide = wide, .n = n};
  int32_t *number = zeros(n, sizeof *number);
  int status = allocate_slots(&table);
  if (!table.known || !number) status = MO_NO_MEMORY;
  for (int64_t i = 0; i < n && status == MO_DONE; i++) {
    if (i % POLLED == 0 && stopped()) {
      status = MO_STOPPED;
      break;
    }
    for (int64_t w = 0; w < wide; w++)
      table.known[w * n + table.found] = words[w * n + i] & keys[w];
    number[i] = number_of(&table);
  }
  int64_t *following = zeros(table.found, sizeof *following);
  if (!following) status = MO_NO_MEMORY;
  if (status == MO_DONE) sort(number, n, table.found, following, index, starts);
  *groups = table.found;
  free(following);
  free(number);
  free(table.known);
  free(table.slots);
  return status;
}
