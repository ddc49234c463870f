/* Classes that keep what people have in common from night to night.
 *
 * Every row is a person, with the set of sensitive values that all classes of the person had so far
 * (all values, for whoever is new). A class is valid if it has k rows and, of the values of each
 * member, at least l. A class that gains a row stays valid, as does a union of valid classes.
 *
 * The classes of the night before are kept as far as they can be: whoever stays with the same
 * people keeps the same values. Whoever is new, or moved, joins the class that loses least by it;
 * classes that became invalid are repaired by what loses least: a row moves, two rows are
 * exchanged, or two classes are joined; large classes are cut. At last rows move or are exchanged,
 * and two classes are cut anew as one, where that loses less.
 *
 * If rows may be made up, a class that lacks values is valid too, and loses by each such row. */
#include "invariance.h"

#include <float.h>
#include <string.h>

enum {
  FAR = 1024,    /* rows walked from a row, in an order, to find a class that it may join */
  MANY = 96,     /* classes that are tried for a row that lacks values */
  TAKEN = 3,     /* rows tried, on each side in an order, that bring a value that lacks */
  PASSES = 3,    /* over the rows of changed classes */
};

static const double FOURTH_ROOT = 0.8408964152537145; /* of one half */
static const double SPARED = 0.8; /* a row is moved or exchanged only if its class loses less
                                     without it, by s->least and this part of its rows' mean loss */
static const double WORTH = 0.1;  /* this part of `weight` is the least gain: see `least` */

static const reach FITTING = {1, PER_SIDE, FAR, MANY};
static const reach NEXT_FITTING = {1, 2, FAR, MANY};

static int64_t best_class(search *s, int32_t p, int64_t own, double *cost) {
  int64_t found[MANY], best = -1;
  s->stamped++;
  int64_t count = classes_near(s, p, own, FITTING, found, 0);
  for (int64_t i = 0; i < count; i++) {
    part with = with_row(s, found[i], p, 0);
    double now = s->groups[found[i]].loss;
    if (best >= 0 && with.loss - now >= *cost) continue;
    add_rest(s, &with);
    if (best < 0 || with.loss - now < *cost) best = found[i], *cost = with.loss - now;
  }
  return best;
}

/* Class g without row p (or -1) and with row q (or -1), in a list; s->edge has its bounds. */
static part after(const search *s, int64_t g, int32_t p, int32_t q, int32_t *list) {
  const group *at = s->groups + g;
  int64_t size = 0;
  for (int64_t i = 0; i < at->size; i++)
    if (at->member[i] != p) list[size++] = at->member[i];
  if (q >= 0) list[size++] = q;
  bound(s, list, size, s->edge);
  return part_of(s, s->edge, list, size);
}

/* Joins class h to class g. */
static int join(search *s, int64_t g, int64_t h) {
  group *from = s->groups + h;
  for (int64_t i = 0; i < from->size; i++)
    if (append(s, g, from->member[i])) return MO_NO_MEMORY;
  from->size = 0;
  update(s, h);
  update(s, g);
  return MO_DONE;
}

/* Finds the values of the rows of two classes together. */
static void unite_values(const search *s, int64_t g, int64_t h, uint64_t *values) {
  const uint64_t *one = values_of(s, g), *two = values_of(s, h);
  int64_t W = s->who.words;
  for (int64_t w = 0; w < W; w++) {
    uint64_t both = one[w] & two[w], more = (one[w] & two[W + w]) | (one[W + w] & two[w]);
    values[w] = one[w] | two[w];
    values[W + w] = one[W + w] | two[W + w] | both;
    values[2 * W + w] = one[2 * W + w] | two[2 * W + w] | more;
  }
}

/* Classes g and h as one, with their values. */
static part union_of(const search *s, int64_t g, int64_t h) {
  const group *at = s->groups + g, *other = s->groups + h;
  memcpy(s->list2, at->member, (size_t)at->size * sizeof *s->list2);
  memcpy(s->list2 + at->size, other->member, (size_t)other->size * sizeof *s->list2);
  unite(s, bounds_of(s, g), bounds_of(s, h), s->edge);
  unite_values(s, g, h, s->scratch);
  return part_of(s, s->edge, s->list2, at->size + other->size);
}

/* The class near g whose union with g loses least; unions that are valid come first. If g is valid,
 * only a valid union that loses less than both. */
