/* Loops over finished classes, and the routing of rows to fragments. */
#include "kernels.h"

#include <string.h>

static const int64_t DENSE = 16; /* a table of codes is scanned where it has at most so many codes
                                    for each one present; else they are sorted */

static int64_t stop_of(int64_t i, const int64_t *starts, int64_t classes, int64_t rows) {
  return i + 1 < classes ? starts[i + 1] : rows;
}

/* Calls loop with the bytes of a code as a constant, so that it is compiled for each width. */
#define FOR_WIDTH(bytes, loop, ...)                                                                \
  switch (bytes) {                                                                                 \
  case 1:                                                                                          \
    loop(1, __VA_ARGS__);                                                                          \
    break;                                                                                         \
  case 2:                                                                                          \
    loop(2, __VA_ARGS__);                                                                          \
    break;                                                                                         \
  case 4:                                                                                          \
    loop(4, __VA_ARGS__);                                                                          \
    break;                                                                                         \
  default:                                                                                         \
    loop(8, __VA_ARGS__);                                                                          \
  }

ALWAYS_INLINE int64_t code_of(const void *codes, int64_t code_bytes, int64_t row) {
  switch (code_bytes) {
  case 1:
    return ((const uint8_t *)codes)[row];
  case 2:
    return ((const uint16_t *)codes)[row];
  case 4:
    return ((const uint32_t *)codes)[row];
  default:
    return ((const int64_t *)codes)[row];
  }
}

ALWAYS_INLINE void find_extents(int64_t code_bytes, const void *codes, const int32_t *index,
                                int64_t rows, const int64_t *starts, int64_t classes, int64_t *low,
                                int64_t *high) {
  for (int64_t i = 0; i < classes; i++) {
    int64_t stop = stop_of(i, starts, classes, rows);
    int64_t least = code_of(codes, code_bytes, index[starts[i]]), greatest = least;
    for (int64_t j = starts[i] + 1; j < stop; j++) {
      int64_t code = code_of(codes, code_bytes, index[j]);
      least = code < least ? code : least;
      greatest = code > greatest ? code : greatest;
    }
    low[i] = least;
    high[i] = greatest;
  }
}

void mo_extents(const void *codes, int64_t code_bytes, const int32_t *index, int64_t rows,
                const int64_t *starts, int64_t classes, int64_t *low, int64_t *high) {
  FOR_WIDTH(code_bytes, find_extents, codes, index, rows, starts, classes, low, high)
}

/* The codes of a row in some columns side by side: what is compared of it at once. A column lies in
 * memory row by row, a class has rows from all over it, so to fetch each column of a row by itself
 * would take as many times as long. */
enum { RECORD = 16, PACKED = 1 << 10, AHEAD = 16 };

/* Packs so many columns of codes (columns, rows) into records (rows,). */
static void pack_codes(const unsigned char *codes, size_t code_bytes, int64_t columns, int64_t rows,
                       unsigned char *records) {
  for (int64_t start = 0; start < rows; start += PACKED) {
    int64_t count = rows - start < PACKED ? rows - start : PACKED;
    for (int64_t c = 0; c < columns; c++) {
      const unsigned char *from = codes + (size_t)(c * rows + start) * code_bytes;
      unsigned char *to = records + start * RECORD + c * (int64_t)code_bytes;
      if (code_bytes == 1) {
        for (int64_t i = 0; i < count; i++) to[i * RECORD] = from[i];
      } else if (code_bytes == 2) {
        for (int64_t i = 0; i < count; i++) memcpy(to + i * RECORD, from + i * 2, 2);
      } else {
        for (int64_t i = 0; i < count; i++) memcpy(to + i * RECORD, from + i * 4, 4);
      }
    }
  }
}

/* Compilers do not see by themselves that all lanes are compared at once. */
#define EXTENTS_OF_RECORDS(code_type)                                                              \
  typedef code_type lanes __attribute__((vector_size(RECORD)));                                    \
  const lanes *row_of = (const lanes *)records;                                                    \
  for (int64_t i = 0; i < classes; i++) {                                                          \
    int64_t stop = stop_of(i, starts, classes, rows);                                              \
    lanes least = row_of[index[starts[i]]], greatest = least;                                      \
    for (int64_t j = starts[i]; j < stop; j++) {                                                   \
      if (j + AHEAD < rows) __builtin_prefetch(row_of + index[j + AHEAD]);                         \
      lanes row = row_of[index[j]];                                                                \
      least ^= (row ^ least) & (lanes)(row < least);                                               \
      greatest ^= (row ^ greatest) & (lanes)(row > greatest);                                      \
    }                                                                                              \
    for (int64_t c = 0; c < columns; c++) {                                                        \
      ((code_type *)low)[c * classes + i] = least[c];                                              \
      ((code_type *)high)[c * classes + i] = greatest[c];                                          \
    }                                                                                              \
  }

static void extents_1(const void *records, int64_t columns, const int32_t *index, int64_t rows,
                      const int64_t *starts, int64_t classes, void *low, void *high) {
  EXTENTS_OF_RECORDS(uint8_t)
}

