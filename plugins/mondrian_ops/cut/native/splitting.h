/* One attribute of one node: its distinct codes, its loss, its best cut. */
#ifndef MONDRIAN_OPS_SPLITTING_H
#define MONDRIAN_OPS_SPLITTING_H

#include <math.h>
#include <string.h>

#include "cutting.h"

ALWAYS_INLINE int64_t read_code(const unsigned char *record, int32_t offset, int bytes) {
  if (bytes == 1) return record[offset];
  if (bytes == 2) {
    uint16_t narrow;
    memcpy(&narrow, record + offset, 2);
    return narrow;
  }
  uint32_t wide;
  memcpy(&wide, record + offset, 4);
  return wide;
}

ALWAYS_INLINE int64_t code_of(const unsigned char *record, field at) {
  return read_code(record, at.offset, at.bytes);
}

static inline uint32_t number_of(const unsigned char *record, const layout *of) {
  uint32_t number;
  memcpy(&number, record + of->number, sizeof number);
  return number;
}

static inline field sensitive_field(const layout *of, int64_t column) {
  return of->column[of->attributes + column];
}

/* Finishes a tally of sparse codes: bits lead from one code to the next. */
static inline int64_t tally_sparse(node here, field at, int64_t low, int64_t high, const layout *of,
                                   workspace *work) {
  for (int64_t i = 0; i < here.count; i++) {
    int64_t v = code_of(here.rows + i * of->stride, at);
    work->bits[v >> 6] |= UINT64_C(1) << (v & 63);
  }
  int64_t d = 0, total = 0;
  for (int64_t word = low >> 6; word <= high >> 6; word++) {
    uint64_t bits = work->bits[word];
    work->bits[word] = 0;
    for (; bits; bits &= bits - 1) {
      int64_t code = (word << 6) + __builtin_ctzll(bits);
      total += work->histogram[code];
      work->histogram[code] = 0;
      work->value[d] = code;
      work->below[d++] = total;
    }
  }
  return d;
}

