/* Which groups of counted combinations satisfy the privacy criteria. */
#include "kernels.h"

static int criterion_holds(const int32_t *index, int64_t start, int64_t stop, const int32_t *codes,
                           const int64_t *rows, int64_t total, const mo_criteria *criteria,
                           int64_t j, mo_tally *tally) {
  int64_t *counts = tally->counts, distinct = 0;
  for (int64_t i = start; i < stop; i++) {
    int32_t s = codes[index[i]];
    distinct += counts[s] == 0;
    counts[s] += rows[index[i]];
  }
  int holds = group_holds(counts, total, distinct, criteria, j, tally->surplus, tally->deficit);
  /* What was counted only: there may be many codes. */
  for (int64_t i = start; i < stop; i++) counts[codes[index[i]]] = 0;
  return holds;
}

int groups_hold(const int32_t *index, int64_t length, const int64_t *starts, int64_t groups,
                const int32_t *sensitive, int64_t combinations, const int64_t *rows,
                const mo_criteria *criteria, uint8_t *holds) {
  mo_tally tally;
  int status = allocate_tally(&tally, criteria);
  for (int64_t i = 0; i < groups && status == MO_DONE; i++) {
    int64_t start = starts[i], stop = i + 1 < groups ? starts[i + 1] : length, total = 0;
    for (int64_t at = start; at < stop; at++) total += rows[index[at]];
    int found = total >= criteria->k;
    for (int64_t j = 0; j < criteria->count && found; j++) {
      const int32_t *codes = sensitive + criteria->column[j] * combinations;
      found = criterion_holds(index, start, stop, codes, rows, total, criteria, j, &tally);
    }
    holds[i] = (uint8_t)found;
  }
  free_tally(&tally);
  return status;
}
