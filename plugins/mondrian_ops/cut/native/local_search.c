/* A local search among the classes of one small node.
 *
 * Two kinds of step, each taken only where all classes together lose less and each satisfies
 * every criterion: a row moves to another class, or is exchanged for one of its rows;
 * neighbouring classes are joined and cut anew. The search ends when no step of a changed class
 * loses less. Only classes of k to 2k - 1 rows take part: they cannot be cut, before or after. */
#include <stdlib.h>

#include "splitting.h"

enum {
  NEAREST = 4, /* classes that are tried for a row: those that taking it costs least */
  NOBODY = -1,
};

static const double LESS = 1e-9; /* losses are sums of rounded numbers */

/* The bounds of an attribute's codes in a class; next_low and next_high are the bounds once a row
 * at the bound has left. */
typedef struct {
  int64_t low, next_low, high, next_high;
  int64_t distinct; /* of an MO_SET only */
  double loss;      /* per row */
} extent;

typedef struct {
  node here;
  workspace *work;
  int64_t classes, most; /* most: 2k - 1, the rows of the largest */
  int32_t *members;      /* (classes, most): places in the node */
  int64_t *size;         /* (classes,) */
  extent *extents;       /* (classes, attributes) */
  uint8_t *open;         /* (classes,): changed since moves of its rows were last tried */
  uint8_t *fresh; /* (classes,): changed since it was last joined and cut anew */
  int64_t *mergeable;  /* (2 joined,): the classes that a class may be joined with */
  double *merge_costs;  /* (2 joined,): how much more the two lose as one class */
  unsigned char *joint; /* (rows of joined classes,) records */
  uint8_t *class_starts;       /* (rows of joined classes,) */
  int64_t nearest[NEAREST];
  double costs[NEAREST]; /* how much more each loses with a row */
} search;

static int64_t code_at(const search *among, int32_t place, int32_t a) {
  const layout *of = among->work->layout;
  return code_of(among->here.rows + (int64_t)place * of->stride, of->column[a]);
}

static int32_t *members_of(const search *among, int64_t c) {
  return among->members + c * among->most;
}

static extent *extent_of(const search *among, int64_t c, int32_t a) {
  return among->extents + c * among->work->layout->attributes + a;
}

/* How many of the first count members of a class have a code. */
static int64_t rows_with(const search *among, int64_t c, int32_t a, int64_t code, int64_t count) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; i++) found += code_at(among, members_of(among, c)[i], a) == code;
  return found;
}

/* Updates the bounds and losses of a class. */
static void update_extents(const search *among, int64_t c) {
  const layout *of = among->work->layout;
  for (int32_t a = 0; a < of->attributes; a++) {
    extent bounds = {INT64_C(1) << 62, INT64_C(1) << 62, -1, -1, 0, 0.0};
    for (int64_t i = 0; i < among->size[c]; i++) {
      int64_t v = code_at(among, members_of(among, c)[i], a);
      if (of->kind[a] == MO_SET) bounds.distinct += rows_with(among, c, a, v, i) == 0;
      if (v <= bounds.low) {
        bounds.next_low = bounds.low;
        bounds.low = v;
      } else if (v < bounds.next_low) {
        bounds.next_low = v;
      }
      if (v >= bounds.high) {
        bounds.next_high = bounds.high;
        bounds.high = v;
      } else if (v > bounds.next_high) {
        bounds.next_high = v;
      }
    }
    bounds.loss = width(of, a, bounds.low, bounds.high, bounds.distinct);
    *extent_of(among, c, a) = bounds;
  }
}

static void mark_changed(const search *among, int64_t c) {
  among->open[c] = among->fresh[c] = 1;
  update_extents(among, c);
}

/* Distinct codes of a class without the row out, with the row new. */
static int64_t distinct_with(const search *among, int64_t c, int32_t a, int32_t out, int32_t new) {
  int64_t distinct = extent_of(among, c, a)->distinct;
  int64_t gone = out == NOBODY ? NOBODY : code_at(among, out, a);
  int64_t come = new == NOBODY ? NOBODY : code_at(among, new, a);
  if (gone == come) return distinct;
  if (out != NOBODY) distinct -= rows_with(among, c, a, gone, among->size[c]) == 1;
  if (new != NOBODY) distinct += rows_with(among, c, a, come, among->size[c]) == 0;
  return distinct;
}

