/* Classes of a night that are cut where that loses less, alone or joined with one near it. */
#include "invariance.h"

#include <float.h>

enum {
  REACH = EDGES / 2, /* rows on each side of a cut that are exchanged */
  FEW = 32,  /* rows that are sorted one by one */
};

static int by_code(const void *one, const void *other) {
  int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
  return (a > b) - (a < b);
}

/* Sorts some rows by an attribute. */
static void sort_by(const search *s, int64_t a, int32_t *member, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    int64_t key = (int64_t)code_of(s, member[i], a) << 32 | member[i], j = i;
    for (; size <= FEW && j > 0 && s->key[j - 1] > key; j--) s->key[j] = s->key[j - 1];
    s->key[j] = key;
  }
  if (size > FEW) qsort(s->key, (size_t)size, sizeof *s->key, by_code);
  for (int64_t i = 0; i < size; i++) member[i] = (int32_t)(s->key[i] & INT32_MAX);
}

/* One or two valid classes of some rows: the first `rows` by attribute a, and the others, with two
 * rows near the cut exchanged. */
typedef struct {
  int64_t a, rows; /* a is -1, rows all: one class */
  int64_t one, other; /* places of the rows that are exchanged; the same: none are */
  double loss;
} cut;

static void exchange(int32_t *member, int64_t one, int64_t other) {
  int32_t p = member[one];
  member[one] = member[other];
  member[other] = p;
}

/* Takes a cut as `best` if its two classes are valid and lose less. */
static int take(const search *s, part one, part two, double risk, cut at, cut *best) {
  if (!two_below(s, &one, &two, risk, best->loss)) return 0;
  at.loss = one.loss + two.loss;
  if (at.loss >= best->loss) return 0;
  *best = at;
  return 1;
}

/* Tries a cut with two rows near it exchanged. */
static void exchange_rows(const search *s, int32_t *member, int64_t size, double risk, cut at,
                          cut *best) {
  int64_t j = at.rows, first = j > REACH ? j - REACH : 0, E = s->entries;
  int64_t last = j + REACH < size ? j + REACH : size;
  for (int64_t i = first; i < last; i++) { /* the bounds of its class without it */
    const int32_t *others = i < j ? s->below + first * E : s->above + last * E;
    int32_t *edge = s->edge + (i - first) * E;
    for (int64_t o = i < j ? first : j; o < (i < j ? j : last); o++)
      if (o != i) unite(s, others, bounds_of_row(s, member[o]), edge), others = edge;
    if (others != edge) memcpy(edge, others, (size_t)E * sizeof *edge);
  }
  for (at.one = j - 1; at.one >= first; at.one--)
    for (at.other = j; at.other < last; at.other++) {
      int32_t *left = s->edge + EDGES * E, *right = left + E;
      exchange(member, at.one, at.other);
      unite(s, s->edge + (at.one - first) * E, bounds_of_row(s, member[at.one]), left);
      unite(s, s->edge + (at.other - first) * E, bounds_of_row(s, member[at.other]), right);
      part one = part_of(s, left, member, j), two = part_of(s, right, member + j, size - j);
      take(s, one, two, risk, at, best);
      exchange(member, at.one, at.other);
    }
}

/* Finds the cut of some rows into one or two valid classes that loses least; the loss of the cut is
 * `below` if none loses less. Changes the order of the rows. */
static cut best_cut(const search *s, int32_t *member, int64_t size, double below) {
  cut best = {-1, size, 0, 0, below};
  bound(s, member, size, s->edge);
  part whole = part_of(s, s->edge, member, size);
  double risk; /* what their risk loses, however the rows are cut, is no less */
  if (whole_below(s, &whole, below, &risk)) best.loss = whole.loss;
  int64_t stride = size > 256 ? size / 64 : 1, E = s->entries;
  for (int64_t a = 0; a < s->attributes; a++) {
    sort_by(s, a, member, size);
    if (s->key[0] >> 32 == s->key[size - 1] >> 32) continue;
    bound_sides(s, member, size);
    for (int64_t j = s->k; j + s->k <= size; j += stride) {
      part one = part_of(s, s->below + j * E, member, j);
      part two = part_of(s, s->above + j * E, member + j, size - j);
      if (one.loss + two.loss + risk >= best.loss) continue;
      cut at = {a, j, 0, 0, 0.0};
      if (!take(s, one, two, risk, at, &best)) exchange_rows(s, member, size, risk, at, &best);
    }
  }
  return best;
}

