/* What the files of the cutting share: records, nodes, working memory.
 *
 * A row is a record: its codes, each in as many bytes as its column needs, its sensitive codes,
 * and its number. The rows of a node lie side by side, and a cut moves them, so every pass over a
 * node is sequential. */
#ifndef MONDRIAN_OPS_CUTTING_H
#define MONDRIAN_OPS_CUTTING_H

#include <stddef.h>
#include <stdint.h>

#include "kernels.h"
#include "near_values.h"

enum {
  WORD_BITS = 64,        /* rows or codes for which a word has a bit each */
  FEW = 16, /* codes that find_present looks up in a register */
  BLOCK = 1 << 15, /* rows of a block, so that its codes fit in 16 bits */
  SPARSE = 4, /* a node's codes are sparse when their range is more than so many times its rows */
  ASKED_CUTS = 64, /* the most cuts whose sides an MO_ASKED is asked about at once */
  MAX_WAITING = 70, /* the smaller side is cut first, so at most log2(rows) + 1 nodes wait */
};

typedef struct {
  int32_t offset, bytes;
  int64_t codes; /* all codes are below */
} field;

/* Which codes a record holds, and the loss of publishing them. Tables over codes are flat, as in
 * mo_rows. */
typedef struct {
  int32_t attributes, sensitive, persons;
  int32_t stride; /* bytes of a record, a multiple of 8 */
  int32_t few, narrow; /* attributes of at most FEW codes, of at most WORD_BITS codes; a record
                          begins with them, a byte each */
  int32_t number; /* offset of the row's number, an uint32_t */
  const field *column; /* (attributes + sensitive,) */
  const int64_t *kind, *first;
  const double *low, *high, *step, *span, *most, *present;
  const int32_t *higher; /* (codes,): the next code of the attribute with a higher step */
} layout;

/* The rows of a node. In a node of at most WORD_BITS rows, whose masks make_masks has made,
 * members has a bit for each row of the node: there a cut is an AND, a tally is a series of
 * popcounts, and no row moves. */
typedef struct {
  unsigned char *rows;
  int64_t count;
  uint64_t members; /* 0: all of rows */
} node;

/* Which rows of a node of at most WORD_BITS rows have at most the j-th distinct code of a column.
 */
typedef struct {
  int64_t distinct;
  int64_t value[WORD_BITS];
  uint64_t at_most[WORD_BITS];
} masks;

/* Splits the rows whose code of an attribute is low to high from the others; attribute -1: no
 * cut. */
typedef struct {
  int32_t attribute;
  int64_t low, high;
} cut;

/* A cut and its gain: how much less the rows lose after it. */
typedef struct {
  cut of;
  double gain;
} candidate;

/* The codes of an attribute in a class, and the loss per row. */
typedef struct {
  int64_t low, high, distinct;
  double loss;
} reach;

/* How cuts are chosen: greedily or, in nodes of at most rollout_rows, by looking ahead. */
typedef struct {
  int64_t greedy; /* a cut policy; it also finishes the subtrees that looking ahead compares */
  int64_t candidates; /* cuts of each attribute whose subtrees are compared */
  int64_t rollout_rows; /* 0: never look ahead */
  int64_t group_rows; /* nodes of at most so many rows may be cut by groups; at most rollout_rows */
  int64_t
      joined; /* how many classes are joined and cut anew, and how often for each class; 0: never */
} mo_policy;

/* Working memory for nodes of a layout, allocated once. Sizes in rows are for the largest node. */
typedef struct {
  const layout *layout;
  const mo_criteria *criteria;
  mo_policy policy;
  int64_t codes, most_codes; /* of an attribute; of any column */
  void *memory; /* of the arrays that follow */
  int64_t *histogram; /* (codes,), zero between uses */
  uint64_t *bits; /* (codes / 64,), likewise; of sensitive codes, too */
  uint64_t *with; /* (codes,), likewise: which rows of a node of at most WORD_BITS have a code */
  uint32_t *counts; /* (narrow attributes, WORD_BITS), likewise */
  int64_t *value; /* (codes,): distinct codes of a node in order */
  int64_t *below; /* (codes,): rows of the node at or below each */
  double *right; /* (codes,): loss per row of what lies above each */
  uint8_t *valid; /* (codes,): which cuts satisfy every criterion on both sides */
  unsigned char *others; /* (rows,) records: the right side of a cut while the left one is moved */
  uint32_t *order; /* (rows,): places in a node, by the codes of an attribute */
  double *score; /* (attributes,) */
  cut *best; /* (attributes,): the best cut of each; attribute -1 where there is none */
  int64_t *distinct; /* (attributes,) */
  uint8_t *known; /* (attributes,): what is known of the best cut */
  uint8_t *lacks; /* (attributes,): whether some values are missing, and others are not */
  uint64_t *present; /* (narrow attributes,), by their bytes in a record: bit v for code v */
  candidate *tried; /* (candidates,): the cuts that looking ahead compares */
  unsigned char *before; /* (rollout rows,) records: the node before a cut is tried */
  masks *masks; /* (attributes + sensitive,): of the node that make_masks was called with last */
  node *stack; /* (MAX_WAITING,): nodes that a rollout still has to cut */
  reach *reaches; /* (attributes,): of the group that fill_group fills */
  double *widening; /* (attributes + 1, group rows): the loss that a row adds to the group, by
                       attribute; last the sums */
  double *by_code; /* (few attributes, FEW): the same, of a row with a code */
  uint8_t *taken; /* (group rows,): which rows joined the group */
  int64_t *left_seen, *right_seen; /* (sensitive codes,): stamps */
  int64_t clock; /* the last stamp given out */
  int64_t asked_cuts; /* how many cuts an MO_ASKED is asked about at once */
  int64_t *asked_counts; /* (asked cuts + 1, 2, sensitive codes) */
  mo_tally left_tally,
      right_tally; /* of the sides of a cut, or of one group of rows; empty between uses */
  stretches near; /* of MO_NEAR only */
} workspace;

