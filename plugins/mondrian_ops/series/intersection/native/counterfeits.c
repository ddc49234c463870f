/* Rows that are made up, so that the people of a class have the values that they need.
 *
 * A class is shown with the values of its people and of its made-up rows. Somebody may know the
 * signature of everybody in the class, how many rows are made up, and this rule. For them there are
 * several ways to give each person who has a value another row as shown, with a value of the
 * person's signature. The rows that nobody gets are the made-up ones then, if each of them could be
 * one: no other row of the class has its value, another row of the night has it, and without it
 * somebody would have fewer than l values. Rows are made up only if
 *
 * - each of them could be one, and
 * - no value is made up in all of these ways, and
 * - each person who has a value, and may have fewer than l without the made-up rows, has each value
 *   of its signature that is made up in some way in another way. A person may have fewer than l who
 *   has fewer than l and one for each made-up row as shown.
 *
 * So nobody can tell which rows are made up, or which value such a person has. In each of the ways
 * the rule says the same. Chance decides which of several values is made up: if it were always the
 * first one that would do, who knows the order could exclude some ways. Large classes get no rows.
 *
 * A way is a matching of people and rows. All of them follow from the true one by paths: a person
 * takes a row that is left over, the next person takes the row which that one had, and so on
 * (C. Berge, 1957; N. Mendelsohn and A. Dulmage, 1958). */
#include "counterfeits.h"

#include <string.h>

enum { MOST_ROWS = 64 }; /* of a class for which rows are made up */

typedef struct {
  const people *who;
  const int32_t *member;
  int64_t size;
  const uint64_t *tonight; /* (2, words): values of one row of the night or more; of two or more */
  const uint64_t *twice; /* (words,): values of two rows of the class or more */
  const uint32_t *random; /* (rows, MADE_UP) or NULL */
  uint64_t *shown; /* (words,): values as shown */
  uint64_t *could_be; /* (words,): values of the rows that could be made up */
  uint64_t *left_over; /* (words,): of these, those that are made up in some way */
  uint64_t *may_go; /* (words,): values of the rows that may go */
  uint64_t *untried; /* (MADE_UP, words): values to be tried */
  int32_t *made_up; /* (MADE_UP,) */
  int64_t count;
} class_shown;

static int32_t value_of(const class_shown *c, int64_t i) { return c->who->value[c->member[i]]; }

static const uint64_t *signature(const class_shown *c, int64_t i) {
  return signature_of(c->who, c->member[i]);
}

static int64_t has_shown(const class_shown *c, int64_t i) {
  return shared(c->who, c->member[i], c->shown);
}

static int meet(const class_shown *c, const uint64_t *one, const uint64_t *other) {
  uint64_t both = 0;
  for (int64_t w = 0; w < c->who->words; w++) both |= one[w] & other[w];
  return both != 0;
}

/* Finds the rows that could be made up; whether those that are could be. */
static int find_could_be(const class_shown *c) {
  int64_t W = c->who->words;
  memset(c->could_be, 0, (size_t)W * sizeof *c->could_be);
  for (int64_t i = 0; i < c->size; i++)
    for (int64_t w = 0; w < W && has_shown(c, i) == c->who->l; w++)
      c->could_be[w] |= signature(c, i)[w];
  for (int64_t w = 0; w < W; w++) c->could_be[w] &= c->shown[w] & ~c->twice[w];
  for (int64_t j = 0; j < c->count; j++)
    if (!has(c->could_be, c->made_up[j])) return 0; /* everybody has enough without it */
  for (int64_t w = 0; w < W; w++) c->could_be[w] &= c->tonight[W + w]; /* another is elsewhere */
  for (int64_t j = 0; j < c->count; j++) put(c->could_be, c->made_up[j]);
  return 1;
}

/* Finds the values that are made up in some way: those of rows that could be and whose person, by a
 * path, would take a row that is made up. */
static void find_left_over(const class_shown *c) {
  int64_t W = c->who->words;
  memset(c->left_over, 0, (size_t)W * sizeof *c->left_over);
  for (int64_t j = 0; j < c->count; j++) put(c->left_over, c->made_up[j]);
  for (int changed = 1; changed;) {
    changed = 0;
    for (int64_t i = 0; i < c->size; i++) {
      int32_t v = value_of(c, i);
      if (v < 0 || has(c->left_over, v) || !meet(c, signature(c, i), c->left_over)) continue;
      put(c->left_over, v);
      changed = 1;
    }
  }
  for (int64_t w = 0; w < W; w++) c->left_over[w] &= c->could_be[w];
}

