/* Rows that change their class: a local search among the classes of one small node.
 *
 * The rows of classes that lie near each other are put together and cut anew, where that loses
 * less.
 *
 * Row by row, a class hands one over, or gives one in exchange for another's, where all classes
 * together lose less afterwards and each still satisfies every criterion. It ends where no row of a
 * class that has changed has a better place. Only classes of k to 2k - 1 rows take part: no cut of
 * those is valid, before or after. */
#include <stdlib.h>

#include "splitting.h"

enum {
  NEAREST = 4, /* classes that are tried for a row: those that lose least more by taking it */
  NOBODY = -1,
};

static const double LESS = 1e-9; /* losses are sums of rounded numbers */

/* Codes of an attribute in a class: bounds, and those of the class without one row that has the
 * first. */
typedef struct {
  int64_t low, next_low, high, next_high;
  int64_t distinct; /* of an MO_SET only */
  double loss;      /* per row */
} extent;

/* The classes of a node that take part. */
typedef struct {
  node here;
  cutter *work;
  int64_t classes, most; /* most: 2k - 1, the rows of the largest */
  int32_t *members;      /* (classes, most): places in the node */
  int64_t *size;         /* (classes,) */
  extent *extents;       /* (classes, attributes) */
  uint8_t *open;         /* (classes,): changed since its rows were last looked at */
  uint8_t *fresh; /* (classes,): changed since it was last cut anew with others */
  int64_t *near;  /* (joined,): classes that it is cut anew with */
  double *apart;  /* (joined,): how much more the class and each of them lose as one */
  unsigned char *joint; /* (joined classes,) records */
  uint8_t *marks;       /* where their classes start */
  int64_t nearest[NEAREST];
  double costs[NEAREST]; /* how much more they lose with a row */
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

/* Bounds and loss of a class whose members have changed. */
static void tell(const search *among, int64_t c) {
  const layout *of = among->work->layout;
  for (int32_t a = 0; a < of->attributes; a++) {
    extent told = {INT64_C(1) << 62, INT64_C(1) << 62, -1, -1, 0, 0.0};
    for (int64_t i = 0; i < among->size[c]; i++) {
      int64_t v = code_at(among, members_of(among, c)[i], a);
      if (of->kind[a] == MO_SET) told.distinct += rows_with(among, c, a, v, i) == 0;
      if (v <= told.low) {
        told.next_low = told.low;
        told.low = v;
      } else if (v < told.next_low) {
        told.next_low = v;
      }
      if (v >= told.high) {
        told.next_high = told.high;
        told.high = v;
      } else if (v > told.next_high) {
        told.next_high = v;
      }
    }
    told.loss = width(of, a, told.low, told.high, told.distinct);
    *extent_of(among, c, a) = told;
  }
}

static void changed(const search *among, int64_t c) {
  among->open[c] = among->fresh[c] = 1;
  tell(among, c);
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
  const extent *told = extent_of(among, c, a);
  int64_t low = told->low, high = told->high;
  if (out != NOBODY) {
    int64_t v = code_at(among, out, a);
    low = v == low ? told->next_low : low;
    high = v == high ? told->next_high : high;
  }
  if (new != NOBODY) {
    int64_t v = code_at(among, new, a);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  if (of->kind[a] == MO_SET) return width(of, a, low, high, distinct_with(among, c, a, out, new));
  if (low == told->low && high == told->high) return told->loss;
  return width(of, a, low, high, 2);
}

/* Zero counts before they are those of a class; of many codes, such as persons, no others than its
 * own and the missing one. */
static void forget(int64_t *counts, field value, const search *among, int64_t c, int32_t new,
                   int64_t j) {
  const mo_criteria *criteria = among->work->criteria;
  int64_t stride = among->work->layout->stride;
  if (criteria->kind[j] != MO_DISTINCT) {
    memset(counts, 0, (size_t)criteria->codes[j] * sizeof *counts);
    return;
  }
  const int32_t *members = members_of(among, c);
  counts[0] = 0;
  for (int64_t i = 0; i < among->size[c]; i++)
    counts[code_of(among->here.rows + members[i] * stride, value)] = 0;
  if (new != NOBODY) counts[code_of(among->here.rows + new * stride, value)] = 0;
}

/* Whether a class without the row out, with the row new, satisfies every criterion. */
static int class_holds(const search *among, int64_t c, int32_t out, int32_t new) {
  cutter *work = among->work;
  const mo_criteria *criteria = work->criteria;
  int64_t stride = work->layout->stride, *counts = work->left_counts;
  int64_t total = among->size[c] - (out != NOBODY) + (new != NOBODY);
  for (int64_t j = 0; j < criteria->count; j++) {
    field value = sensitive_field(work->layout, criteria->column[j]);
    const int32_t *members = members_of(among, c);
    int64_t distinct = 0;
    forget(counts, value, among, c, new, j);
    for (int64_t i = 0; i < among->size[c]; i++)
      if (members[i] != out)
        distinct += counts[code_of(among->here.rows + members[i] * stride, value)]++ == 0;
    if (new != NOBODY) distinct += counts[code_of(among->here.rows + new * stride, value)]++ == 0;
    if (!satisfies(counts, total, distinct, criteria, j, work->surplus, work->deficit)) return 0;
  }
  return 1;
}

/* Whether two classes satisfy every criterion after row went from the first to the second and other
 * the other way. */
static int both_hold(const search *among, int64_t c, int32_t row, int64_t e, int32_t other) {
  return class_holds(among, c, row, other) && class_holds(among, e, other, row);
}

/* How much more a class loses by taking a row; gives up above limit. */
static double cost_of(const search *among, int64_t e, int32_t row, double limit) {
  double cost = 0.0, size = (double)among->size[e];
  for (int32_t a = 0; a < among->work->layout->attributes; a++) {
    cost += (size + 1) * loss_with(among, e, a, NOBODY, row) - size * extent_of(among, e, a)->loss;
    if (cost >= limit) break;
  }
  return cost;
}

/* Put the classes that lose least more by taking a row into nearest, the first one first; returns
 * how many there are that lose less than limit. */
static int64_t rank(search *among, int64_t c, int32_t row, double limit) {
  int64_t count = 0;
  for (int64_t e = 0; e < among->classes; e++) {
    if (e == c) continue;
    double cost = cost_of(among, e, row, limit);
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

/* How much more two classes lose by exchanging two rows; gives up where it is sure to reach limit.
 */
static double change_of(const search *among, int64_t c, int32_t row, int64_t e, int32_t other,
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

/* The first of the count nearest classes that may take a row, and how much more all lose then, if
 * below *least; NOBODY: none. */
static int64_t taker(const search *among, int64_t c, int32_t row, int64_t count, double saved,
                     double *least) {
  for (int64_t t = 0; t < count; t++) {
    int64_t e = among->nearest[t];
    double change = among->costs[t] - saved;
    if (change < *least && among->size[e] < among->most && both_hold(among, c, row, e, NOBODY)) {
      *least = change;
      return e;
    }
  }
  return NOBODY;
}

/* The member of class e that is best exchanged for a row, and how much more all lose then, if below
 * *least; NOBODY: none. */
static int64_t partner(const search *among, int64_t c, int32_t row, int64_t e, double *least) {
  int64_t best = NOBODY;
  for (int64_t i = 0; i < among->size[e]; i++) {
    int32_t other = members_of(among, e)[i];
    double change = change_of(among, c, row, e, other, *least);
    if (change < *least && both_hold(among, c, row, e, other)) {
      best = i;
      *least = change;
    }
  }
  return best;
}

/* Hand the j-th row of a class over, or exchange it for the one at place of the other. */
static void move(search *among, int64_t c, int64_t j, int64_t to, int64_t place) {
  int32_t *from = members_of(among, c), *into = members_of(among, to), row = from[j];
  if (place != NOBODY) {
    from[j] = into[place];
    into[place] = row;
  } else {
    into[among->size[to]++] = row;
    from[j] = from[--among->size[c]];
  }
  changed(among, c);
  changed(among, to);
}

/* Give the j-th row of a class the best other place that it has; whether there is one: of k = 1
 * there is none, for rows by themselves would only change names. */
static int moves(search *among, int64_t c, int64_t j) {
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
  int64_t to = NOBODY, place = NOBODY, count = rank(among, c, row, saved);
  if (spare) to = taker(among, c, row, count, saved, &least);
  for (int64_t t = 0; narrows && t < count; t++) {
    int64_t i = partner(among, c, row, among->nearest[t], &least);
    if (i == NOBODY) continue;
    to = among->nearest[t];
    place = i;
  }
  if (to == NOBODY) return 0;
  move(among, c, j, to, place);
  return 1;
}

/* Let the rows of all classes go where less is lost; ends, for all together lose less with every
 * move. */
static void settle(search *among) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (int64_t c = 0; c < among->classes; c++) {
      if (!among->open[c]) continue;
      changed = 1;
      among->open[c] = 0;
      for (int64_t j = 0; j < among->size[c];) j += !moves(among, c, j);
    }
  }
}

static double lost_by(const search *among, int64_t c) {
  double loss = 0.0;
  for (int32_t a = 0; a < among->work->layout->attributes; a++)
    loss += extent_of(among, c, a)->loss;
  return loss * (double)among->size[c];
}

/* How much more two classes would lose as one, of sets at least. */
static double distance(const search *among, int64_t c, int64_t e) {
  const layout *of = among->work->layout;
  double found = 0.0;
  for (int32_t a = 0; a < of->attributes; a++) {
    const extent *one = extent_of(among, c, a), *other = extent_of(among, e, a);
    int64_t low = one->low < other->low ? one->low : other->low;
    int64_t high = one->high > other->high ? one->high : other->high;
    int64_t distinct = one->distinct > other->distinct ? one->distinct : other->distinct;
    found += width(of, a, low, high, distinct);
  }
  return found * (double)(among->size[c] + among->size[e]) - lost_by(among, c) - lost_by(among, e);
}

/* Put the classes nearest to one into near, at most most, the nearest first; returns how many. */
static int64_t neighbours(search *among, int64_t c, int64_t most) {
  int64_t count = 0;
  for (int64_t e = 0; e < among->classes; e++) {
    if (e == c) continue;
    double apart = distance(among, c, e);
    if (count == most && apart >= among->apart[most - 1]) continue;
    int64_t t = count < most ? count++ : most - 1;
    for (; t > 0 && among->apart[t - 1] > apart; t--) {
      among->near[t] = among->near[t - 1];
      among->apart[t] = among->apart[t - 1];
    }
    among->near[t] = e;
    among->apart[t] = apart;
  }
  return count;
}

/* The rows of a class and of count others, in the order that the node has them in, each numbered by
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
    memcpy(record, among->here.rows + place[i] * of->stride, (size_t)of->stride);
    memcpy(record + of->number, &place[i], sizeof place[i]);
  }
  return joint;
}

/* Cut a class and count others anew, all their rows together; whether that loses less. */
static int cut_anew(search *among, int64_t c, const int64_t *others, int64_t count) {
  cutter *work = among->work;
  const layout *of = work->layout;
  node joint = join(among, c, others, count);
  double spared = lost_by(among, c);
  int64_t classes = 0;
  for (int64_t t = 0; t < count; t++) spared += lost_by(among, others[t]);
  memset(among->marks, 0, (size_t)joint.count);
  cut_down(joint, 0, among->marks, work);
  for (int64_t start = 0, stop; start < joint.count; start = stop, classes++) {
    stop = next_mark(among->marks, start, joint.count);
    spared -= loss_of(part_of(joint, start, stop, of), work);
    if (stop - start > among->most || !(spared > LESS)) return 0; /* nor where it is no number */
  }
  if (classes <= count) return 0;
  int64_t next = -1;
  for (int64_t start = 0, stop; start < joint.count; start = stop, next++) {
    stop = next_mark(among->marks, start, joint.count);
    int64_t to = next < 0 ? c : next < count ? others[next] : among->classes++;
    among->size[to] = stop - start;
    for (int64_t i = start; i < stop; i++)
      members_of(among, to)[i - start] = (int32_t)number_of(joint.rows + i * of->stride, of);
    changed(among, to);
  }
  return 1;
}

/* Cut each class that has changed anew with those nearest to it, as often as it has to be joined
 * with one: with the nearest, then with all but the first of them and one more, and so on. Whether
 * any loses less now. */
static int cut_all_anew(search *among) {
  int64_t others = among->work->policy.joined - 1;
  int found = 0;
  for (int64_t c = 0; c < among->classes; c++) {
    if (!among->fresh[c]) continue;
    among->fresh[c] = 0;
    if (lost_by(among, c) <= LESS) continue;
    int64_t count = neighbours(among, c, 2 * others), done = 0;
    for (int64_t t = 0; !done && t + others <= count; t++)
      done = cut_anew(among, c, among->near + t, others);
    found |= done != 0;
  }
  return found;
}

static int open_search(search *among, const uint8_t *marks) {
  int64_t count = among->here.count, attributes = among->work->layout->attributes;
  for (int64_t start = 0, stop; start < count; start = stop) {
    stop = next_mark(marks, start, count);
    among->classes += stop - start <= among->most;
  }
  size_t classes = (size_t)(count / among->work->criteria->k) + 1; /* there may be more later */
  size_t joined = (size_t)among->work->policy.joined, rows = joined * (size_t)among->most + 1;
  among->members = malloc(classes * (size_t)among->most * sizeof *among->members);
  among->size = calloc(classes, sizeof *among->size);
  among->extents = malloc(classes * (size_t)attributes * sizeof *among->extents);
  among->open = malloc(classes);
  among->fresh = malloc(classes);
  among->near = malloc((2 * joined + 1) * sizeof *among->near);
  among->apart = malloc((2 * joined + 1) * sizeof *among->apart);
  among->joint = malloc(rows * (size_t)among->work->layout->stride);
  among->marks = malloc(rows);
  if (!among->members || !among->size || !among->extents || !among->open || !among->fresh ||
      !among->near || !among->apart || !among->joint || !among->marks)
    return MO_NO_MEMORY;
  memset(among->open, 1, classes);
  memset(among->fresh, 1, classes);
  int64_t c = 0;
  for (int64_t start = 0, stop; start < count; start = stop) {
    stop = next_mark(marks, start, count);
    if (stop - start > among->most) continue;
    among->size[c] = stop - start;
    for (int64_t i = start; i < stop; i++) members_of(among, c)[i - start] = (int32_t)i;
    c++;
  }
  return MO_DONE;
}

/* Lay the classes into the node, those that took part first, and mark anew. */
static void put_back(const search *among, uint8_t *marks) {
  size_t stride = (size_t)among->work->layout->stride;
  unsigned char *before = among->work->others;
  int64_t count = among->here.count, larger = 0, placed = 0;
  uint32_t *start_of = among->work->order; /* and where each ends */
  memcpy(before, among->here.rows, (size_t)count * stride);
  for (int64_t start = 0, stop; start < count; start = stop) {
    stop = next_mark(marks, start, count);
    if (stop - start <= among->most) continue;
    start_of[larger++] = (uint32_t)start;
    start_of[larger++] = (uint32_t)stop;
  }
  for (int64_t i = 0; i < count; i++) marks[i] = 0;
  for (int64_t c = 0; c < among->classes; c++) {
    marks[placed] = 1;
    for (int64_t i = 0; i < among->size[c]; i++, placed++)
      memcpy(among->here.rows + (size_t)placed * stride,
             before + (size_t)members_of(among, c)[i] * stride, stride);
  }
  for (int64_t i = 0; i < larger; i += 2) {
    size_t start = start_of[i], rows = start_of[i + 1] - start;
    marks[placed] = 1;
    memcpy(among->here.rows + (size_t)placed * stride, before + start * stride, rows * stride);
    placed += (int64_t)rows;
  }
}

/* Let the rows of a node change their classes, which start where marks (rows,) are 1; both are
 * written anew. */
int exchange_rows(node here, uint8_t *marks, cutter *work) {
  search among = {.here = here, .work = work, .most = 2 * work->criteria->k - 1};
  int status = open_search(&among, marks);
  if (status == MO_DONE) {
    for (int64_t c = 0; c < among.classes; c++) tell(&among, c);
    settle(&among);
    while (work->policy.joined > 1 && among.most > 1 && cut_all_anew(&among)) settle(&among);
    put_back(&among, marks);
  }
  free(among.members);
  free(among.size);
  free(among.extents);
  free(among.open);
  free(among.fresh);
  free(among.near);
  free(among.apart);
  free(among.joint);
  free(among.marks);
  return status;
}
