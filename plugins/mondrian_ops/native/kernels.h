/* The kernels: the few loops that run over every row, behind a C ABI (native/library.py loads
 * them).
 *
 * They see codes only. Their decisions depend on the counts, the order and the positions of the
 * codes present in a node, never on how densely a column is coded: a fragment cut alone and the
 * same rows cut inside the whole dataset get the same classes.
 *
 * Functions that can fail return a status. Except for trees, no function keeps a pointer that it
 * is given; none writes to const memory, or uses memory shared by threads. The caller has checked
 * types, shapes and bounds. */
#ifndef MONDRIAN_OPS_KERNELS_H
#define MONDRIAN_OPS_KERNELS_H

#include <stdint.h>
#include <stdlib.h>

#define MO_API __attribute__((visibility("default")))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* MO_OUT_OF_BOUNDS: a code or a node is outside of its table; no memory outside was read or
 * written. */
enum { MO_DONE = 0, MO_NO_MEMORY = -1, MO_OUT_OF_BOUNDS = -2, MO_STOPPED = -3 };

/* threads.c: the flag that stops the kernels that this thread calls, and their threads; NULL: none
 * does. Once it is not 0, a kernel ends soon, whatever it returns, and its results are void. */
MO_API void mo_watch(const int *flag);
int stopped(void);

/* Zeroed memory for length entries of so many bytes, to be freed; NULL where there is none. */
static inline void *zeros(int64_t length, size_t bytes) {
  return calloc(length > 0 ? (size_t)length : 1, bytes);
}

/* Kinds of attribute; they decide the loss of publishing a set of codes. */
enum { MO_INTERVAL, MO_TREE, MO_SET };

/* Counts that a criterion of Python, MO_ASKED, gets in one call, about. */
enum { ASKED_COUNTS = 1 << 16 };

/* Cut policies; cut/native/mondrian.py says what each does. */
enum { MO_MEDIAN, MO_GAIN, MO_WIDEST_GAIN, MO_BALANCED, MO_RELAXED };

/* Kinds of privacy criterion on a sensitive attribute. */
enum {
  MO_DISTINCT,
  MO_ENTROPY,
  MO_RECURSIVE,
  MO_T_EQUAL,
  MO_T_ORDERED,
  MO_T_TREE,
  MO_NEAR,
  MO_ASKED /* of a package: Python is asked */
};

/* Coded rows: code 0 is the missing value, codes of an attribute are in its order. Tables over
 * codes are flat; those of attribute a start at first[a]. */
typedef struct {
  int64_t rows;
  int64_t attributes;
  int64_t sensitive_columns;
  int64_t persons; /* 1 where the last sensitive column only tells persons apart */
  int64_t code_bytes; /* 1, 2 or 4: of an entry of codes */
  const void *codes; /* (attributes, rows) */
  const int32_t *sensitive; /* (sensitive columns, rows) */
  const int64_t *kind; /* (attributes,) */
  const int64_t *first; /* (attributes + 1,) */
  const double *low; /* (codes,) MO_INTERVAL: lower end of a code's interval */
  const double *high; /* (codes,) MO_INTERVAL: upper end */
  const double *step; /* (codes,) MO_TREE: loss of the lowest common ancestor of a code and the
                         next; MO_SET: of 1, 2, ... values */
  const double *span; /* (attributes,) MO_INTERVAL: the width that loses 1; not 0 */
  const double *most; /* (attributes,) the greatest loss: no interval loses more, and "*" as much */
  const double *present; /* (attributes,) distinct values present in the whole dataset */
} mo_rows;

/* k, and the criteria on the sensitive attributes, one entry per criterion. */
typedef struct {
  int64_t k;
  int64_t count;
  const int64_t *kind;
  const int64_t *column; /* row of the sensitive matrix */
  const double *level; /* l, or t */
  const double *c; /* the c of recursive (c, l)-diversity */
  const int64_t *codes; /* sensitive codes */
  const int64_t *uncounted; /* 1 where code 0, the missing value, does not count as a value */
  const double *share; /* of t-closeness: distribution over the whole dataset, flat */
  const int64_t *share_first; /* (criteria + 1,) */
  const int32_t *parent; /* MO_T_TREE: parents in the sensitive hierarchy, children first */
  const double *height; /* MO_T_TREE: height of a node over the height of the tree */
  const int64_t *parent_first; /* (criteria + 1,) */
  const int32_t *near_end; /* MO_NEAR: the greatest code that is near each code; ascends */
  const int64_t *near_first; /* (criteria + 1,) */
  /* MO_ASKED: writes to holds (classes,) which classes with these counts (classes, codes) satisfy
   * criterion j. It takes the interpreter's lock, so few calls with many classes are faster. */
  void (*asked)(int64_t j, int64_t classes, const int64_t *counts, uint8_t *holds);
} mo_criteria;

/* The sensitive values of some rows, counted for one criterion: count_rows for each row, then
 * counted_satisfy, which empties the tally.
 *
 * Rows with the codes 2, 0, 2 have the counts {1, 0, 2}, the total 3, and list 2, 0. The list
 * leads back to the counts that are not zero: there may be as many codes as persons. */
