/* What some rows lose as a class of a night: by generalization, by the risk that values that their
 * people have in common become too few, and by rows that are made up. */
#include "invariance.h"

#include <float.h>
#include <math.h>

static double width(const search *s, int64_t a, int64_t low, int64_t high, int64_t distinct) {
  const mo_rows *rows = s->rows;
  int64_t first = rows->first[a];
  if (rows->kind[a] == MO_INTERVAL) {
    if (low == 0) return high == 0 ? 0.0 : rows->most[a];
    return fmin(rows->most[a], (rows->high[first + high] - rows->low[first + low]) / rows->span[a]);
  }
  if (low == high) return 0.0;
  if (low == 0) return rows->most[a];
  if (rows->kind[a] == MO_SET) return rows->step[first + distinct - 1];
  const int64_t *higher = s->higher + first;
  while (higher[low] < high) low = higher[low];
  return rows->step[first + low];
}

/* How many different codes of an attribute some rows have. */
static int64_t distinct_codes(const search *s, int64_t a, const int32_t *member, int64_t size) {
  int64_t distinct = 0;
  for (int64_t i = 0; i < size; i++) {
    int32_t v = code_of(s, member[i], a);
    int64_t j = 0;
    while (j < i && code_of(s, member[j], a) != v) j++;
    distinct += j == i;
  }
  return distinct;
}

part part_of(const search *s, const int32_t *bounds, const int32_t *member, int64_t size) {
  double loss = 0.0;
  for (int64_t a = 0; a < s->attributes && size > 0; a++) {
    int64_t low = -bounds[2 * a], high = bounds[2 * a + 1];
    int counted = s->rows->kind[a] == MO_SET && low < high && low > 0;
    loss += width(s, a, low, high, counted ? distinct_codes(s, a, member, size) : 1);
  }
  return (part){member, size, s->scratch, loss * (double)size, 0};
}

void bound_sides(const search *s, const int32_t *member, int64_t size) {
  int64_t E = s->entries;
  no_bounds(s, s->below);
  for (int64_t i = 0; i < size; i++)
    unite(s, s->below + i * E, bounds_of_row(s, member[i]), s->below + (i + 1) * E);
  no_bounds(s, s->above + size * E);
  for (int64_t i = size - 1; i >= 0; i--)
    unite(s, s->above + (i + 1) * E, bounds_of_row(s, member[i]), s->above + i * E);
}

void gather(const search *s, const part *of) {
  int64_t W = s->who.words;
  if (W > 1) {
    memset(of->values, 0, 3 * (size_t)W * sizeof *of->values);
    for (int64_t i = 0; i < of->size; i++) add_value(of->values, W, s->who.value[of->member[i]]);
    return;
  }
  uint64_t one = 0, two = 0, three = 0; /* as add_value, in registers */
  for (int64_t i = 0; i < of->size; i++) {
    int32_t v = s->who.value[of->member[i]];
    uint64_t bit = (uint64_t)(v >= 0) << (v & 63);
    three |= two & bit;
    two |= one & bit;
    one |= bit;
  }
  of->values[0] = one, of->values[1] = two, of->values[2] = three;
}

/* The risk of a row in a class of these values; raises `lack` to what it lacks. */
ALWAYS_INLINE double risk_of(const search *s, int32_t p, const uint64_t *values, int64_t W,
                             int64_t *lack) {
  const uint64_t *signature = s->who.signature + p * W;
  int64_t v = s->who.value[p], one = 0, two = 0, three = 0; /* values of other rows */
  for (int64_t w = 0; w < W; w++) {
    uint64_t others = signature[w] & ~(v >> 6 == w ? UINT64_C(1) << (v & 63) : 0);
    one += __builtin_popcountll(others & values[w]);
    two += __builtin_popcountll(others & values[W + w]);
    three += __builtin_popcountll(others & values[2 * W + w]);
  }
  int64_t lacks = s->who.l - one - (v >= 0);
  if (lacks > 0) {
    if (lacks > *lack) *lack = lacks;
    return (double)lacks;
  }
  int64_t step = 4 * one + 2 * two + three - 8 * (s->who.l - 2);
  return s->table[step < 0 ? 0 : step < STEPS ? step : STEPS - 1];
}

ALWAYS_INLINE double sum_of_risks(const search *s, part *of, int64_t W, int64_t most) {
  double risk = 0.0;
  for (int64_t i = 0; i < of->size && of->lack <= most; i++)
    risk += risk_of(s, of->member[i], of->values, W, &of->lack);
  return risk;
}

/* As add_risk, but ends at a member who lacks more values than `most`, and returns 0: then the loss
 * is of no use. */
static int add_risk_within(const search *s, part *of, int64_t most) {
  int64_t W = s->who.words;
  of->lack = 0;
  double risk = W == 1 ? sum_of_risks(s, of, 1, most) : sum_of_risks(s, of, W, most);
  if (of->size && of->size < s->k) risk += (double)(s->k - of->size);
  of->loss += s->weight * risk;
  return of->lack <= most;
}

void add_risk(const search *s, part *of) {
  add_risk_within(s, of, s->who.l); /* nobody lacks more than l values */
}

/* How many rows may be made up for a class. */
static int64_t most_made_up(const search *s) { return s->price == DBL_MAX ? 0 : MADE_UP; }

static int64_t made_up_for(const search *s, const part *of) {
  int32_t made_up[MADE_UP];
  if (of->lack == 0) return 0;
  if (of->lack > most_made_up(s)) return -1;
  return choose_counterfeits(&s->who, of->member, of->size, of->values, s->tonight, NULL, s->room,
                             made_up);
}

int64_t add_rest(const search *s, part *of) {
  add_risk(s, of);
  int64_t made_up = made_up_for(s, of);
  if (s->price < DBL_MAX) of->loss += s->price * (double)(made_up < 0 ? of->size : made_up);
  return made_up;
}

/* Adds what rows that are made up for some rows lose, if any are; 0 if that cannot be, or if the
 * loss, and that of others, would not be below. */
static int add_made_up(const search *s, part *of, double others, double below) {
  if (of->lack == 0) return 1;
  if (no_less(of->loss + s->price * (double)of->lack + others, below)) return 0;
  int64_t made_up = made_up_for(s, of);
  of->loss += s->price * (double)made_up;
  return made_up >= 0;
}

int one_below(const search *s, part *of, double below) {
  if (of->size < s->k || no_less(of->loss, below)) return 0;
  gather(s, of);
  return add_risk_within(s, of, most_made_up(s)) && add_made_up(s, of, 0.0, below) &&
         of->loss < below;
}

int whole_below(const search *s, part *of, double below, double *risk) {
  double loss = of->loss;
  gather(s, of);
  of->loss = 0.0;
  add_risk(s, of);
  *risk = of->loss;
  of->loss += loss;
  return of->size >= s->k && of->lack <= most_made_up(s) && add_made_up(s, of, 0.0, below) &&
         of->loss < below;
}

int two_below(const search *s, part *one, part *two, double risk, double below) {
  if (one->size < s->k || two->size < s->k) return 0;
  if (no_less(one->loss + two->loss + risk, below)) return 0;
  two->values = s->scratch + 3 * s->who.words;
  gather(s, one);
  if (!add_risk_within(s, one, most_made_up(s)) || no_less(one->loss + two->loss, below)) return 0;
  gather(s, two);
  if (!add_risk_within(s, two, most_made_up(s)) || no_less(one->loss + two->loss, below)) return 0;
  return add_made_up(s, one, two->loss, below) && add_made_up(s, two, one->loss, below) &&
         one->loss < below && two->loss < below - one->loss;
}