/* Loss per row of attribute a of a class without the row out, with the row new. */
static double loss_with(const search *among, int64_t c, int32_t a, int32_t out, int32_t new) {
  const layout *of = among->work->layout;
  const extent *bounds = extent_of(among, c, a);
  int64_t low = bounds->low, high = bounds->high;
  if (out != NOBODY) {
    int64_t v = code_at(among, out, a);
    low = v == low ? bounds->next_low : low;
    high = v == high ? bounds->next_high : high;
  }
  if (new != NOBODY) {
    int64_t v = code_at(among, new, a);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  if (of->kind[a] == MO_SET) return width(of, a, low, high, distinct_with(among, c, a, out, new));
  if (low == bounds->low && high == bounds->high) return bounds->loss;
  return width(of, a, low, high, 2);
}

/* Whether a class without the row out, with the row new, satisfies every criterion. */
static int class_satisfies(const search *among, int64_t c, int32_t out, int32_t new) {
  workspace *work = among->work;
  const mo_criteria *criteria = work->criteria;
  const int32_t *members = members_of(among, c);
  for (int64_t j = 0; j < criteria->count; j++) {
    field value = sensitive_field(work->layout, criteria->column[j]);
    for (int64_t i = 0; i <= among->size[c]; i++) {
      int32_t member = i < among->size[c] ? members[i] : new;
      if (member == out || member == NOBODY) continue;
      count_rows(&work->left_tally,
                 code_of(among->here.rows + member * work->layout->stride, value), 1);
    }
    if (!counted_satisfy(&work->left_tally, criteria, j)) return 0;
  }
  return 1;
}

/* Whether two classes satisfy every criterion after row moved from the first to the second, and
 * other back. */
static int both_satisfy(const search *among, int64_t c, int32_t row, int64_t e, int32_t other) {
  return class_satisfies(among, c, row, other) && class_satisfies(among, e, other, row);
}

/* How much more a class loses by taking a row; stops when that exceeds limit. */
static double taking_cost(const search *among, int64_t e, int32_t row, double limit) {
  double cost = 0.0, size = (double)among->size[e];
  for (int32_t a = 0; a < among->work->layout->attributes; a++) {
    cost += (size + 1) * loss_with(among, e, a, NOBODY, row) - size * extent_of(among, e, a)->loss;
    if (cost >= limit) break;
  }
  return cost;
}

/* Writes the classes that taking a row costs least to nearest, in order; returns how many it
 * costs less than limit. */
static int64_t rank_takers(search *among, int64_t c, int32_t row, double limit) {
  int64_t count = 0;
  for (int64_t e = 0; e < among->classes; e++) {
    if (e == c) continue;
    double cost = taking_cost(among, e, row, limit);
    if (cost >= limit) continue;
    int64_t t = count < NEAREST - 1 ? count : NEAREST - 1;
    for (; t > 0 && among->costs[t - 1] > cost; t--) {
      among->nearest[t] = among->nearest[t - 1];
      among->costs[t] = among->costs[t - 1];
    }
    among->nearest[t] = e;
    among->costs[t] = cost;
    count = count + 1 < NEAREST ? count + 1 : NEAREST;
    if (count == NEAREST) limit = among->costs[NEAREST - 1];
  }
  return count;
}

/* How much more two classes lose by exchanging two rows; stops when that is sure to reach limit. */
static double exchange_change(const search *among, int64_t c, int32_t row, int64_t e, int32_t other,
                              double limit) {
  int32_t attributes = among->work->layout->attributes;
  double change = 0.0, here = (double)among->size[c], there = (double)among->size[e];
  for (int32_t a = 0; a < attributes; a++)
    change -= here * extent_of(among, c, a)->loss + there * extent_of(among, e, a)->loss;
  for (int32_t a = 0; a < attributes; a++) {
    change += here * loss_with(among, c, a, row, other);
    change += there * loss_with(among, e, a, other, row);
    if (change >= limit) break;
  }
  return change;
}

/* The first of the count nearest classes that may take a row, if all classes together then change
 * by less than *least, which is updated; NOBODY: none. */
static int64_t find_taker(const search *among, int64_t c, int32_t row, int64_t count, double saved,
                          double *least) {
  for (int64_t t = 0; t < count; t++) {
    int64_t e = among->nearest[t];
    double change = among->costs[t] - saved;
    if (change < *least && among->size[e] < among->most && both_satisfy(among, c, row, e, NOBODY)) {
      *least = change;
      return e;
    }
  }
  return NOBODY;
}

/* The member of class e that is best exchanged for a row, if all classes together then change by
 * less than *least, which is updated; NOBODY: none. */
static int64_t find_partner(const search *among, int64_t c, int32_t row, int64_t e, double *least) {
  int64_t best = NOBODY;
  for (int64_t i = 0; i < among->size[e]; i++) {
    int32_t other = members_of(among, e)[i];
    double change = exchange_change(among, c, row, e, other, *least);
    if (change < *least && both_satisfy(among, c, row, e, other)) {
      best = i;
      *least = change;
    }
  }
  return best;
}

/* Moves the j-th row of a class to another class, or exchanges it for that class's row at place. */
static void move_row(search *among, int64_t c, int64_t j, int64_t to, int64_t place) {
  int32_t *from = members_of(among, c), *into = members_of(among, to), row = from[j];
  if (place != NOBODY) {
    from[j] = into[place];
    into[place] = row;
  } else {
    into[among->size[to]++] = row;
    from[j] = from[--among->size[c]];
  }
  mark_changed(among, c);
  mark_changed(among, to);
}

/* Moves the j-th row of a class where all classes together lose least; returns whether there is
 * such a place. With k = 1 there is none: classes of one row would only swap. */
static int improve_row(search *among, int64_t c, int64_t j) {
  if (among->most == 1) return 0;
  int32_t row = members_of(among, c)[j];
  double size = (double)among->size[c], now = 0.0, without = 0.0, least = -LESS;
  for (int32_t a = 0; a < among->work->layout->attributes; a++) {
    now += extent_of(among, c, a)->loss;
    without += loss_with(among, c, a, row, NOBODY);
  }
  int narrows = without<now - LESS, spare = among->size[c]> among->work->criteria->k;
  if (now == 0.0 || !(narrows || spare)) return 0;
  double saved = size * now - (size - 1) * without;
  int64_t to = NOBODY, place = NOBODY, count = rank_takers(among, c, row, saved);
  if (spare) to = find_taker(among, c, row, count, saved, &least);
  for (int64_t t = 0; narrows && t < count; t++) {
    int64_t i = find_partner(among, c, row, among->nearest[t], &least);
    if (i == NOBODY) continue;
    to = among->nearest[t];
    place = i;
  }
  if (to == NOBODY) return 0;
  move_row(among, c, j, to, place);
  return 1;
}

/* Moves rows until no move loses less. It ends, as all classes together lose less with every
 * move. */
static void move_rows(search *among) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (int64_t c = 0; c < among->classes && !stopped(); c++) {
      if (!among->open[c]) continue;
      changed = 1;
      among->open[c] = 0;
      for (int64_t j = 0; j < among->size[c];) j += !improve_row(among, c, j);
    }
  }
}