static int64_t best_union(search *s, int64_t g, int *is_valid, double *cost) {
  int64_t found[MANY], count = classes_beside(s, g, found), best = -1;
  group *at = s->groups + g;
  double least = at->valid ? at->loss : DBL_MAX;
  *is_valid = at->valid;
  for (int64_t i = 0; i < at->size; i++)
    if (is_short(s, at->member[i], values_of(s, g)))
      count = classes_near(s, at->member[i], g, NEXT_FITTING, found, count);
  for (int64_t i = 0; i < count; i++) {
    const group *other = s->groups + found[i];
    part both = union_of(s, g, found[i]);
    if (*is_valid && both.loss - other->loss >= least) continue;
    int good = add_rest(s, &both) >= 0 && both.size >= s->k;
    double more = both.loss - other->loss;
    if (good > *is_valid || (good == *is_valid && more < least))
      best = found[i], least = more, *is_valid = good;
  }
  *cost = least - at->loss;
  return best;
}

/* What makes a class valid: its row p goes to class `to`, or row q of that class comes, or both. */
typedef struct {
  int32_t p, q; /* -1: none */
  int64_t to;
  double cost;
} move;

static void try_move(search *s, int64_t g, int32_t p, int32_t q, int64_t h, move *best) {
  double now = s->groups[g].loss, other = s->groups[h].loss;
  double below = best->cost + now + other + LESS;
  part two = after(s, h, q, p, s->list2);
  if (two.size < s->k || two.loss >= below) return;
  part one = after(s, g, p, q, s->list);
  if (!two_below(s, &two, &one, 0.0, below)) return;
  double cost = one.loss + two.loss - now - other;
  if (cost < best->cost) *best = (move){p, q, h, cost};
}

/* The cheapest move of one row, or exchange of two, that makes class g valid and costs less than
 * that. */
static move best_move(search *s, int64_t g, double below) {
  move best = {-1, -1, -1, below};
  group *at = s->groups + g;
  int64_t found[MANY];
  for (int64_t i = 0; i < at->size; i++) {
    int32_t p = at->member[i];
    const uint64_t *values = values_of(s, g), *signature = signature_of(&s->who, p);
    if (!is_short(s, p, values)) continue;
    if (at->size > s->k) {
      s->stamped++;
      int64_t count = classes_near(s, p, g, FITTING, found, 0);
      for (int64_t c = 0; c < count; c++) try_move(s, g, p, -1, found[c], &best);
    }
    for (int64_t o = 0; o < s->orders; o++) {
      const int32_t *order = s->order + o * s->n;
      int64_t from = s->place[o * s->n + p];
      for (int64_t step = -1; step <= 1; step += 2) {
        int64_t some = 0, walked = 0;
        for (int64_t j = from + step; j >= 0 && j < s->n && some < TAKEN && walked < FAR;
             j += step, walked++) {
          int32_t q = order[j], v = s->who.value[q];
          int64_t h = s->class_of[q];
          if (v < 0 || h < 0 || h == g || !has(signature, v) || has(values, v)) continue;
          some++;
          if (s->groups[h].size > EXCHANGED) continue;
          if (s->groups[h].size > s->k) try_move(s, g, -1, q, h, &best);
          try_move(s, g, p, q, h, &best);
        }
      }
    }
  }
  return best;
}

static int apply(search *s, int64_t g, move m) {
  if (m.p >= 0) take_out(s, m.p);
  if (m.q >= 0) take_out(s, m.q);
  if (m.p >= 0 && append(s, m.to, m.p)) return MO_NO_MEMORY;
  if (m.q >= 0 && append(s, g, m.q)) return MO_NO_MEMORY;
  update(s, m.to);
  update(s, g);
  return MO_DONE;
}

/* Takes out of a class who lacks values, or everybody of a class of fewer than k. */
static int64_t leave_over(search *s, int64_t g) {
  group *at = s->groups + g;
  int64_t left = 0;
  for (int64_t i = at->size - 1; i >= 0; i--) {
    int32_t p = at->member[i];
    if (at->size >= s->k && !is_short(s, p, values_of(s, g))) continue;
    take_out(s, p);
    left++;
  }
  update(s, g);
  return left;
}

/* Makes a class valid by what loses least: a move of one row, an exchange of two, the union with
 * another class; or leaves it as it is where it is valid by rows that are made up, and these cost
 * less than that. */
