/* Privacy criteria on the two sides of a cut. */
#include "splitting.h"

/* both_diverse of a column of at most WORD_BITS codes: a word for each side has a bit for each
 * code. It looks after every EACH rows whether they are enough, as most cuts pass at once. */
static int both_diverse_few(node here, field side, cut tried, field value, int64_t first,
                            double need, size_t stride) {
  enum { EACH = 8 };
  uint64_t span = (uint64_t)(tried.high - tried.low), counted = ~UINT64_C(0) << first;
  uint64_t left = 0, right = 0;
  const unsigned char *record = here.rows;
  for (int64_t i = 0; i < here.count;) {
    for (int64_t stop = i + EACH; i < stop && i < here.count; i++, record += stride) {
      uint64_t bit = UINT64_C(1) << code_of(record, value);
      uint64_t goes_left = (uint64_t)(code_of(record, side) - tried.low) <= span;
      left |= bit & (0 - goes_left);
      right |= bit & (goes_left - 1);
    }
    if ((double)__builtin_popcountll(left & counted) >= need &&
        (double)__builtin_popcountll(right & counted) >= need)
      return 1;
  }
  return 0;
}

/* Whether both sides of a cut have need distinct sensitive codes, not counting those below first;
 * stops as soon as they have. */
static int both_diverse(node here, cut tried, int64_t column, int64_t first, double need,
                        workspace *work) {
  const layout *of = work->layout;
  field side = of->column[tried.attribute], value = sensitive_field(of, column);
  if (value.codes <= WORD_BITS)
    return both_diverse_few(here, side, tried, value, first, need, (size_t)of->stride);
  uint64_t span = (uint64_t)(tried.high - tried.low);
  int64_t stamp = ++work->clock, left = 0, right = 0;
  for (int64_t i = 0; i < here.count; i++) {
    const unsigned char *record = here.rows + i * of->stride;
    int64_t s = code_of(record, value);
    if (s < first) continue;
    if ((uint64_t)(code_of(record, side) - tried.low) <= span) {
      left += work->left_seen[s] != stamp;
      work->left_seen[s] = stamp;
    } else {
      right += work->right_seen[s] != stamp;
      work->right_seen[s] = stamp;
    }
    if ((double)left >= need && (double)right >= need) return 1;
  }
  return 0;
}

/* Whether both sides of a cut satisfy criterion j. */
static int sides_satisfy(node here, cut tried, int64_t j, workspace *work) {
  const layout *of = work->layout;
  const mo_criteria *criteria = work->criteria;
  field side = of->column[tried.attribute], value = sensitive_field(of, criteria->column[j]);
  uint64_t span = (uint64_t)(tried.high - tried.low);
  mo_tally *tally[2] = {&work->right_tally, &work->left_tally}; /* by whether a row goes left */
  int64_t codes = criteria->codes[j], *counts[2] = {tally[0]->counts, tally[1]->counts};
  int few = codes <= here.count;
  for (int64_t i = 0; i < here.count; i++) {
    const unsigned char *record = here.rows + i * of->stride;
    int goes_left = (uint64_t)(code_of(record, side) - tried.low) <= span;
    if (few) counts[goes_left][code_of(record, value)]++;
    else count_rows(tally[goes_left], code_of(record, value), 1);
  }
  if (few) list_counts(tally[0], codes);
  if (few) list_counts(tally[1], codes);
  if (counted_satisfy(tally[1], criteria, j)) return counted_satisfy(tally[0], criteria, j);
  forget(tally[0], tally[0]->distinct);
  return 0;
}

/* Counts the sensitive values of both sides of a cut, (2, codes). */
static void count_sides(node here, cut tried, int64_t j, int64_t *counts, const workspace *work) {
  const layout *of = work->layout;
  int64_t codes = work->criteria->codes[j];
  memset(counts, 0, (size_t)(2 * codes) * sizeof *counts);
  if (here.members) {
    uint64_t left = here.members & members_between(tried.attribute, tried.low, tried.high, work);
    count_members(left, j, counts, work);
    count_members(here.members & ~left, j, counts + codes, work);
    return;
  }
  field side = of->column[tried.attribute], value = sensitive_field(of, work->criteria->column[j]);
  uint64_t span = (uint64_t)(tried.high - tried.low);
  for (int64_t i = 0; i < here.count; i++) {
    const unsigned char *record = here.rows + i * of->stride;
    int goes_left = (uint64_t)(code_of(record, side) - tried.low) <= span;
    counts[code_of(record, value) + (goes_left ? 0 : codes)]++;
  }
}