/* Puts the rows of the first class of a cut before those of the other. */
static void divide(const search *s, int32_t *member, int64_t size, cut at) {
  if (at.a < 0) return;
  sort_by(s, at.a, member, size);
  exchange(member, at.one, at.other);
}

int cut_class(search *s, int64_t g) {
  for (;;) {
    group *at = s->groups + g;
    if (at->size < 2 * s->k || at->size > CUT) return MO_DONE;
    cut best = best_cut(s, at->member, at->size, at->loss - LESS);
    int64_t h = best.a < 0 ? -1 : open_group(s), size = at->size;
    if (h < 0) return MO_DONE;
    divide(s, at->member, size, best);
    at->size = best.rows;
    for (int64_t i = best.rows; i < size; i++)
      if (append(s, h, at->member[i])) return MO_NO_MEMORY;
    update(s, g);
    update(s, h);
    if (cut_class(s, h)) return MO_NO_MEMORY;
  }
}

/* The rows of classes g and h, in list; how many. */
static int64_t both(search *s, int64_t g, int64_t h) {
  const group *one = s->groups + g, *other = s->groups + h;
  memcpy(s->list, one->member, (size_t)one->size * sizeof *s->list);
  memcpy(s->list + one->size, other->member, (size_t)other->size * sizeof *s->list);
  return one->size + other->size;
}

/* Where it is remembered what cuts of two classes gain; nothing if either has changed since. */
static pair *pair_of(const search *s, int64_t g, int64_t h) {
  int64_t one = g < h ? g : h, other = g < h ? h : g;
  pair *at = s->pairs + ((uint64_t)one * 31 + (uint64_t)other) % (uint64_t)s->n;
  if (at->one != one || at->other != other || at->when < s->groups[g].changed ||
      at->when < s->groups[h].changed)
    *at = (pair){one, other, s->clock, DBL_MAX};
  return at;
}

/* The classes near g whose rows would lose least more, on average, if they were one class with g's;
 * the risk counts only as it is now, so that a class at risk is tried sooner. */
static closest closest_to_class(search *s, int64_t g) {
  int64_t found[NEAR], count = classes_beside(s, g, found);
  closest beside = {0};
  for (int64_t i = 0; i < count; i++) {
    const group *other = s->groups + found[i];
    if (other->size > EXCHANGED) continue;
    int64_t size = both(s, g, found[i]);
    unite(s, bounds_of(s, g), bounds_of(s, found[i]), s->edge);
    double loss = part_of(s, s->edge, s->list, size).loss / (double)size;
    double more = loss - other->loss / (double)other->size;
    if (is_close(&beside, more)) put_close(&beside, found[i], more);
  }
  return beside;
}

int cut_anew(search *s, int64_t g) {
  int64_t with = -1;
  group *at = s->groups + g;
  if (at->size == 0 || at->size > EXCHANGED) return MO_DONE;
  closest beside = closest_to_class(s, g);
  double gain = s->least;
  cut best = {0};
  for (int64_t i = 0; i < beside.count; i++) {
    int64_t h = beside.g[i];
    pair *tried = pair_of(s, g, h);
    if (tried->gain <= gain) continue;
    double now = at->loss + s->groups[h].loss;
    cut joint = best_cut(s, s->list, both(s, g, h), now - gain);
    if (joint.loss < now - gain) with = h, gain = now - joint.loss, best = joint;
    tried->gain = gain;
  }
  if (with < 0) return MO_DONE;
  group *other = s->groups + with;
  int64_t size = both(s, g, with);
  divide(s, s->list, size, best);
  at->size = other->size = 0;
  for (int64_t i = 0; i < size; i++)
    if (append(s, i < best.rows ? g : with, s->list[i])) return MO_NO_MEMORY;
  update(s, g);
  update(s, with);
  return cut_class(s, g) || cut_class(s, with) ? MO_NO_MEMORY : MO_DONE;
}