static int repair(search *s, int64_t g) {
  while (s->groups[g].size && (s->groups[g].lacks || s->groups[g].size < s->k)) {
    group *at = s->groups + g;
    int good = at->valid, is_valid;
    double more = 0.0;
    move m = {-1, -1, -1, good ? 0.0 : DBL_MAX};
    int64_t with = best_union(s, g, &is_valid, &more);
    if (at->size > s->most || (good && !is_valid)) with = -1;
    if (with >= 0 && is_valid) m.cost = more;
    if (at->size >= s->k && at->size <= EXCHANGED) m = best_move(s, g, m.cost);
    int moves = m.to >= 0;
    if (good && (moves ? m.cost : with >= 0 ? more : 0.0) > -LESS) return MO_DONE;
    if (moves) {
      if (apply(s, g, m)) return MO_NO_MEMORY;
    } else if (with >= 0) {
      if (join(s, g, with)) return MO_NO_MEMORY;
    } else if (!leave_over(s, g)) {
      return MO_DONE;
    }
  }
  return MO_DONE;
}

/* The classes near a row that lose least by it, without what rows that are made up lose. */
static closest closest_to_row(search *s, int32_t p) {
  int64_t found[NEAR];
  closest beside = {0};
  s->stamped++;
  int64_t count = classes_near(s, p, s->class_of[p], BESIDE, found, 0);
  for (int64_t i = 0; i < count; i++) {
    part with = with_row(s, found[i], p, 1);
    double now = s->groups[found[i]].loss;
    if (!is_close(&beside, with.loss - now)) continue;
    add_risk(s, &with);
    if (is_close(&beside, with.loss - now)) put_close(&beside, found[i], with.loss - now);
  }
  return beside;
}

/* What the risk of two classes as one loses; no less is lost however their rows are divided. */
static double joint_risk(const search *s, int64_t g, int64_t h) {
  unite_values(s, g, h, s->scratch);
  part here = {s->groups[g].member, s->groups[g].size, s->scratch, 0.0, 0};
  part there = {s->groups[h].member, s->groups[h].size, s->scratch, 0.0, 0};
  add_risk(s, &here);
  add_risk(s, &there);
  return here.loss + there.loss;
}

/* An exchange of row p with row q of class `to`, or its move there if q is -1. */
typedef struct {
  int64_t to;
  int32_t q;
  double gain;
} improvement;

/* A row that another one may replace: its class, and its place in s->list, which has the rows of
 * the class; the bounds of the other rows, and what they lose by generalization, at least, with any
 * row in its place. */
typedef struct {
  int64_t own, at;
  const int32_t *rest;
  double rest_loss;
} leaver;

/* Finds the row of class h whose exchange with a row loses least. */
static void exchange_with(const search *s, leaver of, int64_t h, improvement *best) {
  const group *at = s->groups + of.own, *with = s->groups + h;
  int64_t E = s->entries;
  int32_t p = s->list[of.at], *bounds = s->edge;
  double risk = joint_risk(s, of.own, h);
  bound_sides(s, with->member, with->size);
  memcpy(s->list2, with->member, (size_t)with->size * sizeof *s->list2);
  for (int64_t j = 0; j < with->size; j++) {
    int32_t q = with->member[j];
    double below = at->loss + with->loss - best->gain;
    s->list2[j] = p;
    s->list[of.at] = q;
    unite(s, s->below + j * E, s->above + (j + 1) * E, bounds);
    unite(s, bounds, bounds_of_row(s, p), bounds);
    part one = part_of(s, bounds, s->list2, with->size);
    if (!no_less(one.loss + of.rest_loss + risk, below)) {
      unite(s, of.rest, bounds_of_row(s, q), bounds);
      part two = part_of(s, bounds, s->list, at->size);
      if (two_below(s, &one, &two, risk, below))
        *best = (improvement){h, q, at->loss + with->loss - one.loss - two.loss};
    }
    s->list2[j] = q;
  }
  s->list[of.at] = p;
}

