/* The classes of a night while they are searched: their rows, values and losses, and which of them
 * are near a row. */
#include "invariance.h"

#include <float.h>

void update(search *s, int64_t g) {
  group *at = s->groups + g;
  bound(s, at->member, at->size, bounds_of(s, g));
  part now = part_of(s, bounds_of(s, g), at->member, at->size);
  now.values = values_of(s, g);
  gather(s, &now);
  at->valid = add_rest(s, &now) >= 0 && at->size >= s->k;
  at->lacks = now.lack > 0;
  at->loss = now.loss;
  at->changed = ++s->clock;
  at->dirty = 1;
}

int append(search *s, int64_t g, int32_t p) {
  group *at = s->groups + g;
  if (at->size == at->room) {
    int64_t room = at->room ? 2 * at->room : 2 * s->k;
    int32_t *grown = zeros(room, sizeof *grown);
    if (!grown) return MO_NO_MEMORY;
    if (at->size) memcpy(grown, at->member, (size_t)at->size * sizeof *grown);
    free(at->member);
    at->member = grown;
    at->room = room;
  }
  at->member[at->size++] = p;
  s->class_of[p] = (int32_t)g;
  return MO_DONE;
}

void take_out(search *s, int32_t p) {
  group *at = s->groups + s->class_of[p];
  int64_t i = 0;
  while (at->member[i] != p) i++;
  at->member[i] = at->member[--at->size];
  s->class_of[p] = -1;
}

part with_row(const search *s, int64_t g, int32_t p, int in_front) {
  const group *at = s->groups + g;
  memcpy(s->list2 + in_front, at->member, (size_t)at->size * sizeof *s->list2);
  s->list2[in_front ? 0 : at->size] = p;
  memcpy(s->scratch, values_of(s, g), 3 * (size_t)s->who.words * sizeof *s->scratch);
  add_value(s->scratch, s->who.words, s->who.value[p]);
  unite(s, bounds_of(s, g), bounds_of_row(s, p), s->edge);
  return part_of(s, s->edge, s->list2, at->size + 1);
}

static int supports(const search *s, int64_t g, int32_t p) {
  const uint64_t *values = values_of(s, g);
  int64_t total = shared(&s->who, p, values);
  int32_t v = s->who.value[p]; /* among those of the person */
  if (s->price == DBL_MAX) return total + (v >= 0 && !has(values, v)) >= s->who.l;
  part with = with_row(s, g, p, 0);
  return add_rest(s, &with) >= 0;
}

int64_t classes_near(search *s, int32_t p, int64_t own, reach r, int64_t *found, int64_t count) {
  for (int64_t o = 0; o < s->orders; o++) {
    const int32_t *order = s->order + o * s->n;
    int64_t at = s->place[o * s->n + p];
    for (int64_t step = -1; step <= 1; step += 2) {
      int64_t some = 0, walked = 0;
      for (int64_t i = at + step; i >= 0 && i < s->n && some < r.per_side && walked < r.walked;
           i += step, walked++) {
        int64_t g = s->class_of[order[i]];
        if (g < 0 || g == own || s->stamp[g] == s->stamped) continue;
        if (count == r.most) return count;
        s->stamp[g] = s->stamped;
        if (r.fitting && !supports(s, g, p)) continue;
        found[count++] = g;
        some++;
      }
    }
  }
  return count;
}

int64_t classes_beside(search *s, int64_t g, int64_t *found) {
  const group *at = s->groups + g;
  int64_t count = 0;
  s->stamped++;
  for (int64_t i = 0; i < at->size && count < NEAR; i++)
    count = classes_near(s, at->member[i], g, BESIDE, found, count);
  return count;
}

int64_t open_group(search *s) {
  if (s->count == s->most_groups) return -1;
  int64_t g = s->count++;
  s->groups[g] = (group){0};
  return g;
}
