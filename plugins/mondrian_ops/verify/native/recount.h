/* The recount of a release as written: loops of the check, which shares none with cutting.
 *
 * All numbers that lead into a table are compared with its length where they are used. */
#ifndef MONDRIAN_OPS_RECOUNT_H
#define MONDRIAN_OPS_RECOUNT_H

#include "kernels.h"

/* source_rows.c: marks in met (source_rows,) the rows that occur in source (rows,); returns how
 * many were not marked before. */
MO_API int64_t mo_mark_rows(const int32_t *source, int64_t rows, int64_t source_rows, uint8_t *met);

/* source_rows.c: 1 where the bytes of a value published (rows,) are not those of its row of the
 * source among values (source_rows,), else 0; both of value_bytes 1, 2, 4 or 8. */
MO_API int mo_rows_differ(const void *published, const void *values, int64_t value_bytes,
                          const int32_t *source, int64_t rows, int64_t source_rows);

/* equal_rows.c: where the runs of equal neighbours among some rows begin; returns their number.
 * places (columns,) point to arrays (rows,), starts has (rows,). */
MO_API int64_t mo_equal_runs(const int32_t *const *places, int64_t columns, int64_t rows,
                             int32_t *starts);

/* equal_rows.c: how far numbers (rows,), of number_bytes 1, 2, 4 or 8, are from the least one, to
 * places (rows,); each is less than size. Marks in met (size,) which occur. */
MO_API int mo_distances(const void *numbers, int64_t number_bytes, int64_t rows, uint64_t least,
                        int64_t size, int32_t *places, uint8_t *met);

/* equal_rows.c: keys (rows,), equal exactly where the codes of all columns are. codes (columns,)
 * point to unsigned arrays (rows,) of code_bytes 1, 2 or 4; the codes of a column are below its
 * radix, and the product of the radices and 1 + the greatest key that is given is at most 2^64. */
MO_API int mo_join_codes(const void *const *codes, const int64_t *code_bytes,
                         const uint64_t *radices, int64_t columns, int64_t rows, uint64_t *keys);

/* equal_rows.c: groups equal keys (rows,). Writes the rows group by group to order (rows,), and
 * where each group begins to starts (rows,). Groups are in the order of their first row, as are
 * the rows of each. */
MO_API int mo_group_keys(const uint64_t *keys, int64_t rows, int32_t *order, int32_t *starts,
                         int64_t *groups);

/* value_counts.c: how often each code occurs in each run of rows. Row i has codes[places[i]],
 * codes (place_count,) unsigned, of code_bytes 1, 2 or 4, below code_count; runs begin at starts
 * (runs,), the last ends with the rows. Writes where the pairs of each run begin to first
 * (runs + 1,), the pairs' codes and counts, at most (rows,) each. */
MO_API int mo_count_values(const int32_t *places, int64_t rows, const int32_t *starts, int64_t runs,
                           const void *codes, int64_t code_bytes, int64_t place_count,
                           int64_t code_count, int64_t *first, void *found, int32_t *counts);

/* value_counts.c: the sums of pairs of several classes. Group i is the classes order[starts[i]] to
 * order[starts[i + 1]], the last one ends with order (classes,). Class c has the pairs of_class[c]
 * to of_class[c + 1] of codes and counts (pairs,). Writes as mo_count_values does, at most (pairs,)
 * each. */
MO_API int mo_sum_values(const int32_t *order, int64_t classes, const int32_t *starts,
                         int64_t groups, const int64_t *of_class, const void *codes,
                         int64_t code_bytes, const uint64_t *counts, int64_t pairs,
                         int64_t code_count, int64_t *first, void *found, uint64_t *sums);

/* value_counts.c: adds weights (rows,), unsigned of weight_bytes 1, 2, 4 or 8, to the sums
 * (code_count,) of their codes (rows,), unsigned of code_bytes 1, 2 or 4. */
MO_API int mo_sum_by_code(const void *codes, int64_t code_bytes, const void *weights,
                          int64_t weight_bytes, int64_t rows, int64_t code_count, uint64_t *sums);

/* value_figures.c: of pairs (pairs,) of a class, a code and a count, the least and the greatest
 * rank (class_count,) of each class; ranks (code_count,) are from 0 on, -1: not looked at. A class
 * of none keeps what is in low and high. */
MO_API int mo_ends_of_ranks(const int64_t *classes, const int64_t *codes, int64_t pairs,
                            int64_t class_count, const int32_t *ranks, int64_t code_count,
                            int32_t *low, int32_t *high);

/* value_figures.c: of the same pairs, the rows of each code and its greatest share of a class of
 * sizes (class_count,): rows and shares (code_count,). */
MO_API int mo_greatest_shares(const int64_t *classes, const int64_t *codes, const int64_t *counts,
                              int64_t pairs, const int64_t *sizes, int64_t class_count,
                              int64_t code_count, uint64_t *rows, double *shares);

#endif