/* Rows start to stop of a node. */
static inline node node_slice(node here, int64_t start, int64_t stop, const layout *of) {
  return (node){.rows = here.rows + start * of->stride, .count = stop - start};
}

/* Put the sides of a cut on a stack of nodes, the smaller one on top; returns the new top. */
static inline int64_t push_sides(node *stack, int64_t top, node left, node right) {
  int small_left = left.count < right.count;
  stack[++top] = small_left ? right : left;
  stack[++top] = small_left ? left : right;
  return top;
}

/* Where the class or node that begins at start ends: where the next one starts, or after the last
 * row. */
static inline int64_t next_class_start(const uint8_t *class_starts, int64_t start, int64_t count) {
  int64_t stop = start + 1;
  while (stop < count && !class_starts[stop]) stop++;
  return stop;
}

/* Whether a greedy policy weighs losses; the others cut at medians. */
static inline int by_gain(int64_t greedy) { return greedy == MO_GAIN || greedy == MO_WIDEST_GAIN; }

/* workspace.c */
int open_workspace(workspace *work, const layout *of, int64_t codes, int64_t rows,
                   const mo_criteria *criteria, const mo_policy *policy);
void close_workspace(workspace *work);

/* threads.c */
void run_threads(void *(*work)(void *), void *shared, int64_t cores);

/* records.c */
typedef struct { /* a layout and its tables, and rows of it */
  layout of;
  field *column;
  int64_t *first;
  double *low, *high, *step;
  int32_t *higher;
  unsigned char *rows;
} table;

int pack_rows(table *into, const mo_rows *rows, int64_t cores);
int open_block(table *block, const layout *outer, int64_t rows);
void fill_block(table *block, node here, workspace *outer);
void close_table(table *closed);

/* validity.c */
int cut_satisfies(node here, cut tried, workspace *work);
int halves_satisfy(node here, int64_t middle, workspace *work);
void order_rows(node here, int32_t a, int64_t d, workspace *work);
void mark_valid(node here, int32_t a, int64_t d, workspace *work);

/* members.c */
int fits_word(node here, const workspace *work);
node make_masks(node here, workspace *work);
int64_t tally_members(node here, int32_t a, workspace *work);
reach reach_of_members(node here, int32_t a, const workspace *work);
uint64_t members_between(int32_t a, int64_t low, int64_t high, const workspace *work);
void count_members(uint64_t members, int64_t j, int64_t *counts, const workspace *work);
int members_satisfy_known(uint64_t members, workspace *work);

/* present_codes.c */
void find_present(node here, workspace *work);
int count_few(node here, field at, unsigned char *below, workspace *work);

/* cut_greedy.c */
int64_t split_rows(node here, cut by, workspace *work);
void split_node(node here, cut by, node *left, node *right, workspace *work);
int can_split_missing(node here, int32_t a, workspace *work);
double rate_attributes(node here, int64_t greedy, int groups, workspace *work);
int32_t best_attribute(const workspace *work);
cut greedy_cut(node here, int64_t greedy, int groups, double *loss, workspace *work);
double loss_of(node here, workspace *work);

/* group_filling.c */
int64_t fill_group(node here, int64_t middle, workspace *work);
int sort_by_all_codes(node here, workspace *work);

/* cut_lookahead.c */
int64_t apply_cut(node here, cut by, workspace *work);
cut chosen_cut(node here, workspace *work);

/* growing.c */
int64_t middle_of(node here, workspace *work);
void cut_down(node whole, int64_t floor, uint8_t *class_starts, workspace *work);

/* local_search.c */
int local_search(node here, uint8_t *class_starts, workspace *work);

#endif