/* Finds the values of which a row may go: it could be made up and is not, or somebody takes it
 * whose own row may go. */
static void find_may_go(const class_shown *c) {
  int64_t W = c->who->words;
  memcpy(c->may_go, c->could_be, (size_t)W * sizeof *c->may_go);
  for (int64_t j = 0; j < c->count; j++) take_away(c->may_go, c->made_up[j]);
  for (int changed = 1; changed;) {
    changed = 0;
    for (int64_t i = 0; i < c->size; i++)
      for (int64_t w = 0; w < W && has(c->may_go, value_of(c, i)); w++) {
        uint64_t more = signature(c, i)[w] & ~c->may_go[w];
        c->may_go[w] |= more;
        changed |= more != 0;
      }
  }
}

/* Whether nobody can tell which rows are made up, and what those have who need them. */
static int nobody_can_tell(const class_shown *c) {
  if (!find_could_be(c)) return 0;
  find_left_over(c);
  find_may_go(c);
  for (int64_t j = 0; j < c->count; j++)
    if (!has(c->may_go, c->made_up[j])) return 0; /* made up in all ways */
  for (int64_t i = 0; i < c->size; i++)
    if (value_of(c, i) >= 0 && !has(c->may_go, value_of(c, i)) &&
        has_shown(c, i) < c->who->l + c->count && meet(c, signature(c, i), c->left_over))
      return 0; /* keeps its value in all ways */
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

/* Takes away from some values, which nobody in the class has, those that are in the signatures of
 * the same people as a value that would not do, and so would not do either; how many remain. */
static int64_t take_alike(const class_shown *c, uint64_t *set, int32_t v) {
  int64_t others = 0;
  for (int64_t w = 0; w < c->who->words; w++) {
    uint64_t alike = set[w];
    for (int64_t i = 0; i < c->size && alike; i++) {
      uint64_t in = signature(c, i)[w];
      alike &= has(signature(c, i), v) ? in : ~in;
    }
    set[w] &= ~alike;
    others += __builtin_popcountll(set[w]);
  }
  return others;
}

/* Makes up rows until nobody lacks a value; whether the rule allows any. */
static int make_up(class_shown *c) {
  int64_t W = c->who->words, i = 0, values = 0;
  while (i < c->size && has_shown(c, i) >= c->who->l) i++;
  if (i == c->size) return nobody_can_tell(c);
  if (c->count + c->who->l - has_shown(c, i) > MADE_UP) return 0;
  uint64_t *untried = c->untried + c->count * W;
  for (int64_t w = 0; w < W; w++) {
    untried[w] = signature(c, i)[w] & c->tonight[w] & ~c->shown[w];
    values += __builtin_popcountll(untried[w]);
  }
  uint64_t draw = c->random ? c->random[c->member[0] * MADE_UP + c->count] : 0;
  while (values) {
    int32_t v = take_at(untried, (int64_t)(draw * (uint64_t)values >> 32));
    put(c->shown, v);
    c->made_up[c->count++] = v;
    if (make_up(c)) return 1;
    c->count--;
    take_away(c->shown, v);
    values = take_alike(c, untried, v);
  }
  return 0;
}

int64_t choose_counterfeits(const people *who, const int32_t *member, int64_t size,
                            const uint64_t *values, const uint64_t *tonight, const uint32_t *random,
                            uint64_t *room, int32_t *made_up) {
  int64_t W = who->words, i = 0;
  while (i < size && shared(who, member[i], values) >= who->l) i++;
  if (i == size) return 0;
  if (size > MOST_ROWS) return -1;
  class_shown c = {.who = who,
                   .member = member,
                   .size = size,
                   .tonight = tonight,
                   .twice = values + W,
                   .random = random,
                   .shown = room,
                   .could_be = room + W,
                   .left_over = room + 2 * W,
                   .may_go = room + 3 * W,
                   .untried = room + 4 * W,
                   .made_up = made_up};
  memcpy(c.shown, values, (size_t)W * sizeof *values);
  return make_up(&c) ? c.count : -1;
}