static double class_loss(const search *among, int64_t c) {
  double loss = 0.0;
  for (int32_t a = 0; a < among->work->layout->attributes; a++)
    loss += extent_of(among, c, a)->loss;
  return loss * (double)among->size[c];
}

/* How much more two classes would lose as one; a lower bound where there are sets. */
static double merge_cost(const search *among, int64_t c, int64_t e) {
  const layout *of = among->work->layout;
  double found = 0.0;
  for (int32_t a = 0; a < of->attributes; a++) {
    const extent *one = extent_of(among, c, a), *other = extent_of(among, e, a);
    int64_t low = one->low < other->low ? one->low : other->low;
    int64_t high = one->high > other->high ? one->high : other->high;
    int64_t distinct = one->distinct > other->distinct ? one->distinct : other->distinct;
    found += width(of, a, low, high, distinct);
  }
  return found * (double)(among->size[c] + among->size[e]) - class_loss(among, c) -
         class_loss(among, e);
}

/* Writes the classes that cost least to merge with a class to mergeable, at most most, in order;
 * returns how many. */
static int64_t find_nearest(search *among, int64_t c, int64_t most) {
  int64_t count = 0;
  for (int64_t e = 0; e < among->classes; e++) {
    if (e == c) continue;
    double cost = merge_cost(among, c, e);
    if (count == most && cost >= among->merge_costs[most - 1]) continue;
    int64_t t = count < most ? count++ : most - 1;
    for (; t > 0 && among->merge_costs[t - 1] > cost; t--) {
      among->mergeable[t] = among->mergeable[t - 1];
      among->merge_costs[t] = among->merge_costs[t - 1];
    }
    among->mergeable[t] = e;
    among->merge_costs[t] = cost;
  }
  return count;
}