static void extents_2(const void *records, int64_t columns, const int32_t *index, int64_t rows,
                      const int64_t *starts, int64_t classes, void *low, void *high) {
  EXTENTS_OF_RECORDS(uint16_t)
}

static void extents_4(const void *records, int64_t columns, const int32_t *index, int64_t rows,
                      const int64_t *starts, int64_t classes, void *low, void *high) {
  EXTENTS_OF_RECORDS(uint32_t)
}

int mo_extents_of_columns(const void *codes, int64_t code_bytes, int64_t columns, int64_t all_rows,
                          const int32_t *index, int64_t rows, const int64_t *starts,
                          int64_t classes, void *low, void *high) {
  unsigned char *records = zeros(all_rows, RECORD);
  if (!records) return MO_NO_MEMORY;
  for (int64_t first = 0, at_once = RECORD / code_bytes; first < columns; first += at_once) {
    int64_t some = columns - first < at_once ? columns - first : at_once;
    size_t skipped = (size_t)(first * code_bytes);
    unsigned char *lows = (unsigned char *)low + skipped * (size_t)classes;
    unsigned char *highs = (unsigned char *)high + skipped * (size_t)classes;
    pack_codes((const unsigned char *)codes + skipped * (size_t)all_rows, (size_t)code_bytes, some,
               all_rows, records);
    if (code_bytes == 1) {
      extents_1(records, some, index, rows, starts, classes, lows, highs);
    } else if (code_bytes == 2) {
      extents_2(records, some, index, rows, starts, classes, lows, highs);
    } else {
      extents_4(records, some, index, rows, starts, classes, lows, highs);
    }
  }
  free(records);
  return MO_DONE;
}

static void shell_sort(uint32_t *codes, int64_t count) {
  static const int64_t gaps[] = {15137, 6313, 2640, 1103, 461, 191, 79, 32, 13, 5, 1};
  for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
    for (int64_t i = gaps[g]; i < count; i++) {
      uint32_t code = codes[i];
      int64_t j = i;
      for (; j >= gaps[g] && codes[j - gaps[g]] > code; j -= gaps[g]) codes[j] = codes[j - gaps[g]];
      codes[j] = code;
    }
  }
}

/* Sorts the count codes present in class i. */
static void order(uint32_t *codes, int64_t count, const int64_t *seen, int64_t size, int64_t i) {
  if (size / DENSE > count) {
    shell_sort(codes, count);
    return;
  }
  int64_t at = 0;
  for (int64_t code = 0; code < size; code++)
    if (seen[code] == i) codes[at++] = (uint32_t)code;
}

int mo_distinct_per_class(const void *codes, int64_t code_bytes, int64_t size, const int32_t *index,
                          int64_t rows, const int64_t *starts, int64_t classes, uint32_t *members,
                          int64_t *ends) {
  int64_t *seen = zeros(size, sizeof *seen),
          total = 0; /* (codes,): the last class that has a code */
  if (!seen) return MO_NO_MEMORY;
  memset(seen, 0xff, (size_t)size * sizeof *seen);
  for (int64_t i = 0; i < classes; i++) {
    int64_t begin = total, stop = stop_of(i, starts, classes, rows);
    for (int64_t j = starts[i]; j < stop; j++) {
      int64_t code = code_of(codes, code_bytes, index[j]);
      if (seen[code] == i) continue;
      seen[code] = i;
      members[total++] = (uint32_t)code;
    }
    order(members + begin, total - begin, seen, size, i);
    ends[i] = total;
  }
  free(seen);
  return MO_DONE;
}

ALWAYS_INLINE void mark_pairs(int64_t bytes, const void *low, const void *high, int64_t classes,
                              int64_t size, int32_t *table, int32_t *number) {
  for (int64_t i = 0; i < classes; i++) {
    uint64_t from = (uint64_t)code_of(low, bytes, i), to = (uint64_t)code_of(high, bytes, i);
    int within = from < (uint64_t)size && to < (uint64_t)size;
    number[i] = within ? (int32_t)(from * (uint64_t)size + to) : -1;
    if (within) table[number[i]] = 1;
  }
}

int mo_number_pairs(const void *low, const void *high, int64_t code_bytes, int64_t classes,
                    int64_t size, int32_t *table, int32_t *number) {
  FOR_WIDTH(code_bytes, mark_pairs, low, high, classes, size, table, number)
  int32_t pairs = 0;
  for (int64_t pair = 0; pair < size * size; pair++) table[pair] = table[pair] ? ++pairs : 0;
  for (int64_t i = 0; i < classes; i++) {
    if (number[i] < 0) return MO_OUT_OF_BOUNDS;
    number[i] = table[number[i]] - 1;
  }
  return MO_DONE;
}

/* Sorts order by a byte of the labels; equal ones keep their order. */
ALWAYS_INLINE void sort_by_byte(int64_t label_bytes, const void *labels, int64_t byte,
                                int64_t classes, int32_t *order, int32_t *sorted) {
  int32_t following[257] = {0};
  for (int64_t i = 0; i < classes; i++)
    following[(code_of(labels, label_bytes, i) >> 8 * byte & 255) + 1]++;
  for (int64_t value = 0; value < 256; value++) {
    if (following[value + 1] == classes) return; /* all have the same */
    following[value + 1] += following[value];
  }
  for (int64_t i = 0; i < classes; i++)
    sorted[following[code_of(labels, label_bytes, order[i]) >> 8 * byte & 255]++] = order[i];
  memcpy(order, sorted, (size_t)classes * sizeof *order);
}

