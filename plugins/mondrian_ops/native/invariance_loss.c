/* What some rows lose as a class of a night: by what they are generalized to, by the risk that
 * their common values become too few, and by rows that are made up. */
#include "invariance.h"

#include <float.h>
#include <string.h>

static double risk_of(const search *s, int32_t p, const uint64_t *values) {
  const uint64_t *signature = signature_of(&s->who, p);
  int64_t W = s->who.words, one = 0, two = 0, three = 0;
  for (int64_t w = 0; w < W; w++) {
    one += __builtin_popcountll(signature[w] & values[w]);
    two += __builtin_popcountll(signature[w] & values[W + w]);
    three += __builtin_popcountll(signature[w] & values[2 * W + w]);
  }
  if (one < s->who.l) return (double)(s->who.l - one);
  int32_t v = s->who.value[p];
  one -= v >= 0;
  two -= has(values + W, v);
  three -= has(values + 2 * W, v);
  double e =
      0.5 * (double)one + 0.25 * (double)two + 0.125 * (double)three - (double)(s->who.l - 2);
  return e <= 0.0 ? 1.0 : s->table[e * 8.0 < STEPS ? (int)(e * 8.0) : STEPS - 1];
}

static double width(const search *s, int64_t a, int64_t low, int64_t high, int64_t distinct) {
  const mo_rows *rows = s->rows;
  int64_t first = rows->first[a];
  if (low == high) {
    if (low == 0 || rows->kind[a] != MO_INTERVAL) return 0.0;
    return (rows->high[first + high] - rows->low[first + low]) / rows->span[a];
  }
  if (low == 0) return 1.0;
  if (rows->kind[a] == MO_INTERVAL)
    return (rows->high[first + high] - rows->low[first + low]) / rows->span[a];
  if (rows->kind[a] == MO_SET) return (double)(distinct - 1) / rows->domain[a];
  const int64_t *higher = s->higher + first;
  while (higher[low] < high) low = higher[low];
  return rows->step[first + low];
}

/* How many different codes of an attribute some rows have, one replaced by another. */
static int64_t distinct_codes(const search *s, int64_t a, const int32_t *member, int64_t size) {
  int64_t distinct = 0;
  for (int64_t i = 0; i < size; i++) {
    int32_t v = s->code[member[i] * s->attributes + a];
    int64_t j = 0;
    while (j < i && s->code[member[j] * s->attributes + a] != v) j++;
    distinct += j == i;
  }
  return distinct;
}

double spread(const search *s, const int32_t *member, int64_t size, int32_t *bounds) {
  double loss = 0.0;
  for (int64_t a = 0; a < s->attributes; a++) {
    int32_t low = INT32_MAX, high = -1;
    for (int64_t i = 0; i < size; i++) {
      int32_t v = s->code[member[i] * s->attributes + a];
      low = v < low ? v : low;
      high = v > high ? v : high;
    }
    if (bounds) bounds[2 * a] = low, bounds[2 * a + 1] = high;
    if (size == 0) continue;
    int64_t distinct = s->rows->kind[a] == MO_SET && low < high && low > 0
                           ? distinct_codes(s, a, member, size)
                           : 1;
    loss += width(s, a, low, high, distinct);
  }
  return loss;
}

int64_t lacking(const search *s, const int32_t *member, int64_t size, const uint64_t *values) {
  int32_t made_up[MADE_UP];
  if (s->price < DBL_MAX)
    return choose_counterfeits(&s->who, member, size, values, s->tonight, NULL, s->room, made_up);
  for (int64_t i = 0; i < size; i++)
    if (is_short(s, member[i], values)) return -1;
  return 0;
}

void gather(const search *s, const int32_t *member, int64_t size, uint64_t *values) {
  memset(values, 0, 3 * (size_t)s->who.words * sizeof *values);
  for (int64_t i = 0; i < size; i++) add_value(values, s->who.words, s->who.value[member[i]]);
}

/* What the risk of some rows as one class is worth. */
static double worth_of_risk(const search *s, const int32_t *member, int64_t size,
                            const uint64_t *values) {
  double risk = 0.0;
  for (int64_t i = 0; i < size; i++) risk += risk_of(s, member[i], values);
  if (size && size < s->k) risk += (double)(s->k - size);
  return s->weight * risk;
}

double measure(const search *s, const int32_t *member, int64_t size, int32_t *bounds,
               uint64_t *values) {
  double loss = spread(s, member, size, bounds) * (double)size;
  if (!values) values = s->scratch;
  gather(s, member, size, values);
  loss += worth_of_risk(s, member, size, values);
  if (s->price == DBL_MAX) return loss;
  int64_t made_up = lacking(s, member, size, values);
  return loss + s->price * (double)(made_up < 0 ? size : made_up);
}

double loss_below(const search *s, const int32_t *member, int64_t size, double below) {
  if (size < s->k) return DBL_MAX;
  double loss = spread(s, member, size, NULL) * (double)size;
  if (loss >= below) return DBL_MAX;
  gather(s, member, size, s->scratch);
  loss += worth_of_risk(s, member, size, s->scratch);
  if (loss >= below) return DBL_MAX;
  int64_t made_up = lacking(s, member, size, s->scratch);
  if (made_up < 0) return DBL_MAX;
  if (made_up) loss += s->price * (double)made_up;
  return loss < below ? loss : DBL_MAX;
}

double loss_with(const search *s, int64_t g, int32_t p) {
  const group *at = s->groups + g;
  const int32_t *bounds = bounds_of(s, g), *code = s->code + (int64_t)p * s->attributes;
  double loss = 0.0;
  for (int64_t a = 0; a < s->attributes; a++) {
    int64_t low = bounds[2 * a], high = bounds[2 * a + 1], v = code[a];
    low = v < low ? v : low;
    high = v > high ? v : high;
    int64_t distinct = 1;
    if (s->rows->kind[a] == MO_SET && low < high && low > 0) {
      distinct = distinct_codes(s, a, at->member, at->size);
      int64_t i = 0;
      while (i < at->size && s->code[at->member[i] * s->attributes + a] != v) i++;
      distinct += i == at->size;
    }
    loss += width(s, a, low, high, distinct);
  }
  int32_t v = s->who.value[p];
  uint64_t *values = s->scratch;
  memcpy(values, values_of(s, g), 3 * (size_t)s->who.words * sizeof *values);
  add_value(values, s->who.words, v);
  double risk = risk_of(s, p, values);
  for (int64_t i = 0; i < at->size; i++) risk += risk_of(s, at->member[i], values);
  if (at->size + 1 < s->k) risk += (double)(s->k - at->size - 1);
  return loss * (double)(at->size + 1) + s->weight * risk;
}
