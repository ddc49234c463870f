/* Rows that are made up, so that the people of a class have the values that they need.
 *
 * A class is shown with the values of its people and of its made-up rows. Who knows how many rows
 * are made up, the signature of everybody in the class and the rule below looks for all ways to
 * give each person another row as shown, with a value of the person's signature. The rows that are
 * left over would be made up then. A value that is left over in one of these ways, and so may be
 * made up, is a value of one row, which somebody needs: a person with just l values of the
 * signature in the class as shown. The rule:
 *
 * - Every made-up row is needed.
 * - Who needs a value that may be made up has it in one of these ways, and another in another.
 *
 * So nobody can tell which rows are made up, or which of these values such a person has. The rule
 * depends on what is shown and on signatures only, so it says the same in each of these ways. Which
 * of the rows that would do are made up is decided by chance, or some ways could be excluded.
 *
 * Ways are matchings of people and rows; all of them follow from the true one by paths on which one
 * person after the other takes the row that the one before has left (C. Berge, 1957; N. Mendelsohn
 * and A. Dulmage, 1958). */
#include <string.h>

#include "signatures.h"

enum { MOST_ROWS = 64 }; /* of a class for which rows are made up */

typedef struct {
  const people *who;
  const int32_t *member;
  int64_t size;
  const uint64_t *may;    /* (words,): values that may be made up tonight */
  const uint32_t *random; /* (rows,) or NULL */
  uint64_t *shown;        /* (words,): values as shown */
  const uint64_t *twice;  /* (words,): those of two rows or more */
  uint64_t *once;         /* (words,): those of one row, which somebody needs */
  uint64_t *left_over;    /* (words,): of these, those that are left over in some way */
  uint64_t *freed;        /* (words,): for `may_have` */
  uint64_t *open;         /* (MADE_UP, words): values to be tried */
  int32_t *made_up;       /* (MADE_UP,) */
  int64_t count;
} class_shown;

static int32_t value_of(const class_shown *c, int64_t i) { return c->who->value[c->member[i]]; }

static const uint64_t *signature(const class_shown *c, int64_t i) {
  return signature_of(c->who, c->member[i]);
}

static int meet(const class_shown *c, const uint64_t *one, const uint64_t *other) {
  uint64_t both = 0;
  for (int64_t w = 0; w < c->who->words; w++) both |= one[w] & other[w];
  return both != 0;
}

/* Adds the values that are freed by people, except one, who take a row of a freed value. */
static void free_values(const class_shown *c, uint64_t *freed, int64_t except) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (int64_t i = 0; i < c->size; i++) {
      int32_t v = value_of(c, i);
      if (i == except || v < 0 || has(freed, v) || !meet(c, signature(c, i), freed)) continue;
      put(freed, v);
      changed = 1;
    }
  }
}

static void only(const class_shown *c, uint64_t *set, int32_t v) {
  memset(set, 0, (size_t)c->who->words * sizeof *set);
  put(set, v);
}

static void put_made_up(const class_shown *c, uint64_t *set) {
  for (int64_t j = 0; j < c->count; j++) put(set, c->made_up[j]);
}

/* Whether a person has a value of one row, in the signature but not its own, in one of the ways. */
static int may_have(const class_shown *c, int64_t i, int32_t x) {
  int32_t v = value_of(c, i);
  int64_t owner = 0;
  if (v < 0) return 0;
  while (owner < c->size && value_of(c, owner) != x) owner++;
  if (owner <
      c->size) { /* takes the row that the person leaves, or a made-up one, or a freed one */
    only(c, c->freed, v);
    put_made_up(c, c->freed);
    free_values(c, c->freed, i);
    if (!has(c->freed, x)) return 0;
  }
  only(c, c->freed, v); /* may be left over, or is taken, so that another one is that may be */
  free_values(c, c->freed, i);
  for (int64_t j = 0; j < c->count; j++) take_away(c->freed, c->made_up[j]);
  return meet(c, c->freed, c->once);
}

