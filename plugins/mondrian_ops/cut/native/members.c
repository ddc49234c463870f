/* Nodes of at most WORD_BITS rows: a word has a bit for each row, so a cut is an AND and a tally
 * is a series of popcounts. */
#include "splitting.h"

/* Whether a node has few enough rows for a word, and enough to be cut. */
int fits_word(node here, const workspace *work) {
  return !here.members && here.count <= WORD_BITS && here.count >= 2 * work->criteria->k;
}

/* Makes the masks of a narrow column. Two tables are written by turns, as in tally_narrow. */
static void mask_narrow(node here, field at, masks *made, const layout *of) {
  uint64_t even[WORD_BITS], odd[WORD_BITS], below = 0;
  memset(even, 0, (size_t)at.codes * sizeof *even);
  memset(odd, 0, (size_t)at.codes * sizeof *odd);
  const unsigned char *code = here.rows + at.offset;
  int64_t i = 0;
  for (; i + 2 <= here.count; i += 2, code += 2 * of->stride) {
    even[*code] |= UINT64_C(1) << i;
    odd[code[of->stride]] |= UINT64_C(2) << i;
  }
  if (i < here.count) even[*code] |= UINT64_C(1) << i;
  made->distinct = 0;
  for (int64_t v = 0; v < at.codes; v++) {
    uint64_t with = even[v] | odd[v];
    made->value[made->distinct] = v;
    made->at_most[made->distinct] = below |= with;
    made->distinct += with != 0;
  }
}

/* Makes the masks of any column: bits lead from one code to the next, as in tally_sparse. */
static void mask_any(node here, field at, masks *made, workspace *work) {
  int64_t low = INT64_MAX, high = 0;
  uint64_t below = 0;
  for (int64_t i = 0; i < here.count; i++) {
    int64_t v = code_of(here.rows + i * work->layout->stride, at);
    work->with[v] |= UINT64_C(1) << i;
    work->bits[v >> 6] |= UINT64_C(1) << (v & 63);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  made->distinct = 0;
  for (int64_t word = low >> 6; word <= high >> 6; word++) {
    uint64_t bits = work->bits[word];
    work->bits[word] = 0;
    for (; bits; bits &= bits - 1) {
      int64_t v = (word << 6) + __builtin_ctzll(bits);
      made->value[made->distinct] = v;
      made->at_most[made->distinct++] = below |= work->with[v];
      work->with[v] = 0;
    }
  }
}

/* Makes the masks of a node in place of those made before; returns the node with all its rows as
 * members. */
node make_masks(node here, workspace *work) {
  const layout *of = work->layout;
  for (int32_t a = 0; a < of->attributes + of->sensitive; a++) {
    field at = of->column[a];
    if (at.codes <= WORD_BITS) mask_narrow(here, at, &work->masks[a], of);
    else mask_any(here, at, &work->masks[a], work);
  }
  here.members = here.count == WORD_BITS ? ~UINT64_C(0) : (UINT64_C(1) << here.count) - 1;
  return here;
}

/* tally, of a node with members. */
int64_t tally_members(node here, int32_t a, workspace *work) {
  const masks *of = &work->masks[a];
  int64_t d = 0, last = 0;
  for (int64_t j = 0; last < here.count; j++) {
    int64_t below = __builtin_popcountll(here.members & of->at_most[j]);
    work->value[d] = of->value[j];
    work->below[d] = below;
    d += below != last;
    last = below;
  }
  return d;
}

/* The reach of a node with members. Has no branch that the processor could mispredict, but for the
 * loop's end. */
reach reach_of_members(node here, int32_t a, const workspace *work) {
  const masks *of = &work->masks[a];
  int64_t low = 0, high = 0, distinct = 0;
  uint64_t below, last = 0;
  for (int64_t j = 0; last != here.members; j++, last = below) {
    below = here.members & of->at_most[j];
    low = last == 0 ? of->value[j] : low;
    high = below != last ? of->value[j] : high;
    distinct += below != last;
  }
  return (reach){low, high, distinct, width(work->layout, a, low, high, distinct)};
}

/* The rows with codes low to high of an attribute. */
uint64_t members_between(int32_t a, int64_t low, int64_t high, const workspace *work) {
  const masks *of = &work->masks[a];
  uint64_t up_to = 0, below = 0;
  for (int64_t j = 0; j < of->distinct && of->value[j] <= high; j++) {
    up_to = of->at_most[j];
    if (of->value[j] < low) below = up_to;
  }
  return up_to & ~below;
}

/* Whether the members have at least need distinct codes, not counting those below first. */
static int are_diverse(uint64_t members, const masks *of, int64_t first, double need) {
  uint64_t before = 0;
  int64_t found = 0;
  for (int64_t j = 0; j < of->distinct; j++) {
    uint64_t with = of->at_most[j] & ~before;
    before = of->at_most[j];
    found += of->value[j] >= first && (members & with) != 0;
    if ((double)found >= need) return 1;
  }
  return (double)found >= need;
}

/* Whether the members satisfy criterion j, an MO_NEAR. */
static int are_spread(uint64_t members, const masks *of, const mo_criteria *criteria, int64_t j) {
  const int32_t *near_end = criteria->near_end + criteria->near_first[j];
  uint64_t before = 0, within = 0;
  int64_t most = 0, next = 0, i = 0;
  if (criteria->uncounted[j] && of->distinct > 0 && of->value[0] == 0) {
    members &= ~of->at_most[0];
    next = i = 1;
  }
  for (; i < of->distinct; i++) {
    for (; next < of->distinct && of->value[next] <= near_end[of->value[i]]; next++)
      within = of->at_most[next];
    int64_t found = __builtin_popcountll(members & within & ~before);
    if (found > most) most = found;
    before = of->at_most[i];
  }
  return is_spread(most, __builtin_popcountll(members), criteria->level[j]);
}

/* Counts the members' values of criterion j's column into counts (codes,), which are zero. */
void count_members(uint64_t members, int64_t j, int64_t *counts, const workspace *work) {
  const masks *of = &work->masks[work->layout->attributes + work->criteria->column[j]];
  int64_t before = 0;
  for (int64_t i = 0; i < of->distinct; i++) {
    int64_t below = __builtin_popcountll(members & of->at_most[i]);
    counts[of->value[i]] = below - before;
    before = below;
  }
}

/* Whether some members satisfy every criterion that need not be asked about. */
int members_satisfy_known(uint64_t members, workspace *work) {
  const mo_criteria *criteria = work->criteria;
  for (int64_t j = 0; j < criteria->count; j++) {
    const masks *of = &work->masks[work->layout->attributes + criteria->column[j]];
    if (criteria->kind[j] == MO_ASKED) continue;
    if (criteria->kind[j] == MO_DISTINCT) {
      if (!are_diverse(members, of, criteria->uncounted[j], criteria->level[j])) return 0;
      continue;
    }
    if (criteria->kind[j] == MO_NEAR) {
      if (!are_spread(members, of, criteria, j)) return 0;
      continue;
    }
    int64_t before = 0;
    mo_tally tally = work->left_tally; /* in registers, unlike that of the workspace */
    for (int64_t i = 0; i < of->distinct; i++) {
      int64_t below = __builtin_popcountll(members & of->at_most[i]);
      count_rows(&tally, of->value[i], below - before);
      before = below;
    }
    work->left_tally = tally;
    if (!counted_satisfy(&work->left_tally, criteria, j)) return 0;
  }
  return 1;
}
