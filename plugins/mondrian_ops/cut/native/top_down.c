/* Top-down specialization on counted combinations (two-phase TDS, sections 3.2 and 5).
 *
 * The combinations of a class lie side by side, and are moved themselves rather than an index of
 * them, so that reading a class is sequential. Nodes of all hierarchies are numbered through.
 *
 * A specialization that is invalid stays invalid, so it is never rated again. Other
 * specializations only split classes, and where a class would get a part that is too small or
 * breaks a criterion, one of its pieces gets such a part, too: a union of classes has the size,
 * the l-diversity (Machanavajjhala et al. 2006) and the t-closeness (Li et al. 2007, whose
 * distances are convex) that each of them has. */
#include "kernels.h"

#include <string.h>

enum { NONE = -1 };

/* The children of a class are counted in one table where it fits in a cache, and is not much
 * larger than the class. */
enum { TABLE = 1 << 14, SPARSE = 4 };

/* The cuts so far, their classes, and the ratings of the next specializations. */
typedef struct {
  const mo_combinations *combinations;
  const mo_forest *forest;
  const mo_criteria *criteria;
  int32_t *cut;        /* (codes,) */
  int32_t *below; /* (codes,): the child of the cut's node above the code; the node itself if it is
                     a leaf */
  uint8_t *opened; /* (nodes,): 1 for nodes that are, or were, in the cut */
  uint8_t *valid; /* (nodes,): nodes of the cut whose specialization is valid */
  int64_t *least; /* (nodes,): rows of the smallest class that its specialization makes */
  int32_t *candidates; /* (nodes,): valid specializations, and some that have become invalid */
  int64_t candidate_count;
  int64_t anonymity; /* rows of the smallest class */
  int64_t classes;
  int64_t room; /* the most classes that there can be */
  int64_t *start; /* (room,) */
  int64_t *stop; /* (room,) */
  int32_t *newest; /* (nodes,): first of a list of classes with the node; NONE: empty */
  int32_t *older; /* (attributes, room): the next class of the list */
  int64_t *size; /* (nodes,): zero between uses */
  int64_t *place; /* (nodes,) */
  int64_t *bound; /* (nodes + 1,) */
  int32_t *touched; /* (nodes,) */
  int64_t *table; /* (TABLE,): children times sensitive codes */
  mo_tally tally;
} search;

/* A column of the combinations. */
typedef struct {
  const uint64_t *words;
  uint64_t shift;
  uint64_t mask;
} packed_column;

static packed_column column_of(const mo_combinations *combinations, int64_t column) {
  const uint64_t *words = combinations->words + combinations->word[column] * combinations->count;
  return (packed_column){words, combinations->shift[column], combinations->mask[column]};
}

static inline int64_t code_in(packed_column column, int64_t i) {
  return (int64_t)(column.words[i] >> column.shift & column.mask);
}

static int64_t code_of(const mo_combinations *combinations, int64_t column, int64_t i) {
  return code_in(column_of(combinations, column), i);
}

static int32_t node_of(const search *s, int64_t a, int64_t c) {
  return s->cut[s->forest->first[a] + code_of(s->combinations, a, s->start[c])];
}

/* Counts the rows of a class by the child of its node, in size of the touched nodes; returns how
 * many children have any. */
static int64_t tally_children(search *s, int64_t a, int64_t start, int64_t stop) {
  packed_column column = column_of(s->combinations, a);
  const int32_t *below = s->below + s->forest->first[a];
  const int64_t *rows = s->combinations->rows;
  int64_t *size = s->size, found = 0;
  for (int64_t i = start; i < stop; i++) {
    int32_t node = below[code_in(column, i)];
    if (size[node] == 0) s->touched[found++] = node;
    size[node] += rows[i];
  }
  return found;
}

