/* How often each sensitive value occurs in each class of a release, as pairs of a class and a code
 * with a count. The pairs of a class are in the order in which its codes occur first. */
#include "recount.h"

/* Where the latest pair of each code is written, counted from 1: of another class if it is not
 * behind the pairs of all classes before. */
typedef int64_t *latest_pairs;

/* Adds times to the pair of the code in the class whose pairs begin at begin; all that are written
 * end at end. */
#define ADD(found, sums, code, times)                                                              \
  do {                                                                                             \
    int64_t at = latest[code];                                                                     \
    if (at > begin) {                                                                              \
      (sums)[at - 1] += (times);                                                                   \
    } else {                                                                                       \
      (found)[end] = (code);                                                                       \
      (sums)[end] = (times);                                                                       \
      latest[code] = ++end;                                                                        \
    }                                                                                              \
  } while (0)

#define COUNT(code_type)                                                                           \
  for (int64_t run = 0; run < runs; run++) {                                                       \
    int64_t stop = run + 1 < runs ? starts[run + 1] : rows, begin = end;                           \
    first[run] = begin;                                                                            \
    for (int64_t i = starts[run]; i < stop; i++) {                                                 \
      if ((uint64_t)places[i] >= (uint64_t)place_count) return MO_OUT_OF_BOUNDS;                   \
      code_type code = ((const code_type *)codes)[places[i]];                                      \
      if ((uint64_t)code >= (uint64_t)code_count) return MO_OUT_OF_BOUNDS;                         \
      ADD((code_type *)found, counts, code, 1);                                                    \
    }                                                                                              \
  }                                                                                                \
  first[runs] = end;                                                                               \
  return MO_DONE

static int count_values(const int32_t *places, int64_t rows, const int32_t *starts, int64_t runs,
                        const void *codes, int64_t code_bytes, int64_t place_count,
                        int64_t code_count, int64_t *first, void *found, int32_t *counts,
                        latest_pairs latest) {
  int64_t end = 0;
  switch (code_bytes) {
  case 1:
    COUNT(uint8_t);
  case 2:
    COUNT(uint16_t);
  default:
    COUNT(uint32_t);
  }
}

int mo_count_values(const int32_t *places, int64_t rows, const int32_t *starts, int64_t runs,
                    const void *codes, int64_t code_bytes, int64_t place_count, int64_t code_count,
                    int64_t *first, void *found, int32_t *counts) {
  latest_pairs latest = zeros(code_count, sizeof *latest);
  if (!latest) return MO_NO_MEMORY;
  int status = count_values(places, rows, starts, runs, codes, code_bytes, place_count, code_count,
                            first, found, counts, latest);
  free(latest);
  return status;
}

/* Most classes have no equal, and keep their pairs. Classes that are there once have no more than
 * the pairs together. */
#define SUM(code_type)                                                                             \
  for (int64_t group = 0; group < groups; group++) {                                               \
    int64_t stop = group + 1 < groups ? starts[group + 1] : classes, begin = end;                  \
    int is_single = stop - starts[group] == 1;                                                     \
    first[group] = begin;                                                                          \
    for (int64_t i = starts[group]; i < stop; i++) {                                               \
      if ((uint64_t)order[i] >= (uint64_t)classes) return MO_OUT_OF_BOUNDS;                        \
      int64_t after = of_class[order[i] + 1];                                                      \
      taken += after - of_class[order[i]];                                                         \
      if (taken > pairs) return MO_OUT_OF_BOUNDS;                                                  \
      for (int64_t p = of_class[order[i]]; p < after; p++) {                                       \
        code_type code = ((const code_type *)codes)[p];                                            \
        if ((uint64_t)code >= (uint64_t)code_count) return MO_OUT_OF_BOUNDS;                       \
        if (is_single) {                                                                           \
          ((code_type *)found)[end] = code;                                                        \
          sums[end++] = counts[p];                                                                 \
        } else {                                                                                   \
          ADD((code_type *)found, sums, code, counts[p]);                                          \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  first[groups] = end;                                                                             \
  return MO_DONE

static int sum_values(const int32_t *order, int64_t classes, const int32_t *starts, int64_t groups,
                      const int64_t *of_class, const void *codes, int64_t code_bytes,
                      const uint64_t *counts, int64_t pairs, int64_t code_count, int64_t *first,
                      void *found, uint64_t *sums, latest_pairs latest) {
  int64_t end = 0, taken = 0;
  switch (code_bytes) {
  case 1:
    SUM(uint8_t);
  case 2:
    SUM(uint16_t);
  default:
    SUM(uint32_t);
  }
}

int mo_sum_values(const int32_t *order, int64_t classes, const int32_t *starts, int64_t groups,
                  const int64_t *of_class, const void *codes, int64_t code_bytes,
                  const uint64_t *counts, int64_t pairs, int64_t code_count, int64_t *first,
                  void *found, uint64_t *sums) {
  latest_pairs latest = zeros(code_count, sizeof *latest);
  if (!latest) return MO_NO_MEMORY;
  int status = sum_values(order, classes, starts, groups, of_class, codes, code_bytes, counts,
                          pairs, code_count, first, found, sums, latest);
  free(latest);
  return status;
}

#define SUM_WEIGHTS(code_type, weight_type)                                                        \
  for (int64_t i = 0; i < rows; i++) {                                                             \
    code_type code = ((const code_type *)codes)[i];                                                \
    if ((uint64_t)code >= (uint64_t)code_count) return MO_OUT_OF_BOUNDS;                           \
    sums[code] += ((const weight_type *)weights)[i];                                               \
  }                                                                                                \
  return MO_DONE

#define SUM_CODES(code_type)                                                                       \
  switch (weight_bytes) {                                                                          \
  case 1:                                                                                          \
    SUM_WEIGHTS(code_type, uint8_t);                                                               \
  case 2:                                                                                          \
    SUM_WEIGHTS(code_type, uint16_t);                                                              \
  case 4:                                                                                          \
    SUM_WEIGHTS(code_type, uint32_t);                                                              \
  default:                                                                                         \
    SUM_WEIGHTS(code_type, uint64_t);                                                              \
  }

int mo_sum_by_code(const void *codes, int64_t code_bytes, const void *weights, int64_t weight_bytes,
                   int64_t rows, int64_t code_count, uint64_t *sums) {
  switch (code_bytes) {
  case 1:
    SUM_CODES(uint8_t);
  case 2:
    SUM_CODES(uint16_t);
  default:
    SUM_CODES(uint32_t);
  }
}
