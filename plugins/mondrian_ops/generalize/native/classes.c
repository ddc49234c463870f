/* Loops over finished classes, and the routing of rows to fragments. */
#include "kernels.h"

#include <string.h>

static const int64_t DENSE = 16; /* a table of codes is scanned where it has at most so many codes
                                    for each one present; else they are sorted */

static int64_t stop_of(int64_t i, const int64_t *starts, int64_t classes, int64_t rows) {
  return i + 1 < classes ? starts[i + 1] : rows;
}

static inline int64_t code_of(const void *codes, int64_t code_bytes, int64_t row) {
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

void mo_extents(const void *codes, int64_t code_bytes, const int32_t *index, int64_t rows,
                const int64_t *starts, int64_t classes, int64_t *low, int64_t *high) {
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

int mo_route_rows(const int32_t *places, int64_t rows, int64_t columns, int64_t nodes,
                  const int64_t *column, const int64_t *limit, const int64_t *left,
                  const int64_t *right, const int64_t *leaf, int64_t *found) {
  for (int64_t i = 0; i < rows; i++) {
    const int32_t *place = places + i * columns;
    int64_t node = 0;
    for (int64_t steps = 0; leaf[node] < 0; steps++) {
      if (steps == nodes) return MO_OUT_OF_BOUNDS; /* the nodes form a cycle */
      node = place[column[node]] <= limit[node] ? left[node] : right[node];
    }
    found[i] = leaf[node];
  }
  return MO_DONE;
}
