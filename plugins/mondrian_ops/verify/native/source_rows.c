/* Which rows of the source a part of a release has, and whether it has their values: loops of the
 * check, which shares nothing with those that cut and generalize. */
#include "recount.h"

/* The rows of neighbours in a part are far apart: those of so many rows ahead are fetched into the
 * cache. Nothing is read there, so a number that is outside of the rows does no harm. */
#define AHEAD 32

int64_t mo_mark_rows(const int32_t *source, int64_t rows, int64_t source_rows, uint8_t *met) {
  int64_t distinct = 0;
  for (int64_t i = 0; i < rows; i++) {
    if (i + AHEAD < rows) __builtin_prefetch(met + source[i + AHEAD], 1);
    if ((uint64_t)source[i] >= (uint64_t)source_rows) return MO_OUT_OF_BOUNDS;
    distinct += !met[source[i]];
    met[source[i]] = 1;
  }
  return distinct;
}

#define COMPARE(number_type)                                                                       \
  for (int64_t i = 0; i < rows; i++) {                                                             \
    const number_type *of_source = values, *of_part = published;                                   \
    if (i + AHEAD < rows) __builtin_prefetch(of_source + source[i + AHEAD]);                       \
    if ((uint64_t)source[i] >= (uint64_t)source_rows) return MO_OUT_OF_BOUNDS;                     \
    differs |= of_part[i] != of_source[source[i]];                                                 \
  }                                                                                                \
  break

int mo_rows_differ(const void *published, const void *values, int64_t value_bytes,
                   const int32_t *source, int64_t rows, int64_t source_rows) {
  int differs = 0;
  switch (value_bytes) {
  case 1:
    COMPARE(uint8_t);
  case 2:
    COMPARE(uint16_t);
  case 4:
    COMPARE(uint32_t);
  default:
    COMPARE(uint64_t);
  }
  return differs;
}