static void swap(const mo_combinations *combinations, int64_t i, int64_t j) {
  for (int64_t w = 0; w < combinations->wide; w++) {
    uint64_t *words = combinations->words + w * combinations->count, word = words[i];
    words[i] = words[j];
    words[j] = word;
  }
  int64_t rows = combinations->rows[i];
  combinations->rows[i] = combinations->rows[j];
  combinations->rows[j] = rows;
}

/* Counts the combinations of a class by their node in nodes (codes of the attribute,): node
 * touched[g] gets the places bound[g] to bound[g + 1]. Returns how many nodes there are. */
static int64_t bound_nodes(search *s, packed_column column, int64_t start, int64_t stop,
                           const int32_t *nodes) {
  int64_t *size = s->size, groups = 0;
  for (int64_t i = start; i < stop; i++) {
    int32_t node = nodes[code_in(column, i)];
    if (size[node]++ == 0) s->touched[groups++] = node;
  }
  s->bound[0] = start;
  for (int64_t g = 0; g < groups; g++) {
    int32_t node = s->touched[g];
    s->place[node] = s->bound[g];
    s->bound[g + 1] = s->bound[g] + size[node];
    size[node] = 0;
  }
  return groups;
}

/* Groups the combinations of a class by their node in table (codes,): those of node touched[g]
 * move to places bound[g] to bound[g + 1]. Returns how many nodes there are. */
static int64_t group_by_node(search *s, int64_t a, int64_t start, int64_t stop,
                             const int32_t *table) {
  packed_column column = column_of(s->combinations, a);
  const int32_t *nodes = table + s->forest->first[a];
  int64_t groups = bound_nodes(s, column, start, stop, nodes);
  for (int64_t g = 0; g + 1 < groups; g++) { /* the last group is in place when all others are */
    int32_t node = s->touched[g];
    for (int64_t i = s->place[node]; i < s->bound[g + 1];) {
      int32_t other = nodes[code_in(column, i)];
      if (other == node) i++;
      else swap(s->combinations, i, s->place[other]++);
    }
  }
  return groups;
}

static int satisfies_criterion(search *s, int64_t j, int64_t start, int64_t stop) {
  packed_column column = column_of(s->combinations, s->forest->attributes + s->criteria->column[j]);
  const int64_t *rows = s->combinations->rows;
  for (int64_t i = start; i < stop; i++) count_rows(&s->tally, code_in(column, i), rows[i]);
  return counted_satisfy(&s->tally, s->criteria, j);
}

/* Whether a class of these combinations satisfies every criterion on sensitive columns. */
static int class_satisfies(search *s, int64_t start, int64_t stop) {
  for (int64_t j = 0; j < s->criteria->count; j++)
    if (!satisfies_criterion(s, j, start, stop)) return 0;
  return 1;
}

/* Counts the sensitive values of a class by child: child touched[g] has row g of the table. */
static void fill_table(search *s, int64_t a, int64_t sensitive, int64_t start, int64_t stop,
                       int64_t found) {
  packed_column own = column_of(s->combinations, a);
  packed_column other = column_of(s->combinations, sensitive);
  const int32_t *below = s->below + s->forest->first[a];
  const int64_t *rows = s->combinations->rows, *place = s->place;
  int64_t *table = s->table;
  memset(table, 0, (size_t)(found * s->tally.codes) * sizeof *table);
  for (int64_t i = start; i < stop; i++)
    table[place[below[code_in(own, i)]] + code_in(other, i)] += rows[i];
}

/* children_satisfy for all children in one table, without moving the combinations. */
static int children_satisfy_by_table(search *s, int64_t a, int64_t start, int64_t stop,
                                     int64_t found) {
  int64_t codes = s->tally.codes;
  for (int64_t g = 0; g < found; g++) s->place[s->touched[g]] = g * codes;
  for (int64_t j = 0; j < s->criteria->count; j++) {
    fill_table(s, a, s->forest->attributes + s->criteria->column[j], start, stop, found);
    for (int64_t g = 0; g < found; g++)
      if (!counts_satisfy(s->table + g * codes, s->criteria, j, &s->tally)) return 0;
  }
  return 1;
}