/* Copies the rows of a class and of count others, in the order of the node; each is numbered by
 * its place there. */
static node join(const search *among, int64_t c, const int64_t *others, int64_t count) {
  const layout *of = among->work->layout;
  uint32_t *place = among->work->order;
  node joint = {.rows = among->joint};
  for (int64_t t = -1; t < count; t++) {
    int64_t e = t < 0 ? c : others[t];
    for (int64_t i = 0; i < among->size[e]; i++, joint.count++) {
      uint32_t row = (uint32_t)members_of(among, e)[i];
      int64_t at = joint.count;
      for (; at > 0 && place[at - 1] > row; at--) place[at] = place[at - 1];
      place[at] = row;
    }
  }
  for (int64_t i = 0; i < joint.count; i++) {
    unsigned char *record = joint.rows + i * of->stride;
    memcpy(record, among->here.rows + (int64_t)place[i] * of->stride, (size_t)of->stride);
    memcpy(record + of->number, &place[i], sizeof place[i]);
  }
  return joint;
}

/* Joins a class and count others and cuts their rows anew; keeps the result, and returns 1, if it
 * loses less. */
static int cut_anew(search *among, int64_t c, const int64_t *others, int64_t count) {
  workspace *work = among->work;
  const layout *of = work->layout;
  node joint = join(among, c, others, count);
  double saved = class_loss(among, c);
  int64_t classes = 0;
  for (int64_t t = 0; t < count; t++) saved += class_loss(among, others[t]);
  memset(among->class_starts, 0, (size_t)joint.count);
  cut_down(joint, 0, among->class_starts, work);
  for (int64_t start = 0, stop; start < joint.count; start = stop, classes++) {
    stop = next_class_start(among->class_starts, start, joint.count);
    saved -= loss_of(node_slice(joint, start, stop, of), work);
    if (stop - start > among->most || !(saved > LESS)) return 0; /* NaN fails, too */
  }
  if (classes <= count) return 0;
  int64_t next = -1;
  for (int64_t start = 0, stop; start < joint.count; start = stop, next++) {
    stop = next_class_start(among->class_starts, start, joint.count);
    int64_t to = next < 0 ? c : next < count ? others[next] : among->classes++;
    among->size[to] = stop - start;
    for (int64_t i = start; i < stop; i++)
      members_of(among, to)[i - start] = (int32_t)number_of(joint.rows + i * of->stride, of);
    mark_changed(among, to);
  }
  return 1;
}

/* Tries to cut each changed class anew together with a window of the classes nearest to it, which
 * slides from the nearest on until one attempt succeeds. Returns whether any did. */
static int cut_all_anew(search *among) {
  int64_t others = among->work->policy.joined - 1;
  int found = 0;
  for (int64_t c = 0; c < among->classes && !stopped(); c++) {
    if (!among->fresh[c]) continue;
    among->fresh[c] = 0;
    if (class_loss(among, c) <= LESS) continue;
    int64_t count = find_nearest(among, c, 2 * others), done = 0;
    for (int64_t t = 0; !done && t + others <= count; t++)
      done = cut_anew(among, c, among->mergeable + t, others);
    found |= done != 0;
  }
  return found;
}