typedef struct {
  int64_t codes; /* of the criterion that has most of them; 1 without criteria */
  int64_t *counts; /* (codes,), zero between groups of rows */
  int64_t total, distinct; /* rows counted, and codes; zero likewise */
  int32_t *listed; /* the distinct codes, and room for one */
  int32_t *others; /* working memory of sort_codes */
  double *surplus; /* (nodes of the largest sensitive hierarchy,): working memory */
  double *deficit;
} mo_tally;

/* class_criteria.c: to count at most so many rows at a time; returns MO_DONE or MO_NO_MEMORY;
 * free_tally is called in either case. */
int allocate_tally(mo_tally *tally, const mo_criteria *criteria, int64_t rows);
void free_tally(mo_tally *tally);

/* Counts rows of a sensitive code. A code is listed when its count leaves zero; until then the
 * next one is written over it, so that no branch can be mispredicted. */
ALWAYS_INLINE void count_rows(mo_tally *tally, int64_t code, int64_t rows) {
  tally->listed[tally->distinct] = (int32_t)code;
  tally->distinct += tally->counts[code] == 0 && rows > 0;
  tally->counts[code] += rows;
  tally->total += rows;
}

/* Completes a tally whose counts alone were written; where codes are few, this is faster than
 * count_rows for every row. */
static inline void list_counts(mo_tally *tally, int64_t codes) {
  for (int64_t code = 0; code < codes; code++) {
    int64_t rows = tally->counts[code];
    tally->listed[tally->distinct] = (int32_t)code;
    tally->distinct += rows > 0;
    tally->total += rows;
  }
}

/* class_criteria.c: whether the rows counted satisfy criterion j; may sort the list. */
int tally_satisfies(mo_tally *tally, const mo_criteria *criteria, int64_t j);

/* Empties a tally of which the first distinct codes of the list may have been counted. */
static inline void forget(mo_tally *tally, int64_t distinct) {
  for (int64_t i = 0; i < distinct; i++) tally->counts[tally->listed[i]] = 0;
  tally->total = tally->distinct = 0;
}

/* tally_satisfies of a tally that is empty afterwards. */
static inline int counted_satisfy(mo_tally *tally, const mo_criteria *criteria, int64_t j) {
  int holds = tally_satisfies(tally, criteria, j);
  forget(tally, tally->distinct);
  return holds;
}

/* near_values.c */
void sort_codes(mo_tally *tally);
int is_spread(int64_t most, int64_t counted, double level);
int spread_satisfies(mo_tally *tally, const mo_criteria *criteria, int64_t j);

/* class_criteria.c: the same of counts (codes of the criterion,) in a table; tally: for its
 * working memory. */
int counts_satisfy(const int64_t *counts, const mo_criteria *criteria, int64_t j,
                   const mo_tally *tally);

/* The same for Python: 1 or 0, or MO_NO_MEMORY. */
MO_API int mo_satisfies(const int64_t *counts, const mo_criteria *criteria, int64_t j);

/* classes.c: class i is the rows index[starts[i]] to index[starts[i + 1]], the last one ends with
 * index. Codes are unsigned, of code_bytes 1, 2 or 4, or int64, of 8. */
MO_API void mo_extents(const void *codes, int64_t code_bytes, const int32_t *index, int64_t rows,
                       const int64_t *starts, int64_t classes, int64_t *low, int64_t *high);
MO_API int mo_extents_of_columns(const void *codes, int64_t code_bytes, int64_t columns,
                                 int64_t all_rows, const int32_t *index, int64_t rows,
                                 const int64_t *starts, int64_t classes, void *low, void *high);
MO_API int mo_distinct_per_class(const void *codes, int64_t code_bytes, int64_t size,
                                 const int32_t *index, int64_t rows, const int64_t *starts,
                                 int64_t classes, uint32_t *members, int64_t *ends);
/* classes.c: number[i] becomes the number, from 0, of the pair low[i], high[i] among those that
 * occur, in order; codes are below size. table (size * size,) is zero, and numbers the pairs that
 * occur from 1 afterwards. */
MO_API int mo_number_pairs(const void *low, const void *high, int64_t code_bytes, int64_t classes,
                           int64_t size, int32_t *table, int32_t *number);

/* classes.c: order (classes,) sorts the classes by their labels, the first column before the
 * others; first (classes,) is 1 where one begins that differs from the one before. Labels are
 * unsigned, of label_bytes (columns,) 1, 2 or 4. */
MO_API int mo_sort_classes(const void *const *labels, const int64_t *label_bytes, int64_t columns,
                           int64_t classes, int32_t *order, uint8_t *first);
MO_API void mo_arrange_classes(const int32_t *index, int64_t rows, const int64_t *starts,
                               int64_t classes, const int32_t *order, int32_t *arranged);
/* Repeats values[order[i]], unsigned of 1, 2 or 4 bytes, sizes[i] times. repeated has room for 8
 * bytes more than that. */
MO_API void mo_repeat(const void *values, int64_t bytes, const int32_t *order, const int64_t *sizes,
                      int64_t classes, void *repeated);