/* Whether nobody can tell what is made up, and what those have who need it. */
static int nobody_can_tell(const class_shown *c) {
  int64_t W = c->who->words;
  memset(c->once, 0, (size_t)W * sizeof *c->once);
  memset(c->left_over, 0, (size_t)W * sizeof *c->left_over);
  for (int64_t i = 0; i < c->size; i++)
    if (shared(c->who, c->member[i], c->shown) == c->who->l)
      for (int64_t w = 0; w < W; w++) c->once[w] |= signature(c, i)[w];
  for (int64_t w = 0; w < W; w++) c->once[w] &= c->shown[w] & ~c->twice[w];
  for (int64_t j = 0; j < c->count; j++)
    if (!has(c->once, c->made_up[j])) return 0; /* another one made it superfluous */
  put_made_up(c, c->left_over);
  free_values(c, c->left_over, -1);
  for (int64_t w = 0; w < W; w++) c->left_over[w] &= c->once[w];
  for (int64_t i = 0; i < c->size; i++) {
    if (shared(c->who, c->member[i], c->shown) >= c->who->l + c->count) continue;
    for (int64_t w = 0; w < W; w++)
      for (uint64_t some = c->left_over[w] & signature(c, i)[w]; some; some &= some - 1) {
        int32_t x = (int32_t)(64 * w + __builtin_ctzll(some));
        if (x != value_of(c, i) && !may_have(c, i, x)) return 0;
      }
  }
  return 1;
}

/* Takes the value at a place away from a set; which one it was. */
static int32_t take_at(uint64_t *set, int64_t place) {
  int64_t w = 0;
  for (; place >= __builtin_popcountll(set[w]); w++) place -= __builtin_popcountll(set[w]);
  uint64_t word = set[w];
  while (place--) word &= word - 1;
  int32_t v = (int32_t)(64 * w + __builtin_ctzll(word));
  take_away(set, v);
  return v;
}

/* Makes up rows until nobody needs more; whether the rule allows any. */
static int complete(class_shown *c) {
  int64_t W = c->who->words, i = 0, tried = 0;
  while (i < c->size && shared(c->who, c->member[i], c->shown) >= c->who->l) i++;
  if (i == c->size) return nobody_can_tell(c);
  int64_t lacks = c->who->l - shared(c->who, c->member[i], c->shown);
  if (value_of(c, i) < 0 || c->count + lacks > MADE_UP) return 0;
  uint64_t *open = c->open + c->count * W;
  for (int64_t w = 0; w < W; w++) {
    open[w] = signature(c, i)[w] & c->may[w] & ~c->shown[w];
    tried += __builtin_popcountll(open[w]);
  }
  uint64_t draw = c->random ? c->random[c->member[c->count % c->size]] : 0;
  for (; tried; tried--) {
    int32_t x = take_at(open, (int64_t)(draw * (uint64_t)tried >> 32));
    put(c->shown, x);
    c->made_up[c->count++] = x;
    if (complete(c)) return 1;
    c->count--;
    take_away(c->shown, x);
  }
  return 0;
}

int64_t choose_counterfeits(const people *who, const int32_t *member, int64_t size,
                            const uint64_t *values, const uint64_t *may, const uint32_t *random,
                            uint64_t *room, int32_t *made_up) {
  int64_t W = who->words, i = 0;
  while (i < size && shared(who, member[i], values) >= who->l) i++;
  if (i == size) return 0;
  if (size > MOST_ROWS) return -1;
  class_shown c = {.who = who,
                   .member = member,
                   .size = size,
                   .may = may,
                   .random = random,
                   .shown = room,
                   .twice = values + W,
                   .once = room + W,
                   .left_over = room + 2 * W,
                   .freed = room + 3 * W,
                   .open = room + 4 * W,
                   .made_up = made_up};
  memcpy(c.shown, values, (size_t)W * sizeof *values);
  return complete(&c) ? c.count : -1;
}