/* Moves a row of a class, or exchanges it, where that loses less by s->least. */
static int improve_row(search *s, int32_t p) {
  int64_t own = s->class_of[p];
  const group *at = s->groups + own;
  int32_t *rest_bounds = s->edge + s->entries; /* the bounds of what is tried come before it */
  part rest = after(s, own, p, -1, s->list2);
  memcpy(rest_bounds, s->edge, (size_t)s->entries * sizeof *rest_bounds);
  double rest_loss = rest.size ? rest.loss / (double)rest.size * (double)at->size : 0.0;
  leaver of = {own, 0, rest_bounds, rest_loss};
  gather(s, &rest);
  int may_leave = add_rest(s, &rest) >= 0 && rest.size >= s->k;
  double without = rest.loss;
  if (at->loss - without < s->least + SPARED * at->loss / (double)at->size) return 0;
  improvement best = {-1, -1, s->least};
  closest beside = closest_to_row(s, p);
  for (int64_t i = 0; i < beside.count && may_leave; i++) {
    const group *with = s->groups + beside.g[i];
    if (at->loss - without - beside.cost[i] <= best.gain) break;
    double below = at->loss + with->loss - without - best.gain;
    part more = with_row(s, beside.g[i], p, 0);
    if (one_below(s, &more, below))
      best = (improvement){beside.g[i], -1, at->loss + with->loss - without - more.loss};
  }
  memcpy(s->list, at->member, (size_t)at->size * sizeof *s->list);
  while (s->list[of.at] != p) of.at++;
  for (int64_t i = 0; i < beside.count; i++)
    if (s->groups[beside.g[i]].size <= EXCHANGED) exchange_with(s, of, beside.g[i], &best);
  if (best.to < 0) return 0;
  take_out(s, p);
  if (best.q >= 0) {
    take_out(s, best.q);
    if (append(s, own, best.q)) return MO_NO_MEMORY;
  }
  if (append(s, best.to, p)) return MO_NO_MEMORY;
  update(s, own);
  update(s, best.to);
  return 1;
}

static int run(search *s) {
  for (int64_t i = 0; i < s->n && !stopped();
       i++) { /* in the first order: neighbours one after the other */
    int32_t p = s->order[i];
    if (s->class_of[p] >= 0) continue;
    double cost;
    int64_t g = best_class(s, p, -1, &cost);
    if (g < 0) g = open_group(s);
    if (g < 0) continue;
    if (append(s, g, p)) return MO_NO_MEMORY;
    update(s, g);
  }
  for (int64_t g = 0; g < s->count && !stopped(); g++)
    if (repair(s, g)) return MO_NO_MEMORY;
  for (int64_t g = s->count - 1; g >= 0 && !stopped(); g--)
    if (cut_class(s, g)) return MO_NO_MEMORY;
  for (int pass = 0; pass < PASSES && !stopped(); pass++) {
    for (int64_t g = 0; g < s->count; g++)
      s->groups[g].fresh = s->groups[g].dirty, s->groups[g].dirty = 0;
    for (int64_t i = 0; i < s->n && !stopped(); i++) {
      int32_t p = s->order[i];
      int64_t g = s->class_of[p];
      if (g < 0 || s->groups[g].size > EXCHANGED || !(s->groups[g].fresh || s->groups[g].dirty))
        continue;
      if (improve_row(s, p) < 0) return MO_NO_MEMORY;
    }
    for (int64_t g = s->count - 1; g >= 0 && !stopped(); g--)
      if (cut_class(s, g)) return MO_NO_MEMORY;
    for (int64_t g = s->count - 1; g >= 0 && !stopped(); g--)
      if ((s->groups[g].fresh || s->groups[g].dirty) && cut_anew(s, g)) return MO_NO_MEMORY;
  }
  return MO_DONE;
}

