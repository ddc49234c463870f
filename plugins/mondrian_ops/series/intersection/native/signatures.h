/* The sensitive values that are left for people: their signatures (X. Xiao and Y. Tao, SIGMOD
 * 2007), in sets of values, a bit each. */
#ifndef MONDRIAN_OPS_SIGNATURES_H
#define MONDRIAN_OPS_SIGNATURES_H

#include "kernels.h"

typedef struct {
  int64_t words; /* of a set */
  int64_t l;     /* a person needs so many values of its signature in each class */
  const int32_t *value;  /* (rows,): -1: none */
  const uint64_t *signature; /* (rows, words); has the row's own value */
} people;

static inline int has(const uint64_t *set, int32_t v) {
  return v >= 0 && set[v >> 6] >> (v & 63) & 1;
}

static inline void put(uint64_t *set, int32_t v) { set[v >> 6] |= UINT64_C(1) << (v & 63); }

static inline void take_away(uint64_t *set, int32_t v) {
  set[v >> 6] &= ~(UINT64_C(1) << (v & 63));
}

static inline const uint64_t *signature_of(const people *who, int32_t p) {
  return who->signature + (int64_t)p * who->words;
}

/* How many of some values are in a person's signature. */
static inline int64_t shared(const people *who, int32_t p, const uint64_t *values) {
  const uint64_t *signature = signature_of(who, p);
  int64_t total = 0;
  for (int64_t w = 0; w < who->words; w++) total += __builtin_popcountll(signature[w] & values[w]);
  return total;
}

#endif
