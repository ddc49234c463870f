/* Stretches of near values of a node, while its rows go from one side of a cut to the other. */
#ifndef MONDRIAN_OPS_NEAR_VALUES_H
#define MONDRIAN_OPS_NEAR_VALUES_H

#include "kernels.h"

/* The stretches that begin at the distinct codes of a node, which are numbered in their order. */
typedef struct {
  int64_t leaves;     /* a power of two, at least the number of codes */
  int32_t *begin;     /* (codes,): the first stretch that a code is in */
  int32_t *most[2]; /* (2 leaves,) of each side: a tree; most[side][1] has the fullest stretch */
  int32_t *added[2]; /* (2 leaves,) */
} stretches;

/* near_values.c: for at most so many codes; returns MO_DONE or MO_NO_MEMORY; close_stretches is
 * called in either case. */
int open_stretches(stretches *opened, int64_t codes);
void close_stretches(stretches *closed);
void clear_stretches(stretches *of, const int32_t *listed, int64_t count, const int32_t *near_end);
void add_to_stretches(stretches *of, int side, int64_t place, int32_t rows);

#endif