/* Whether both sides of a cut satisfy every criterion that need not be asked about. */
static int sides_satisfy_known(node here, cut tried, workspace *work) {
  const mo_criteria *criteria = work->criteria;
  if (here.members) {
    uint64_t left = here.members & members_between(tried.attribute, tried.low, tried.high, work);
    return members_satisfy_known(left, work) && members_satisfy_known(here.members & ~left, work);
  }
  for (int64_t j = 0; j < criteria->count; j++) {
    if (criteria->kind[j] == MO_ASKED) continue;
    int holds = criteria->kind[j] == MO_DISTINCT
                    ? both_diverse(here, tried, criteria->column[j], criteria->uncounted[j],
                                   criteria->level[j], work)
                    : sides_satisfy(here, tried, j, work);
    if (!holds) return 0;
  }
  return 1;
}

/* Whether both sides of a cut satisfy every criterion on sensitive columns. */
int cut_satisfies(node here, cut tried, workspace *work) {
  const mo_criteria *criteria = work->criteria;
  if (!sides_satisfy_known(here, tried, work)) return 0;
  for (int64_t j = 0; j < criteria->count; j++) {
    uint8_t holds[2];
    if (criteria->kind[j] != MO_ASKED) continue;
    count_sides(here, tried, j, work->asked_counts, work);
    criteria->asked(j, 2, work->asked_counts, holds);
    if (!holds[0] || !holds[1]) return 0;
  }
  return 1;
}

/* Counts the sensitive values of a node for criterion j. */
static void count_node(node here, int64_t j, mo_tally *tally, const workspace *work) {
  const layout *of = work->layout;
  field value = sensitive_field(of, work->criteria->column[j]);
  int64_t codes = work->criteria->codes[j], *counts = tally->counts;
  int few = codes <= here.count;
  for (int64_t i = 0; i < here.count; i++) {
    int64_t s = code_of(here.rows + i * of->stride, value);
    if (few) counts[s]++;
    else count_rows(tally, s, 1);
  }
  if (few) list_counts(tally, codes);
}

static int node_satisfies(node here, int64_t j, workspace *work) {
  count_node(here, j, &work->left_tally, work);
  return counted_satisfy(&work->left_tally, work->criteria, j);
}

/* Whether the first middle rows of a node satisfy every criterion, and the others do, too. */
int halves_satisfy(node here, int64_t middle, workspace *work) {
  node left = {.rows = here.rows, .count = middle};
  node right = {.rows = here.rows + middle * work->layout->stride, .count = here.count - middle};
  for (int64_t j = 0; j < work->criteria->count; j++)
    if (!node_satisfies(left, j, work) || !node_satisfies(right, j, work)) return 0;
  return 1;
}

/* Sorts the places of a node's rows by attribute a, which was just tallied, into work->order.
 *
 * A counting sort: the histogram holds where the next row of each code goes. */
void order_rows(node here, int32_t a, int64_t d, workspace *work) {
  const layout *of = work->layout;
  field at = of->column[a];
  for (int64_t j = 0; j < d; j++) work->histogram[work->value[j]] = j > 0 ? work->below[j - 1] : 0;
  for (int64_t i = 0; i < here.count; i++)
    work->order[work->histogram[code_of(here.rows + i * of->stride, at)]++] = (uint32_t)i;
  for (int64_t j = 0; j < d; j++) work->histogram[work->value[j]] = 0;
}

/* Checks one criterion for all cuts in one sweep over the rows in the attribute's order: each
 * row's sensitive value moves from the right side to the left. The right side had all codes at
 * first, so its list leads to all counts. */
static void mark_by(node here, int64_t d, int64_t c, workspace *work) {
  const layout *of = work->layout;
  const mo_criteria *criteria = work->criteria;
  field value = sensitive_field(of, criteria->column[c]);
  mo_tally *left = &work->left_tally, *right = &work->right_tally;
  int64_t *on_left = left->counts, *on_right = right->counts;
  count_node(here, c, right, work);
  int64_t codes = right->distinct, left_codes = 0, right_codes = codes;
  for (int64_t j = 0, i = 0; j + 1 < d; j++) {
    int64_t below = work->below[j];
    for (; i < below; i++) {
      int64_t s = code_of(here.rows + (int64_t)work->order[i] * of->stride, value);
      left_codes += on_left[s]++ == 0;
      right_codes -= --on_right[s] == 0;
    }
    left->total = below;
    left->distinct = left_codes;
    right->total = here.count - below;
    right->distinct = right_codes;
    if (work->valid[j])
      work->valid[j] = tally_satisfies(left, criteria, c) && tally_satisfies(right, criteria, c);
  }
  for (int64_t i = 0; i < codes; i++) on_left[right->listed[i]] = 0;
  forget(left, 0);
  forget(right, codes);
}

