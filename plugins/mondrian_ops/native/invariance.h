/* Classes that are kept from night to night: what the files of their search share. */
#ifndef MONDRIAN_OPS_INVARIANCE_H
#define MONDRIAN_OPS_INVARIANCE_H

#include "counterfeits.h"

enum {
  NEAR = 24,     /* classes near a row that are tried */
  PER_SIDE = 4,  /* of these, how many on each side of the row in an order */
  STEPS = 64,    /* of the table of risks */
  EXCHANGED = 64,/* rows of the largest class that exchanges rows */
};

static const double LESS = 1e-9; /* losses are sums of rounded numbers */

typedef struct {
  int32_t *member;
  int64_t size, room;
  double loss;
  uint8_t dirty, fresh;
} group;

typedef struct {
  const mo_rows *rows;
  people who;
  int64_t n, attributes, k, most, orders;
  int32_t *code;         /* (rows, attributes) */
  int64_t *higher;       /* (codes,) MO_TREE: the next code with a greater step */
  const int32_t *order;  /* (orders, rows) */
  int32_t *place;        /* (orders, rows): where a row is in an order */
  int32_t *class_of;     /* (rows,): -1: none */
  group *groups;
  int64_t count, most_groups;
  int64_t *stamp, stamped; /* (groups,) */
  int32_t *bounds;       /* (groups, attributes, 2) */
  uint64_t *values;      /* (groups, 3, words), as `tonight` of the rows of a group */
  uint64_t *scratch;     /* (3, words) */
  double weight, table[STEPS], price;
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

static inline int32_t *bounds_of(const search *s, int64_t g) {
  return s->bounds + g * s->attributes * 2;
}
static inline uint64_t *values_of(const search *s, int64_t g) {
  return s->values + g * 3 * s->who.words;
}

static inline int is_short(const search *s, int32_t p, const uint64_t *values) {
  return shared(&s->who, p, values) < s->who.l;
}

/* invariance_loss.c: what rows lose. */

/* How many rows are made up so that every member has enough values, -1 if that cannot be. */
int64_t lacking(const search *s, const int32_t *member, int64_t size, const uint64_t *values);

/* The values of some rows. */
void gather(const search *s, const int32_t *member, int64_t size, uint64_t *values);

/* What some rows lose as one class, per row; their bounds if asked for. */
double spread(const search *s, const int32_t *member, int64_t size, int32_t *bounds);

/* The loss of some rows as one class; their bounds and values if asked for. */
double measure(const search *s, const int32_t *member, int64_t size, int32_t *bounds,
               uint64_t *values);

/* The loss of some rows as one class; DBL_MAX if they may be none, or if it is not below. */
double loss_below(const search *s, const int32_t *member, int64_t size, double below);

/* The loss of class g with row p in addition, without that of rows that are made up. */
double loss_with(const search *s, int64_t g, int32_t p);

/* invariance.c: the classes, and those near a row. */

void update(search *s, int64_t g);
int append(search *s, int64_t g, int32_t p);

/* Opens a class; -1 if there is no room. */
int64_t open_group(search *s);

/* Finds at most NEAR classes near the rows of class g; how many. */
int64_t classes_beside(search *s, int64_t g, int64_t *found);

/* invariance_cuts.c: cuts where they lose less. */

/* Cuts a class in two valid ones where that loses less, then these. */
int cut_class(search *s, int64_t g);

/* Joins a class with one near it and cuts the two anew, where that loses less. */
int cut_anew(search *s, int64_t g);

#endif
