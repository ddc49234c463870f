/* Classes that are kept from night to night: what the files of their search share. */
#ifndef MONDRIAN_OPS_INVARIANCE_H
#define MONDRIAN_OPS_INVARIANCE_H

#include <string.h>

#include "counterfeits.h"

enum {
  STEPS = 64,    /* of the table of risks */
  EXCHANGED = 64,/* rows of the largest class that exchanges rows */
  PER_SIDE = 4, /* classes near a row that are found on each side of it, in an order */
  NEAR = 24,  /* classes near a row or a class that are looked at */
  TRIED = 4,  /* of these, the ones that cost least are tried */
  EDGES = 6,     /* rows near a cut */
  LANES = 4,     /* entries of bounds that are compared at once */
  CUT = 4096,    /* rows of the largest class that is cut */
};

static const double LESS = 1e-9; /* losses are sums of rounded numbers */

/* Whether a loss is not below another one, even if both are rounded. */
static inline int no_less(double loss, double other) { return loss >= other + LESS; }

typedef struct {
  int32_t *member;
  int64_t size, room;
  double loss;
  int64_t changed; /* when, by s->clock */
  uint8_t dirty, fresh, valid, lacks; /* lacks: some member has too few values */
} group;

/* Two classes that were tried as one: `when`, and that no cut of them gained more. */
typedef struct {
  int64_t one, other, when;
  double gain;
} pair;

typedef struct {
  const mo_rows *rows;
  people who;
  int64_t n, attributes, k, most, orders;
  int64_t entries;       /* of bounds: of each attribute the greatest -code and the greatest code;
                            in whole LANES */
  int32_t *code;         /* (rows, entries): the bounds of a row */
  int64_t *higher;       /* (codes,) MO_TREE: the next code with a greater step */
  const int32_t *order;  /* (orders, rows) */
  int32_t *place;        /* (orders, rows): where a row is in an order */
  int32_t *class_of;     /* (rows,): -1: none */
  group *groups;
  int64_t count, most_groups, clock;
  pair *pairs;           /* (rows,): some pairs, the last ones tried */
  int64_t *stamp, stamped; /* (groups,) */
  int32_t *bounds;       /* (groups, entries) */
  uint64_t *values;      /* (groups, 3, words), as `tonight` of the rows of a group */
  uint64_t *scratch;     /* (2, 3, words): the same of rows that are tried as one class, or two */
  int32_t *below;        /* (CUT + 1, entries): bounds of so many first rows of a list */
  int32_t *above;        /* (CUT + 1, entries): bounds of all others */
  int32_t *edge;         /* (EDGES + 2, entries): of rows near a cut, or else of what is tried */
  double weight, table[STEPS], price;
  double least;          /* the least gain for which rows move, or two classes are cut anew */
  int32_t *list, *list2; /* (rows,) */
  int64_t *key;          /* (rows,) */
  uint64_t *tonight;     /* (3, words): values of one row, two, three rows or more */
  uint64_t *room;        /* (COUNTERFEIT_ROOM, words) */
} search;

static inline void add_value(uint64_t *values, int64_t words, int32_t v) {
  if (v < 0) return;
  uint64_t bit = UINT64_C(1) << (v & 63), *at = values + (v >> 6);
  at[2 * words] |= at[words] & bit;
  at[words] |= at[0] & bit;
  at[0] |= bit;
}

static inline int32_t *bounds_of(const search *s, int64_t g) { return s->bounds + g * s->entries; }
static inline uint64_t *values_of(const search *s, int64_t g) {
  return s->values + g * 3 * s->who.words;
}

static inline int is_short(const search *s, int32_t p, const uint64_t *values) {
  return shared(&s->who, p, values) < s->who.l;
}

static inline const int32_t *bounds_of_row(const search *s, int32_t p) {
  return s->code + p * s->entries;
}

static inline int32_t code_of(const search *s, int32_t p, int64_t a) {
  return bounds_of_row(s, p)[2 * a + 1];
}

/* The bounds of two sets of rows together. */
static inline void unite(const search *s, const int32_t *one, const int32_t *other,
                         int32_t *bounds) {
  for (int64_t i = 0; i < s->entries; i += LANES) {
    int32_t greatest[LANES];
    for (int64_t j = 0; j < LANES; j++)
      greatest[j] = one[i + j] > other[i + j] ? one[i + j] : other[i + j];
    memcpy(bounds + i, greatest, sizeof greatest);
  }
}