static int open_search(search *among, const uint8_t *class_starts) {
  int64_t count = among->here.count, attributes = among->work->layout->attributes;
  for (int64_t start = 0, stop; start < count; start = stop) {
    stop = next_class_start(class_starts, start, count);
    among->classes += stop - start <= among->most;
  }
  size_t classes = (size_t)(count / among->work->criteria->k) + 1; /* cutting anew may make more */
  size_t joined = (size_t)among->work->policy.joined, rows = joined * (size_t)among->most + 1;
  among->members = malloc(classes * (size_t)among->most * sizeof *among->members);
  among->size = calloc(classes, sizeof *among->size);
  among->extents = malloc(classes * (size_t)attributes * sizeof *among->extents);
  among->open = malloc(classes);
  among->fresh = malloc(classes);
  among->mergeable = malloc((2 * joined + 1) * sizeof *among->mergeable);
  among->merge_costs = malloc((2 * joined + 1) * sizeof *among->merge_costs);
  among->joint = malloc(rows * (size_t)among->work->layout->stride);
  among->class_starts = malloc(rows);
  if (!among->members || !among->size || !among->extents || !among->open || !among->fresh ||
      !among->mergeable || !among->merge_costs || !among->joint || !among->class_starts)
    return MO_NO_MEMORY;
  memset(among->open, 1, classes);
  memset(among->fresh, 1, classes);
  int64_t c = 0;
  for (int64_t start = 0, stop; start < count; start = stop) {
    stop = next_class_start(class_starts, start, count);
    if (stop - start > among->most) continue;
    among->size[c] = stop - start;
    for (int64_t i = start; i < stop; i++) members_of(among, c)[i - start] = (int32_t)i;
    c++;
  }
  return MO_DONE;
}

/* Writes the classes back to the node, those that took part first, and class_starts anew. */
static void put_back(const search *among, uint8_t *class_starts) {
  size_t stride = (size_t)among->work->layout->stride;
  unsigned char *before = among->work->others;
  int64_t count = among->here.count, larger = 0, placed = 0;
  uint32_t *start_of = among->work->order; /* of larger classes: where each starts and ends */
  memcpy(before, among->here.rows, (size_t)count * stride);
  for (int64_t start = 0, stop; start < count; start = stop) {
    stop = next_class_start(class_starts, start, count);
    if (stop - start <= among->most) continue;
    start_of[larger++] = (uint32_t)start;
    start_of[larger++] = (uint32_t)stop;
  }
  for (int64_t i = 0; i < count; i++) class_starts[i] = 0;
  for (int64_t c = 0; c < among->classes; c++) {
    class_starts[placed] = 1;
    for (int64_t i = 0; i < among->size[c]; i++, placed++)
      memcpy(among->here.rows + (size_t)placed * stride,
             before + (size_t)members_of(among, c)[i] * stride, stride);
  }
  for (int64_t i = 0; i < larger; i += 2) {
    size_t start = start_of[i], rows = start_of[i + 1] - start;
    class_starts[placed] = 1;
    memcpy(among->here.rows + (size_t)placed * stride, before + start * stride, rows * stride);
    placed += (int64_t)rows;
  }
}

/* Searches the classes of a node, which start where class_starts (rows,) is 1; writes both anew. */
int local_search(node here, uint8_t *class_starts, workspace *work) {
  search among = {.here = here, .work = work, .most = 2 * work->criteria->k - 1};
  int status = open_search(&among, class_starts);
  if (status == MO_DONE) {
    for (int64_t c = 0; c < among.classes; c++) update_extents(&among, c);
    move_rows(&among);
    while (work->policy.joined > 1 && among.most > 1 && cut_all_anew(&among)) move_rows(&among);
    put_back(&among, class_starts);
  }
  free(among.members);
  free(among.size);
  free(among.extents);
  free(among.open);
  free(among.fresh);
  free(among.mergeable);
  free(among.merge_costs);
  free(among.joint);
  free(among.class_starts);
  return status;
}