/* Whether the parts into which specializing attribute a splits a class satisfy the criteria;
 * tally_children has just found them. */
static int children_satisfy(search *s, int64_t a, int64_t start, int64_t stop, int64_t found) {
  if (found == 1) return 1;
  int64_t cells = found * s->tally.codes;
  if (cells <= TABLE && cells <= SPARSE * (stop - start))
    return children_satisfy_by_table(s, a, start, stop, found);
  group_by_node(s, a, start, stop, s->below);
  for (int64_t g = 0; g < found; g++)
    if (!class_satisfies(s, s->bound[g], s->bound[g + 1])) return 0;
  return 1;
}

/* Rates the specializations of a class's nodes: A_c (equation 4), or invalid. */
static void rate_class(search *s, int64_t c) {
  int64_t start = s->start[c], stop = s->stop[c];
  for (int64_t a = 0; a < s->forest->attributes; a++) {
    int32_t node = node_of(s, a, c);
    if (!s->valid[node]) continue;
    int64_t found = tally_children(s, a, start, stop), least = s->least[node];
    for (int64_t t = 0; t < found; t++) {
      int64_t *size = &s->size[s->touched[t]];
      if (*size < least) least = *size;
      *size = 0;
    }
    s->least[node] = least;
    s->valid[node] = least >= s->criteria->k &&
                     (s->criteria->count == 0 || children_satisfy(s, a, start, stop, found));
  }
}

/* Adds a class to the list of its node of attribute a. */
static void link_class(search *s, int64_t c, int64_t a) {
  int32_t *newest = &s->newest[node_of(s, a, c)];
  s->older[a * s->room + c] = *newest;
  *newest = (int32_t)c;
}

/* Splits class c by the cut of attribute a; the first part keeps the number. Returns how many
 * parts there are, 0: there is no room for them. */
static int64_t split_class(search *s, int64_t c, int64_t a) {
  int64_t groups = group_by_node(s, a, s->start[c], s->stop[c], s->cut);
  if (groups - 1 > s->room - s->classes) return 0;
  for (int64_t g = 0; g < groups; g++) {
    int64_t part = g == 0 ? c : s->classes++;
    s->start[part] = s->bound[g];
    s->stop[part] = s->bound[g + 1];
  }
  return groups;
}

/* Splits class c by the cut of attribute a, and adds the parts to the lists of their nodes. The
 * first part stays in the lists of the other attributes, whose nodes all parts share. */
static int split_and_link(search *s, int64_t c, int64_t a) {
  int64_t before = s->classes;
  if (split_class(s, c, a) == 0) return MO_OUT_OF_BOUNDS;
  link_class(s, c, a);
  for (int64_t part = before; part < s->classes; part++)
    for (int64_t b = 0; b < s->forest->attributes; b++) link_class(s, part, b);
  return MO_DONE;
}

/* Puts a node into the cut; unless it is a leaf, its specialization becomes a candidate. */
static void enter_cut(search *s, int32_t node) {
  const mo_forest *forest = s->forest;
  int64_t first = forest->child_first[node], stop = forest->child_first[node + 1];
  if (s->opened[node]) return; /* does not happen in a forest */
  s->opened[node] = 1;
  for (int64_t at = forest->member_first[node]; at < forest->member_stop[node]; at++)
    s->cut[forest->members[at]] = node;
  for (int64_t at = first; at < stop; at++) {
    int32_t child = forest->children[at];
    for (int64_t m = forest->member_first[child]; m < forest->member_stop[child]; m++)
      s->below[forest->members[m]] = child;
  }
  s->valid[node] = stop > first;
  if (stop > first) s->candidates[s->candidate_count++] = node;
}

/* The valid candidate of greatest IGPL (equation 1), NONE: there is none; drops invalid ones. Of
 * equal ones the lowest number wins: the first attribute, then the first node. */