/* mark_by of an MO_NEAR: the fullest stretch of each side is known while rows move. The counts of
 * the right tally hold where a code is in the sorted list. */
static void mark_spread(node here, int64_t d, int64_t c, workspace *work) {
  const layout *of = work->layout;
  const mo_criteria *criteria = work->criteria;
  field value = sensitive_field(of, criteria->column[c]);
  int64_t *place = work->right_tally.counts, first = criteria->uncounted[c], counted[2] = {0, 0};
  mo_tally *whole = &work->left_tally;
  count_node(here, c, whole, work);
  sort_codes(whole);
  const int32_t *listed = whole->listed;
  clear_stretches(&work->near, listed, whole->distinct,
                  criteria->near_end + criteria->near_first[c]);
  for (int64_t i = 0; i < whole->distinct; i++) {
    place[listed[i]] = i;
    if (listed[i] < first) continue;
    counted[1] += whole->counts[listed[i]];
    add_to_stretches(&work->near, 1, i, (int32_t)whole->counts[listed[i]]);
  }
  for (int64_t j = 0, i = 0; j + 1 < d; j++) {
    for (; i < work->below[j]; i++) {
      int64_t s = code_of(here.rows + (int64_t)work->order[i] * of->stride, value);
      if (s < first) continue;
      counted[0]++;
      counted[1]--;
      add_to_stretches(&work->near, 0, place[s], 1);
      add_to_stretches(&work->near, 1, place[s], -1);
    }
    for (int side = 0; side < 2 && work->valid[j]; side++)
      work->valid[j] =
          (uint8_t)is_spread(work->near.most[side][1], counted[side], criteria->level[c]);
  }
  for (int64_t i = 0; i < whole->distinct; i++) place[listed[i]] = 0;
  forget(whole, whole->distinct);
}

/* Asks about the sides of so many cuts, which wait, and writes which of them are valid. */
static void ask_about(const int64_t *places, int64_t cuts, int64_t c, workspace *work) {
  uint8_t holds[2 * ASKED_CUTS];
  if (cuts > 0) work->criteria->asked(c, 2 * cuts, work->asked_counts, holds);
  for (int64_t i = 0; i < cuts; i++) work->valid[places[i]] = holds[2 * i] && holds[2 * i + 1];
}

/* mark_by of an MO_ASKED: many cuts are asked about at once. */
static void mark_asked(node here, int32_t a, int64_t d, int64_t c, workspace *work) {
  const layout *of = work->layout;
  int64_t codes = work->criteria->codes[c], places[ASKED_CUTS], waiting = 0;
  size_t bytes = (size_t)codes * sizeof(int64_t);
  field value = sensitive_field(of, work->criteria->column[c]);
  int64_t *left = work->asked_counts + 2 * work->asked_cuts * codes, *right = left + codes;
  memset(left, 0, 2 * bytes);
  for (int64_t i = 0; !here.members && i < here.count; i++)
    right[code_of(here.rows + i * of->stride, value)]++;
  for (int64_t j = 0, i = 0; j + 1 < d && !stopped(); j++) {
    for (; !here.members && i < work->below[j]; i++) {
      int64_t s = code_of(here.rows + (int64_t)work->order[i] * of->stride, value);
      left[s]++;
      right[s]--;
    }
    if (!work->valid[j]) continue;
    int64_t *own = work->asked_counts + 2 * waiting * codes;
    if (here.members) {
      count_sides(here, (cut){a, 0, work->value[j]}, c, own, work);
    } else {
      memcpy(own, left, 2 * bytes);
    }
    places[waiting++] = j;
    if (waiting < work->asked_cuts) continue;
    ask_about(places, waiting, c, work);
    waiting = 0;
  }
  ask_about(places, waiting, c, work);
}

/* Writes to work->valid[j] whether the cut above the j-th of d distinct codes, which were just
 * tallied, leaves k rows and satisfies every criterion on both sides. */
void mark_valid(node here, int32_t a, int64_t d, workspace *work) {
  int64_t k = work->criteria->k;
  for (int64_t j = 0; j + 1 < d; j++)
    work->valid[j] = work->below[j] >= k && here.count - work->below[j] >= k;
  if (!here.members) order_rows(here, a, d, work);
  for (int64_t j = 0; here.members && j + 1 < d; j++)
    work->valid[j] = work->valid[j] && sides_satisfy_known(here, (cut){a, 0, work->value[j]}, work);
  for (int64_t c = 0; c < work->criteria->count; c++) {
    int64_t kind = work->criteria->kind[c];
    if (kind == MO_ASKED) mark_asked(here, a, d, c, work);
    else if (!here.members) (kind == MO_NEAR ? mark_spread : mark_by)(here, d, c, work);
  }
}
