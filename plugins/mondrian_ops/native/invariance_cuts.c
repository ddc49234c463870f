/* Classes of a night that are cut where that loses less, alone or joined with one near it. */
#include "invariance.h"

#include <float.h>
#include <string.h>

enum {
  REACH = 3, /* rows on each side of a cut that are exchanged */
};

static int by_code(const void *one, const void *other) {
  int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
  return (a > b) - (a < b);
}

/* Sorts some rows by an attribute. */
static void sort_by(const search *s, int64_t a, int32_t *member, int64_t size) {
  for (int64_t i = 0; i < size; i++)
    s->key[i] = (int64_t)s->code[member[i] * s->attributes + a] << 32 | member[i];
  qsort(s->key, (size_t)size, sizeof *s->key, by_code);
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

/* Takes a cut as `best` if it makes two valid classes that lose less; whether it was taken. */
static int try_cut(const search *s, int32_t *member, int64_t size, cut at, cut *best) {
  exchange(member, at.one, at.other);
  int32_t *rest = member + at.rows;
  int64_t others = size - at.rows;
  double least = best->loss - spread(s, rest, others, NULL) * (double)others;
  double left = loss_below(s, member, at.rows, least);
  at.loss = left < least ? left + loss_below(s, rest, others, best->loss - left) : DBL_MAX;
  exchange(member, at.one, at.other);
  if (at.loss >= best->loss) return 0;
  *best = at;
  return 1;
}

/* Sorts some rows so that they are one or two valid classes that lose least; its loss is `below` if
 * none lose less than that. */
static cut best_cut(const search *s, int32_t *member, int64_t size, double below) {
  cut best = {-1, size, 0, 0, below};
  double whole = loss_below(s, member, size, below);
  if (whole < below) best.loss = whole;
  int64_t stride = size > 256 ? size / 64 : 1;
  for (int64_t a = 0; a < s->attributes; a++) {
    sort_by(s, a, member, size);
    if (s->key[0] >> 32 == s->key[size - 1] >> 32) continue;
    for (int64_t j = s->k; j + s->k <= size; j += stride) {
      double loss = spread(s, member, j, NULL) * (double)j;
      loss += spread(s, member + j, size - j, NULL) * (double)(size - j);
      if (loss >= best.loss || try_cut(s, member, size, (cut){a, j, 0, 0, 0.0}, &best)) continue;
      for (int64_t one = j - 1; one >= 0 && one >= j - REACH; one--)
        for (int64_t other = j; other < size && other < j + REACH; other++)
          try_cut(s, member, size, (cut){a, j, one, other, 0.0}, &best);
    }
  }
  if (best.a >= 0) {
    sort_by(s, best.a, member, size);
    exchange(member, best.one, best.other);
  }
  return best;
}

int cut_class(search *s, int64_t g) {
  for (;;) {
    group *at = s->groups + g;
    if (at->size < 2 * s->k || at->size > 4096) return MO_DONE;
    cut best = best_cut(s, at->member, at->size, at->loss - LESS);
    int64_t h = best.a < 0 ? -1 : open_group(s), size = at->size;
    if (h < 0) return MO_DONE;
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

int cut_anew(search *s, int64_t g) {
  int64_t found[NEAR], with = -1;
  group *at = s->groups + g;
  if (at->size == 0 || at->size > EXCHANGED) return MO_DONE;
  int64_t count = classes_beside(s, g, found);
  double gain = LESS;
  for (int64_t c = 0; c < count; c++) {
    group *other = s->groups + found[c];
    if (other->size > EXCHANGED) continue;
    double now = at->loss + other->loss;
    cut best = best_cut(s, s->list, both(s, g, found[c]), now - gain);
    if (best.loss < now - gain) with = found[c], gain = now - best.loss;
  }
  if (with < 0) return MO_DONE;
  group *other = s->groups + with;
  int64_t size = both(s, g, with);
  cut best = best_cut(s, s->list, size, at->loss + other->loss - LESS);
  at->size = other->size = 0;
  for (int64_t i = 0; i < size; i++)
    if (append(s, i < best.rows ? g : with, s->list[i])) return MO_NO_MEMORY;
  update(s, g);
  update(s, with);
  return cut_class(s, g) || cut_class(s, with) ? MO_NO_MEMORY : MO_DONE;
}