MO_API void mo_shuffle_classes(int32_t *index, int64_t rows, const int64_t *starts, int64_t classes,
                               const uint32_t *random);

/* A tree of cuts: rows whose place in the column of a node is at most its limit go to the left.
 * leaf is negative at nodes that are none. */
typedef struct {
  int64_t nodes;
  const int64_t *column, *limit, *left, *right, *leaf; /* (nodes,) each */
} mo_routes;

/* classes.c: the leaf of each row, unsigned of leaf_bytes 1, 2 or 4, by places (columns, rows),
 * which are of place_bytes 1, 2 or 4. */
MO_API int mo_route_rows(const void *places, int64_t place_bytes, int64_t rows,
                         const mo_routes *routes, void *found, int64_t leaf_bytes);

/* lookup.c: count values, unsigned or signed, of width 1, 2, 4 or 8 bytes, whose distances from the
 * least are below size. An entry of a table stands for each distance, the one behind these for
 * missing values: those whose bit in valid, from bit first on, is 0. valid may be NULL. */
MO_API int mo_mark_values(const void *values, int64_t width, int64_t count, const uint8_t *valid,
                          int64_t first, uint64_t least, uint64_t size, uint8_t *occurs);
MO_API int mo_tally_values(const void *values, int64_t width, int64_t count, const uint8_t *valid,
                           int64_t first, uint64_t least, uint64_t size, int64_t *rows);
MO_API int mo_look_up(const void *values, int64_t width, int64_t count, const uint8_t *valid,
                      int64_t first, uint64_t least, uint64_t size, const void *table,
                      int64_t bytes, void *found);

/* lookup.c: adds to rows (leaves, size) how often each leaf, of leaf_bytes 1, 2 or 4, is beside
 * each code. */
MO_API int mo_count_pairs(const void *leaf, int64_t leaf_bytes, const int32_t *codes, int64_t count,
                          int64_t leaves, int64_t size, int64_t *rows);

/* counting.c: words (wide, n) are packed combinations; the *distinct ones among them are written
 * to known (wide, n), and their rows to total (n,). */
MO_API int mo_recode(const uint64_t *words, int64_t wide, int64_t n, const int64_t *rows,
                     const uint64_t *places, int64_t columns, const uint64_t *tables,
                     const int64_t *first, uint64_t *known, int64_t *total, int64_t *distinct);
MO_API int mo_group_by_bits(const uint64_t *words, int64_t wide, int64_t n, const uint64_t *keys,
                            int32_t *index, int64_t *starts, int64_t *groups);

/* label_pairs.c: marks (labels, values) the pair labels[i], codes[source[i]] for each of the rows.
 * codes (source_rows,) are unsigned of code_bytes 1 or 2, or int32. */
MO_API int mo_mark_pairs(const int32_t *labels, int64_t label_count, const int32_t *source,
                         int64_t rows, const void *codes, int64_t code_bytes, int64_t source_rows,
                         int64_t value_count, uint8_t *marks);

/* class_criteria.c: group i is the combinations index[starts[i]] to index[starts[i + 1]], the
 * last one ends with index; sensitive (sensitive columns, combinations). */
MO_API int mo_groups_satisfy(const int32_t *index, int64_t length, const int64_t *starts,
                             int64_t groups, const int32_t *sensitive, int64_t combinations,
                             const int64_t *rows, const mo_criteria *criteria, uint8_t *holds);

/* Packed combinations of codes; the quasi-identifier comes first, then sensitive columns. */
typedef struct {
  int64_t count;
  int64_t wide; /* words of a combination */
  int64_t columns;
  uint64_t *words; /* (wide, count) */
  int64_t *rows; /* (count,) */
  const int64_t *word; /* (columns,) */
  const uint64_t *shift; /* (columns,) */
  const uint64_t *mask; /* (columns,) */
} mo_combinations;

/* The hierarchies of all attributes, their nodes numbered through. */
typedef struct {
  int64_t attributes;
  int64_t nodes;
  const int64_t *first; /* (attributes + 1,): the codes of attribute a start at first[a] */
  const int32_t *attribute; /* (nodes,) */
  const int64_t *child_first; /* (nodes + 1,) */
  const int32_t *children;
  const int64_t *member_first; /* (nodes,): the codes under a node are members[first:stop] */
  const int64_t *member_stop; /* (nodes,) */
  const int32_t *members; /* (codes,) */
  const double *gain; /* (nodes,): information gain of specializing the node */
} mo_forest;

/* top_down.c: specializes from cut (codes,), the node of each code, which it changes; permutes
 * the combinations. Writes the nodes specialized to steps (nodes,), their number, and that of the
 * classes: 0 where a class of the start cut breaks a criterion. */
MO_API int mo_specialize(const mo_combinations *combinations, const mo_forest *forest,
                         const mo_criteria *criteria, int32_t *cut, int32_t *steps,
                         int64_t *step_count, int64_t *class_count);
MO_API void mo_rows_of_part(const int64_t *rows, int64_t count, int64_t part, int64_t parts,
                            uint64_t seed, int64_t *found);

#endif
