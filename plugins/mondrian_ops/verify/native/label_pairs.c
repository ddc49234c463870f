/* Which pairs of a label and a value occur in a part of a release: a loop of the check, which
 * shares nothing with those that cut and generalize. */
#include "kernels.h"

/* The codes of neighbours in a part are far apart: those of so many rows ahead are fetched into the
 * cache. Nothing is read there, so a number that is outside of the codes does no harm. */
#define AHEAD 32

#define MARK(code_type)                                                                            \
  for (int64_t i = 0; i < rows; i++) {                                                             \
    if (i + AHEAD < rows) __builtin_prefetch((const code_type *)codes + source[i + AHEAD]);        \
    if ((uint64_t)labels[i] >= (uint64_t)label_count) return MO_OUT_OF_BOUNDS;                     \
    if ((uint64_t)source[i] >= (uint64_t)source_rows) return MO_OUT_OF_BOUNDS;                     \
    int64_t value = (int64_t)((const code_type *)codes)[source[i]];                                \
    if ((uint64_t)value >= (uint64_t)value_count) return MO_OUT_OF_BOUNDS;                         \
    marks[labels[i] * value_count + value] = 1;                                                    \
  }                                                                                                \
  return MO_DONE

int mo_mark_pairs(const int32_t *labels, int64_t label_count, const int32_t *source, int64_t rows,
                  const void *codes, int64_t code_bytes, int64_t source_rows, int64_t value_count,
                  uint8_t *marks) {
  switch (code_bytes) {
  case 1:
    MARK(uint8_t);
  case 2:
    MARK(uint16_t);
  default:
    MARK(int32_t);
  }
}