static int32_t best_candidate(search *s) {
  int32_t chosen = NONE;
  int64_t left = 0;
  double greatest = -1.0;
  for (int64_t at = 0; at < s->candidate_count; at++) {
    int32_t node = s->candidates[at];
    if (!s->valid[node]) continue;
    s->candidates[left++] = node;
    int64_t loss = s->least[node] < s->anonymity ? s->anonymity - s->least[node] : 0;
    double score = s->forest->gain[node] / ((double)loss + 1.0);
    if (score > greatest || (score == greatest && node < chosen)) {
      chosen = node;
      greatest = score;
    }
  }
  s->candidate_count = left;
  return chosen;
}

static int specialize_node(search *s, int32_t node) {
  const mo_forest *forest = s->forest;
  int32_t a = forest->attribute[node];
  s->valid[node] = 0;
  for (int64_t at = forest->child_first[node]; at < forest->child_first[node + 1]; at++)
    enter_cut(s, forest->children[at]);
  for (int32_t c = s->newest[node]; c != NONE && !stopped();) {
    int32_t following = s->older[a * s->room + c];
    int64_t before = s->classes;
    if (split_and_link(s, c, a) != MO_DONE) return MO_OUT_OF_BOUNDS;
    rate_class(s, c);
    for (int64_t part = before; part < s->classes; part++) rate_class(s, part);
    c = following;
  }
  return MO_DONE;
}

/* Makes the classes of the start cut and finds the rows of the smallest; returns 0 if one is too
 * small or breaks a criterion. */
static int start_classes(search *s) {
  if (s->room == 0) return 0;
  s->classes = 1;
  s->stop[0] = s->combinations->count;
  for (int64_t a = 0; a < s->forest->attributes; a++)
    for (int64_t c = 0, before = s->classes; c < before && !stopped(); c++)
      if (split_class(s, c, a) == 0) return 0;
  s->anonymity = INT64_MAX;
  for (int64_t c = 0; c < s->classes; c++) {
    int64_t rows = 0;
    for (int64_t i = s->start[c]; i < s->stop[c]; i++) rows += s->combinations->rows[i];
    if (rows < s->anonymity) s->anonymity = rows;
    if (rows < s->criteria->k || !class_satisfies(s, s->start[c], s->stop[c])) return 0;
    for (int64_t a = 0; a < s->forest->attributes; a++) link_class(s, c, a);
  }
  return 1;
}

static void enter_start_cut(search *s) {
  const mo_forest *forest = s->forest;
  for (int32_t node = 0; node < forest->nodes; node++) {
    int64_t first = forest->member_first[node];
    if (first < forest->member_stop[node] && s->cut[forest->members[first]] == node)
      enter_cut(s, node);
  }
}

/* Performs the best specialization until no valid one is left (algorithm 4). */
static int run(search *s, int32_t *steps, int64_t *step_count) {
  enter_start_cut(s);
  for (int64_t c = 0; c < s->classes && !stopped(); c++) rate_class(s, c);
  for (int32_t node; !stopped() && (node = best_candidate(s)) != NONE;) {
    if (s->least[node] < s->anonymity) s->anonymity = s->least[node];
    if (specialize_node(s, node) != MO_DONE) return MO_OUT_OF_BOUNDS;
    steps[(*step_count)++] = node;
  }
  return MO_DONE;
}

static int codes_fit(const mo_combinations *combinations, int64_t column, int64_t codes) {
  packed_column own = column_of(combinations, column);
  uint64_t greatest = 0;
  for (int64_t i = 0; i < combinations->count; i++) {
    uint64_t code = own.words[i] >> own.shift & own.mask;
    if (code > greatest) greatest = code;
  }
  return combinations->count == 0 || greatest < (uint64_t)codes;
}

/* Whether every code of the combinations is in the tables. */
static int all_fit(const search *s) {
  const mo_forest *forest = s->forest;
  for (int64_t a = 0; a < forest->attributes; a++)
    if (!codes_fit(s->combinations, a, forest->first[a + 1] - forest->first[a])) return 0;
  for (int64_t j = 0; j < s->criteria->count; j++) {
    int64_t column = forest->attributes + s->criteria->column[j];
    if (!codes_fit(s->combinations, column, s->criteria->codes[j])) return 0;
  }
  return 1;
}