static inline void no_bounds(const search *s, int32_t *bounds) {
  for (int64_t i = 0; i < s->entries; i++) bounds[i] = -INT32_MAX;
}

static inline void bound(const search *s, const int32_t *member, int64_t size, int32_t *bounds) {
  no_bounds(s, bounds);
  for (int64_t i = 0; i < size; i++) unite(s, bounds, bounds_of_row(s, member[i]), bounds);
}

/* invariance_loss.c: what rows lose. */

/* Some rows that are tried as one class. */
typedef struct {
  const int32_t *member;
  int64_t size;
  uint64_t *values; /* (3, words) */
  double loss;      /* by generalization, then by all */
  int64_t lack;     /* the values that the member lacks who lacks most */
} part;

/* Some rows within bounds, and what they lose by generalization. */
part part_of(const search *s, const int32_t *bounds, const int32_t *member, int64_t size);

/* Sets s->below and s->above for some rows. */
void bound_sides(const search *s, const int32_t *member, int64_t size);

/* Finds the values of some rows. */
void gather(const search *s, const part *of);

/* Adds what the risk of some rows loses, by their values; finds what they lack. */
void add_risk(const search *s, part *of);

/* Adds what some rows lose besides by generalization, by their values; how many rows are made up so
 * that every member has enough values, -1 if that cannot be. */
int64_t add_rest(const search *s, part *of);

/* Whether some rows are a valid class that loses less than that; its loss. */
int one_below(const search *s, part *of, double below);

/* As one_below. Also sets `risk` to what the rows' risk loses, even if the answer is no. */
int whole_below(const search *s, part *of, double below, double *risk);

/* Whether some rows are two valid classes that lose less than that together; their losses. Their
 * risks lose `risk` or more. */
int two_below(const search *s, part *one, part *two, double risk, double below);

/* invariance_classes.c: the classes, and those near a row. */

void update(search *s, int64_t g);
int append(search *s, int64_t g, int32_t p);
void take_out(search *s, int32_t p);

/* Opens a class; -1 if there is no room. */
int64_t open_group(search *s);

/* Class g and row p, which is put in front or at the end, with their values. */
part with_row(const search *s, int64_t g, int32_t p, int in_front);

/* Which classes near a row are found: if `fitting`, only those that it may join. In each order, on
 * each side of the row, `walked` rows are looked at, until they had `per_side` such classes; in all
 * orders together no more than `most` are found. */
typedef struct {
  int fitting;
  int64_t per_side, walked, most;
} reach;

static const reach BESIDE = {0, PER_SIDE, 64, NEAR};

/* Adds classes near a row, other than its own, to the `count` that are found. */
int64_t classes_near(search *s, int32_t p, int64_t own, reach r, int64_t *found, int64_t count);

/* Finds at most NEAR classes near the rows of class g; how many. */
int64_t classes_beside(search *s, int64_t g, int64_t *found);

/* The classes that cost least of those that were looked at, the cheapest first. */
typedef struct {
  int64_t count, g[TRIED];
  double cost[TRIED];
} closest;

/* Whether a class of this cost belongs among them. */
static inline int is_close(const closest *beside, double cost) {
  return beside->count < TRIED || cost < beside->cost[TRIED - 1];
}

/* Puts a class among them; the dearest one leaves if there are TRIED. */
static inline void put_close(closest *beside, int64_t g, double cost) {
  int64_t j = beside->count < TRIED ? beside->count++ : TRIED - 1;
  for (; j > 0 && beside->cost[j - 1] > cost; j--)
    beside->cost[j] = beside->cost[j - 1], beside->g[j] = beside->g[j - 1];
  beside->cost[j] = cost;
  beside->g[j] = g;
}

/* invariance_cuts.c: cuts where they lose less. */

/* Cuts a class in two valid ones where that loses less, then these. */
int cut_class(search *s, int64_t g);

/* Joins a class with one near it and cuts the two anew, where that loses less by s->least. */
int cut_anew(search *s, int64_t g);

#endif