ALWAYS_INLINE int64_t tally_of(node here, field at, int bytes, const layout *of, workspace *work) {
  const unsigned char *record = here.rows;
  int64_t low = INT64_MAX, high = -1;
  for (int64_t i = 0; i < here.count; i++, record += of->stride) {
    int64_t v = read_code(record, at.offset, bytes);
    work->histogram[v]++;
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  if (high - low > SPARSE * here.count) return tally_sparse(here, at, low, high, of, work);
  int64_t d = 0, total = 0;
  for (int64_t code = low; code <= high; code++) {
    int64_t count = work->histogram[code];
    if (count == 0) continue;
    work->histogram[code] = 0;
    total += count;
    work->value[d] = code;
    work->below[d++] = total;
  }
  return d;
}

/* A tally of a narrow attribute: the bits of a word tell which codes are present. Rows are
 * counted in two tables by turns, so that rows of the same code do not wait for each other. */
ALWAYS_INLINE int64_t tally_narrow(node here, int32_t offset, size_t stride, int64_t codes,
                                   workspace *work) {
  uint32_t even[64], odd[64];
  uint64_t present = 0;
  memset(even, 0, (size_t)codes * sizeof *even);
  memset(odd, 0, (size_t)codes * sizeof *odd);
  const unsigned char *record = here.rows,
                      *stop = here.rows + (size_t)(here.count & ~INT64_C(1)) * stride;
  for (; record < stop; record += 2 * stride) {
    int one = record[offset], other = record[offset + (int32_t)stride];
    even[one]++;
    odd[other]++;
    present |= UINT64_C(1) << one | UINT64_C(1) << other;
  }
  if (here.count & 1) {
    even[record[offset]]++;
    present |= UINT64_C(1) << record[offset];
  }
  int64_t d = 0, total = 0;
  for (; present; present &= present - 1) {
    int code = __builtin_ctzll(present);
    total += even[code] + odd[code];
    work->value[d] = code;
    work->below[d++] = total;
  }
  return d;
}

/* Counts the codes of all narrow attributes in one pass: between two rows of the same code it
 * counts codes of other attributes, so that the second row does not wait for the first. */
ALWAYS_INLINE void count_codes(node here, size_t stride, int32_t narrow, uint32_t *counts) {
  const unsigned char *record = here.rows;
  for (int64_t i = 0; i < here.count; i++, record += stride) {
    int32_t j = 0;
    for (; j + 4 <= narrow; j += 4)
      for (int32_t next = 0; next < 4; next++)
        counts[(size_t)(j + next) * WORD_BITS + record[j + next]]++;
    for (; j < narrow; j++) counts[(size_t)j * WORD_BITS + record[j]]++;
  }
}

static inline void count_narrow(node here, workspace *work) {
  const layout *of = work->layout;
  if (of->stride == 16) count_codes(here, 16, of->narrow, work->counts);
  else count_codes(here, (size_t)of->stride, of->narrow, work->counts);
}

/* The tally of an attribute whose codes count_narrow has counted; zeroes the counts. */
static inline int64_t tally_counted(field at, workspace *work) {
  uint32_t *counts = work->counts + at.offset * WORD_BITS;
  int64_t d = 0, total = 0;
  for (int64_t code = 0; code < at.codes; code++) {
    uint32_t count = counts[code];
    counts[code] = 0;
    work->value[d] = code;
    work->below[d] = total += count;
    d += count > 0;
  }
  return d;
}

/* Writes the distinct codes of a node in order to work->value, and the rows at or below each to
 * work->below; returns how many codes there are. */
static inline int64_t tally(node here, int32_t a, workspace *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  int64_t codes = of->first[a + 1] - of->first[a];
  if (here.members) return tally_members(here, a, work);
  if (codes <= 64 && of->stride == 16) return tally_narrow(here, at.offset, 16, codes, work);
  if (codes <= 64) return tally_narrow(here, at.offset, (size_t)of->stride, codes, work);
  if (at.bytes == 1) return tally_of(here, at, 1, of, work);
  if (at.bytes == 2) return tally_of(here, at, 2, of, work);
  return tally_of(here, at, 4, of, work);
}

/* MO_TREE: loss of the lowest common ancestor of codes low to high of an attribute. */
static inline double highest_step(const layout *of, int32_t a, int64_t low, int64_t high) {
  const int32_t *higher = of->higher + of->first[a];
  if (low >= high) return 0.0;
  while (higher[low] < high) low = higher[low];
  return of->step[of->first[a] + low];
}

/* MO_INTERVAL: loss of the values between two positions. */
static inline double loss_between(const layout *of, int32_t a, double low, double high) {
  double lost = (high - low) / of->span[a];
  return lost < of->most[a] ? lost : of->most[a];
}

/* MO_SET: loss of d values. */
static inline double loss_of_set(const layout *of, int32_t a, int64_t d) {
  return of->step[of->first[a] + d - 1];
}

/* Loss, of at most most[a], of publishing codes low to high, d of them, as one value. */
static inline double width(const layout *of, int32_t a, int64_t low, int64_t high, int64_t d) {
  int64_t first = of->first[a];
  if (low == 0) return high > 0 ? of->most[a] : 0.0; /* missing and present together are "*" */
  if (of->kind[a] == MO_INTERVAL)
    return loss_between(of, a, of->low[first + low], of->high[first + high]);
  if (of->kind[a] == MO_SET) return loss_of_set(of, a, d);
  return highest_step(of, a, low, high);
}

/* The reach of rows by their codes of a narrow attribute: bit v for code v. */
static inline reach reach_of(const layout *of, int32_t a, uint64_t present) {
  int64_t low = __builtin_ctzll(present), high = WORD_BITS - 1 - __builtin_clzll(present);
  int64_t distinct = __builtin_popcountll(present);
  return (reach){low, high, distinct, width(of, a, low, high, distinct)};
}

/* Writes the loss per row of the codes above the j-th of d to right[j]. */
static inline void losses_above(const layout *of, int32_t a, int64_t d, const int64_t *value,
                                double *right) {
  const double *low = of->low + of->first[a], *high = of->high + of->first[a];
  if (of->kind[a] == MO_INTERVAL) {
    double top = high[value[d - 1]];
    for (int64_t j = 0; j + 1 < d; j++) right[j] = loss_between(of, a, low[value[j + 1]], top);
  } else if (of->kind[a] == MO_SET) {
    for (int64_t j = 0; j + 1 < d; j++) right[j] = loss_of_set(of, a, d - 1 - j);
  } else {
    double loss = 0.0;
    right[d - 2] = 0.0;
    for (int64_t j = d - 3; j >= 0; j--) {
      double step = highest_step(of, a, value[j + 1], value[j + 2]);
      loss = step > loss ? step : loss;
      right[j] = loss;
    }
  }
}

/* Loss per row of the j + 1 lowest codes, given that of the j lowest. */
static inline double loss_below(const layout *of, int32_t a, int64_t j, const int64_t *value,
                                double loss) {
  const double *low = of->low + of->first[a], *high = of->high + of->first[a];
  if (j == 0) {
    if (value[0] == 0 || of->kind[a] != MO_INTERVAL) return 0.0;
    return loss_between(of, a, low[value[0]], high[value[0]]);
  }
  if (value[0] == 0) return of->most[a];
  if (of->kind[a] == MO_INTERVAL) return loss_between(of, a, low[value[0]], high[value[j]]);
  if (of->kind[a] == MO_SET) return loss_of_set(of, a, j + 1);
  double step = highest_step(of, a, value[j - 1], value[j]);
  return step > loss ? step : loss;
}

/* Whether the cut above the j-th distinct code is valid: by the table of mark_valid if given,
 * else if it leaves k rows on both sides. */
static inline int allowed(int64_t j, int64_t n, int64_t k, const int64_t *below,
                          const uint8_t *valid) {
  if (valid) return valid[j];
  return below[j] >= k && n - below[j] >= k;
}

/* The cut at the median of the ranks (De Capitani di Vimercati et al. 2023, figure 7), else the
 * valid cut that balances best; -1: none. */
static inline int64_t median_cut(int64_t d, int64_t n, int64_t k, const int64_t *below,
                                 const uint8_t *valid) {
  int64_t median = 0, best = -1, imbalance = n + 1;
  while (2 * below[median] < n) median++;
  if (median < d - 1 && allowed(median, n, k, below, valid)) return median;
  for (int64_t j = 0; j + 1 < d; j++) {
    int64_t uneven = 2 * below[j] > n ? 2 * below[j] - n : n - 2 * below[j];
    if (uneven < imbalance && allowed(j, n, k, below, valid)) {
      best = j;
      imbalance = uneven;
    }
  }
  return best;
}

/* The valid cut of largest gain (-1: there is none), and that gain; *whole: the loss per row
 * before it. The loss of rows is their number times width. Of equal gains the more balanced cut
 * wins, then the lower one. */
static inline int64_t gain_cut(int32_t a, int64_t d, int64_t n, int64_t k, const uint8_t *valid,
                               double *gain, double *whole, workspace *work) {
  const layout *of = work->layout;
  const int64_t *value = work->value, *below = work->below;
  losses_above(of, a, d, value, work->right);
  *whole = width(of, a, value[0], value[d - 1], d);
  int64_t best = -1, imbalance = n + 1;
  double loss = 0.0;
  *gain = -1.0;
  for (int64_t j = 0; j + 1 < d; j++) {
    loss = loss_below(of, a, j, value, loss);
    if (!allowed(j, n, k, below, valid)) continue;
    double here =
        (double)n * *whole - (double)below[j] * loss - (double)(n - below[j]) * work->right[j];
    int64_t uneven = 2 * below[j] > n ? 2 * below[j] - n : n - 2 * below[j];
    if (here > *gain || (here == *gain && uneven < imbalance)) {
      best = j;
      *gain = here;
      imbalance = uneven;
    }
  }
  return best;
}

/* The gain of the best cut that takes a group of codes out of the middle; *first and *last of the
 * distinct codes, -1: there is none.
 *
 * A group is one code or, of an MO_TREE, the codes of a child of the node's lowest common
 * ancestor. It holds neither the lowest nor the highest code, so the other rows lose as much per
 * row as before (whole) or, of an MO_SET, one value less. It has least to most rows; of equal
 * gains the lower group is taken. */
static inline double gain_group(int32_t a, int64_t d, int64_t least, int64_t most, double whole,
                                int64_t *first, int64_t *last, workspace *work) {
  const layout *of = work->layout;
  const int64_t *value = work->value, *below = work->below;
  int64_t n = below[d - 1], begin = 0;
  double less = 0.0;
  if (of->kind[a] == MO_SET && value[0] != 0 && d > 1) less = whole - loss_of_set(of, a, d - 1);
  double best = 0.0, loss = 0.0;
  *first = *last = -1;
  for (int64_t j = 0; j + 1 < d; j++) {
    int64_t alone = j > 0 ? below[j] - below[j - 1] : 0;
    double gain = (double)alone * whole + (double)(n - alone) * less;
    if (least <= alone && alone <= most && gain > best) {
      *first = *last = j;
      best = gain;
    }
    if (of->kind[a] != MO_TREE) continue;
    double step = highest_step(of, a, value[j], value[j + 1]);
    if (step < whole) {
      loss = step > loss ? step : loss;
      continue;
    }
    int64_t size = begin > 0 ? below[j] - below[begin - 1] : 0;
    if (least <= size && size <= most && (double)size * (whole - loss) > best) {
      *first = begin;
      *last = j;
      best = (double)size * (whole - loss);
    }
    begin = j + 1;
    loss = 0.0;
  }
  return best;
}

#endif