/* As many classes as there can be of k rows each. */
static int64_t most_classes(const mo_combinations *combinations, int64_t k) {
  int64_t total = 0;
  for (int64_t i = 0; i < combinations->count; i++) total += combinations->rows[i];
  int64_t classes = total / (k > 1 ? k : 1);
  return classes < combinations->count ? classes : combinations->count;
}

static int allocate(search *s) {
  int64_t nodes = s->forest->nodes, codes = s->forest->first[s->forest->attributes];
  int status = allocate_tally(&s->tally, s->criteria, s->combinations->count);
  s->below = zeros(codes, sizeof *s->below);
  s->opened = zeros(nodes, sizeof *s->opened);
  s->valid = zeros(nodes, sizeof *s->valid);
  s->least = zeros(nodes, sizeof *s->least);
  s->candidates = zeros(nodes, sizeof *s->candidates);
  s->start = zeros(s->room, sizeof *s->start);
  s->stop = zeros(s->room, sizeof *s->stop);
  s->newest = zeros(nodes, sizeof *s->newest);
  s->older = zeros(s->forest->attributes * s->room, sizeof *s->older);
  s->size = zeros(nodes, sizeof *s->size);
  s->place = zeros(nodes, sizeof *s->place);
  s->bound = zeros(nodes + 1, sizeof *s->bound);
  s->touched = zeros(nodes, sizeof *s->touched);
  s->table = zeros(TABLE, sizeof *s->table);
  int found = s->below && s->opened && s->valid && s->least && s->candidates && s->start &&
              s->stop && s->newest && s->older && s->size && s->place && s->bound && s->touched &&
              s->table;
  return found ? status : MO_NO_MEMORY;
}

static void free_search(search *s) {
  free(s->below);
  free(s->opened);
  free(s->valid);
  free(s->least);
  free(s->candidates);
  free(s->start);
  free(s->stop);
  free(s->newest);
  free(s->older);
  free(s->size);
  free(s->place);
  free(s->bound);
  free(s->touched);
  free(s->table);
  free_tally(&s->tally);
}

int mo_specialize(const mo_combinations *combinations, const mo_forest *forest,
                  const mo_criteria *criteria, int32_t *cut, int32_t *steps, int64_t *step_count,
                  int64_t *class_count) {
  search s = {.combinations = combinations, .forest = forest, .criteria = criteria, .cut = cut};
  *step_count = *class_count = 0;
  if (!all_fit(&s)) return MO_OUT_OF_BOUNDS;
  s.room = most_classes(combinations, criteria->k);
  int status = allocate(&s);
  if (status == MO_DONE) {
    int64_t codes = forest->first[forest->attributes];
    memcpy(s.below, cut, (size_t)codes * sizeof *cut);
    for (int64_t node = 0; node < forest->nodes; node++) {
      s.newest[node] = NONE;
      s.least[node] = INT64_MAX;
    }
    if (start_classes(&s)) {
      status = run(&s, steps, step_count);
      *class_count = s.classes;
    }
  }
  free_search(&s);
  return status;
}

/* The finalizer of the generator splitmix64. */
static uint64_t splitmix64(uint64_t z) {
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

void mo_rows_of_part(const int64_t *rows, int64_t count, int64_t part, int64_t parts, uint64_t seed,
                     int64_t *found) {
  const uint64_t step = 0x9E3779B97F4A7C15u;
  uint64_t state = splitmix64(seed + step);
  for (int64_t i = 0; i < count; i++) {
    found[i] = 0;
    for (int64_t row = 0; row < rows[i]; row++) {
      state += step;
      uint64_t high = splitmix64(state) >> 32;
      found[i] += (int64_t)(high * (uint64_t)parts >> 32) == part;
    }
  }
}