static int open_search(search *s, int64_t classes) {
  const mo_rows *rows = s->rows;
  int64_t n = s->n, codes = rows->first[rows->attributes];
  s->most_groups = classes + n / s->k + n + 1;
  s->entries = (2 * s->attributes + LANES - 1) / LANES * LANES;
  s->code = zeros(n * s->entries, sizeof *s->code);
  s->higher = zeros(codes, sizeof *s->higher);
  s->place = zeros(n * s->orders, sizeof *s->place);
  s->groups = zeros(s->most_groups, sizeof *s->groups);
  s->stamp = zeros(s->most_groups, sizeof *s->stamp);
  s->bounds = zeros(s->most_groups * s->entries, sizeof *s->bounds);
  s->values = zeros(s->most_groups * s->who.words * 3, sizeof *s->values);
  s->scratch = zeros(6 * s->who.words, sizeof *s->scratch);
  int64_t most = (n < CUT ? n : CUT) + 1;
  s->below = zeros(most * s->entries, sizeof *s->below);
  s->above = zeros(most * s->entries, sizeof *s->above);
  s->edge = zeros((EDGES + 2) * s->entries, sizeof *s->edge);
  s->tonight = zeros(3 * s->who.words, sizeof *s->tonight);
  s->room = zeros(COUNTERFEIT_ROOM * s->who.words, sizeof *s->room);
  s->key = zeros(n, sizeof *s->key);
  s->pairs = zeros(n, sizeof *s->pairs);
  s->list = zeros(n, sizeof *s->list);
  s->list2 = zeros(n, sizeof *s->list2);
  if (!s->code || !s->higher || !s->place || !s->groups || !s->stamp || !s->bounds || !s->values ||
      !s->scratch || !s->tonight || !s->room || !s->key || !s->below || !s->above || !s->edge ||
      !s->list || !s->list2 || !s->pairs)
    return MO_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) add_value(s->tonight, s->who.words, s->who.value[i]);
  for (int64_t a = 0; a < s->attributes; a++) {
    for (int64_t i = 0; i < n; i++) {
      int64_t at = a * n + i;
      int32_t code = rows->code_bytes == 1   ? ((const uint8_t *)rows->codes)[at]
                     : rows->code_bytes == 2 ? ((const uint16_t *)rows->codes)[at]
                                             : (int32_t)((const uint32_t *)rows->codes)[at];
      s->code[i * s->entries + 2 * a] = -code;
      s->code[i * s->entries + 2 * a + 1] = code;
    }
    int64_t first = rows->first[a], size = rows->first[a + 1] - first;
    for (int64_t c = size - 1; c >= 0; c--) {
      int64_t next = c + 1;
      while (next < size && rows->step[first + next] <= rows->step[first + c])
        next = s->higher[first + next];
      s->higher[first + c] = next;
    }
  }
  for (int64_t o = 0; o < s->orders; o++)
    for (int64_t i = 0; i < n; i++) s->place[o * n + s->order[o * n + i]] = (int32_t)i;
  return MO_DONE;
}

/* Sets class_of (rows,), on entry the classes of the night before from 0 to classes - 1, or -1; on
 * return the classes of tonight, with gaps, or -1 for rows that no class may take.
 *
 * value (rows,): the sensitive values, -1 where a row has none; signature (rows, words): those that
 * a person's classes had so far; order (orders, rows): orders in which neighbours lose little as
 * one class; weight: the loss that the risk of a row is worth; most: rows of the largest class that
 * is joined with others to become valid; price: the loss that a made-up row is worth, DBL_MAX if
 * none may be; random (rows, MADE_UP): numbers that decide which values are made up. made_up (rows,
 * MADE_UP), on entry -1: at one row of each class that needs some, the values of the rows that are
 * made up. */
MO_API int mo_invariant_classes(const mo_rows *rows, const int32_t *value,
                                const uint64_t *signature, int64_t words, int64_t k, int64_t l,
                                int64_t most, const int32_t *order, int64_t orders, int64_t classes,
                                int32_t *class_of, double weight, double price,
                                const uint32_t *random, int32_t *made_up) {
  search s = {.rows = rows,
              .n = rows->rows,
              .attributes = rows->attributes,
              .k = k,
              .most = most,
              .orders = orders,
              .who = {words, l, value, signature},
              .order = order,
              .class_of = class_of,
              .weight = weight,
              .price = price,
              .least = WORTH * weight > LESS ? WORTH * weight : LESS};
  s.table[0] = 1.0;
  for (int i = 1; i < STEPS; i++) s.table[i] = s.table[i - 1] * FOURTH_ROOT;
  int status = open_search(&s, classes);
  if (!status) {
    s.count = classes;
    for (int64_t i = 0; i < s.n && !status; i++)
      if (class_of[i] >= 0) status = append(&s, class_of[i], (int32_t)i);
    for (int64_t g = 0; g < classes; g++) update(&s, g);
    if (!status) status = run(&s);
    for (int64_t g = 0; g < s.count && !status && price < DBL_MAX && !stopped(); g++) {
      const group *at = s.groups + g;
      if (at->size == 0) continue;
      int32_t found[MADE_UP];
      int64_t count = choose_counterfeits(&s.who, at->member, at->size, values_of(&s, g), s.tonight,
                                          random, s.room, found);
      for (int64_t j = 0; j < count; j++) made_up[at->member[0] * MADE_UP + j] = found[j];
    }
  }
  for (int64_t g = 0; s.groups && g < s.count; g++) free(s.groups[g].member);
  void *memory[] = {s.below,  s.above,   s.edge,  s.key,    s.tonight, s.room,
                    s.code,   s.higher,  s.place, s.groups, s.stamp,   s.bounds,
                    s.values, s.scratch, s.list,  s.list2,  s.pairs};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) free(memory[i]);
  return status;
}