ALWAYS_INLINE void mark_changes(int64_t label_bytes, const void *labels, int64_t classes,
                                const int32_t *order, uint8_t *first) {
  for (int64_t i = 1; i < classes; i++)
    first[i] |=
        code_of(labels, label_bytes, order[i]) != code_of(labels, label_bytes, order[i - 1]);
}

int mo_sort_classes(const void *const *labels, const int64_t *label_bytes, int64_t columns,
                    int64_t classes, int32_t *order, uint8_t *first) {
  int32_t *others = zeros(classes, sizeof *others);
  if (!others) return MO_NO_MEMORY;
  for (int64_t i = 0; i < classes; i++) order[i] = (int32_t)i;
  for (int64_t c = columns - 1; c >= 0; c--)
    for (int64_t byte = 0; byte < label_bytes[c]; byte++)
      FOR_WIDTH(label_bytes[c], sort_by_byte, labels[c], byte, classes, order, others)
  free(others);
  memset(first, 0, (size_t)classes);
  if (classes) first[0] = 1;
  for (int64_t c = 0; c < columns; c++)
    FOR_WIDTH(label_bytes[c], mark_changes, labels[c], classes, order, first)
  return MO_DONE;
}

void mo_arrange_classes(const int32_t *index, int64_t rows, const int64_t *starts, int64_t classes,
                        const int32_t *order, int32_t *arranged) {
  for (int64_t i = 0; i < classes; i++) {
    int64_t start = starts[order[i]], size = stop_of(order[i], starts, classes, rows) - start;
    memcpy(arranged, index + start, (size_t)size * sizeof *index);
    arranged += size;
  }
}

ALWAYS_INLINE void repeat(int64_t bytes, const void *values, const int32_t *order,
                          const int64_t *sizes, int64_t classes, unsigned char *to) {
  for (int64_t i = 0; i < classes; i++) {
    uint64_t word = (uint64_t)code_of(values, bytes, order[i]);
    for (int64_t filled = bytes; filled < (int64_t)sizeof word; filled *= 2)
      word |= word << 8 * filled;
    for (int64_t at = 0; at < sizes[i] * bytes; at += (int64_t)sizeof word)
      memcpy(to + at, &word, sizeof word); /* what is too much, the next class overwrites */
    to += sizes[i] * bytes;
  }
}

void mo_repeat(const void *values, int64_t bytes, const int32_t *order, const int64_t *sizes,
               int64_t classes, void *repeated) {
  FOR_WIDTH(bytes, repeat, values, order, sizes, classes, repeated)
}

void mo_shuffle_classes(int32_t *index, int64_t rows, const int64_t *starts, int64_t classes,
                        const uint32_t *random) {
  for (int64_t i = 0; i < classes; i++) {
    for (int64_t j = stop_of(i, starts, classes, rows) - 1; j > starts[i]; j--) { /* Fisher-Yates */
      uint64_t choices = (uint64_t)(j - starts[i] + 1); /* at most 2^31, as rows are */
      int64_t other = starts[i] + (int64_t)(random[j] * choices >> 32);
      int32_t row = index[j];
      index[j] = index[other];
      index[other] = row;
    }
  }
}

ALWAYS_INLINE void write_leaf(void *leaves, int64_t bytes, int64_t row, int64_t leaf) {
  if (bytes == 1) ((uint8_t *)leaves)[row] = (uint8_t)leaf;
  else if (bytes == 2) ((uint16_t *)leaves)[row] = (uint16_t)leaf;
  else ((uint32_t *)leaves)[row] = (uint32_t)leaf;
}

ALWAYS_INLINE int route(int64_t place_bytes, const void *places, int64_t rows,
                        const mo_routes *routes, void *found, int64_t leaf_bytes) {
  const int64_t *const next[] = {routes->left, routes->right}; /* no branch, as it is a guess */
  for (int64_t i = 0; i < rows; i++) {
    int64_t node = 0;
    for (int64_t steps = 0; routes->leaf[node] < 0; steps++) {
      if (steps == routes->nodes) return MO_OUT_OF_BOUNDS; /* the nodes form a cycle */
      int64_t place = code_of(places, place_bytes, routes->column[node] * rows + i);
      node = next[place > routes->limit[node]][node];
    }
    write_leaf(found, leaf_bytes, i, routes->leaf[node]);
  }
  return MO_DONE;
}

int mo_route_rows(const void *places, int64_t place_bytes, int64_t rows, const mo_routes *routes,
                  void *found, int64_t leaf_bytes) {
  switch (place_bytes) {
  case 1:
    return route(1, places, rows, routes, found, leaf_bytes);
  case 2:
    return route(2, places, rows, routes, found, leaf_bytes);
  default:
    return route(4, places, rows, routes, found, leaf_bytes);
  }
}
