/* What the classes of a release tell about a sensitive column: how far apart the values of each
 * class are, and how great a share of a class each value has. */
#include "recount.h"

int mo_ends_of_ranks(const int64_t *classes, const int64_t *codes, int64_t pairs,
                     int64_t class_count, const int32_t *ranks, int64_t code_count, int32_t *low,
                     int32_t *high) {
  for (int64_t i = 0; i < pairs;) {
    int64_t class = classes[i];
    if ((uint64_t)class >= (uint64_t)class_count) return MO_OUT_OF_BOUNDS;
    int32_t least = low[class], greatest = high[class];
    for (; i < pairs && classes[i] == class; i++) {
      if ((uint64_t)codes[i] >= (uint64_t)code_count) return MO_OUT_OF_BOUNDS;
      int32_t rank = ranks[codes[i]];
      if (rank < 0) continue;
      if (rank < least) least = rank;
      if (rank > greatest) greatest = rank;
    }
    low[class] = least;
    high[class] = greatest;
  }
  return MO_DONE;
}

int mo_greatest_shares(const int64_t *classes, const int64_t *codes, const int64_t *counts,
                       int64_t pairs, const int64_t *sizes, int64_t class_count, int64_t code_count,
                       uint64_t *rows, double *shares) {
  for (int64_t i = 0; i < pairs; i++) {
    if ((uint64_t)classes[i] >= (uint64_t)class_count) return MO_OUT_OF_BOUNDS;
    if ((uint64_t)codes[i] >= (uint64_t)code_count) return MO_OUT_OF_BOUNDS;
    double share = (double)counts[i] / (double)sizes[classes[i]];
    rows[codes[i]] += (uint64_t)counts[i];
    if (share > shares[codes[i]]) shares[codes[i]] = share;
  }
  return MO_DONE;
}
