/* What the files of the cutting share: rows in records, nodes, working memory.
 *
 * A node is rows side by side; a cut moves them, so that every pass over a node is sequential. A
 * row is a record: its codes, each in as many bytes as its column needs, its sensitive codes, its
 * number. */
#ifndef MONDRIAN_OPS_CUTTING_H
#define MONDRIAN_OPS_CUTTING_H

#include <stddef.h>
#include <stdint.h>

#include "kernels.h"

enum {
  FEW = 64,        /* rows, or codes, that a word has a bit for */
  BLOCK = 1 << 15, /* rows of a block; its codes fit in 16 bits */
  SPARSE = 4, /* codes in the range of a node's, over its rows: from there on they are far apart */
  WAITING = 70, /* nodes that may wait: the smaller side is cut first, so log2(rows) + 1 do */
};

typedef struct {
  int32_t offset, bytes;
  int64_t codes; /* all are below */
} field;

/* Which codes a record holds, and what is lost by them. Tables over codes are flat, as in mo_rows.
 */
typedef struct {
  int32_t attributes, sensitive, persons;
  int32_t stride; /* bytes of a record, a multiple of 8 */
  int32_t few; /* attributes of at most FEW codes; these come first, a byte each */
  int32_t number; /* where its number lies, an uint32_t */
  const field *column; /* (attributes + sensitive,) */
  const int64_t *kind, *first;
  const double *low, *high, *step, *span, *domain, *present;
  const int32_t *higher; /* (codes,): the next code of the attribute with a higher step */
} layout;

/* Rows side by side or, of a node of at most FEW rows whose masks were made, the members among
 * them: there a cut is an AND, a tally a row of popcounts, and no row moves. */
typedef struct {
  unsigned char *rows;
  int64_t count;
  uint64_t members; /* 0: all of rows */
} node;

/* Which of a few rows have at most the j-th of their distinct codes of a column. */
typedef struct {
  int64_t distinct;
  int64_t value[FEW];
  uint64_t at_most[FEW];
} masks;

/* Rows whose code of an attribute is low to high, and the others; attribute -1: no cut. */
typedef struct {
  int32_t attribute;
  int64_t low, high;
} cut;

/* A cut that is compared with others, by how much less is lost by it. */
typedef struct {
  cut of;
  double fall;
} candidate;

/* What a class has of an attribute, and loses per row. */
typedef struct {
  int64_t low, high, distinct;
  double loss;
} reach;

/* How cuts are chosen: greedily, or, in nodes of at most rollout_rows, by looking ahead. */
typedef struct {
  int64_t greedy; /* also finishes the subtrees that are compared when looking ahead */
  int64_t candidates; /* cuts of each attribute whose subtrees are compared */
  int64_t rollout_rows; /* 0: never look ahead */
  int64_t group_rows; /* nodes of at most these may be cut by groups; never more than above */
  int64_t joined; /* classes in these whose rows are cut anew together, and how often; 0: none */
} mo_policy;

/* Working memory for nodes of a layout, allocated once. Sizes in rows are those of the largest
 * node. */
typedef struct {
  const layout *layout;
  const mo_criteria *criteria;
  mo_policy policy;
  int64_t *histogram; /* (codes,), zero between uses */
  uint64_t *bits; /* (codes / 64,), likewise, of the sensitive ones, too */
  uint64_t *with; /* (codes,), likewise: which of a few rows have a code */
  uint32_t *counts; /* (few attributes, FEW), likewise */
  int64_t *value; /* (codes,): distinct codes of a node in order */
  int64_t *below; /* (codes,): rows of the node at or below each */
  double *right; /* (codes,): loss per row of what lies above each */
  uint8_t *valid; /* (codes,): which cuts keep every criterion */
  unsigned char *others; /* (rows,) records: those that a cut does not part */
  uint32_t *order; /* (rows,): places in a node, by the codes of an attribute */
  double *score; /* (attributes,) */
  cut *best; /* (attributes,): of each the best cut; attribute -1 without one */
  int64_t *distinct; /* (attributes,) */
  uint8_t *checked; /* (attributes,) */
  candidate *tried; /* (candidates,): cuts that are compared by looking ahead */
  unsigned char *before; /* (rollout rows,) records: a node before any cut was tried */
  masks *masks; /* (attributes + sensitive,): of the node whose rows are members */
  node *stack; /* (WAITING,): nodes that a rollout has to cut */
  reach *reaches; /* (attributes,): of a group that is topped up */
  double *widening; /* (attributes + 1, group rows): loss that a row adds to each of it; the sums */
  uint8_t *taken; /* (group rows,): which rows came into it */
  int64_t *left_counts, *right_counts; /* (sensitive codes,) */
  int64_t *left_seen, *right_seen; /* (sensitive codes,): stamps */
  int64_t clock; /* the last stamp given out */
  double *surplus, *deficit; /* (nodes of a sensitive hierarchy,) */
} cutter;

/* Rows start to stop of a node whose rows lie side by side. */
static inline node part_of(node here, int64_t start, int64_t stop, const layout *of) {
  return (node){.rows = here.rows + start * of->stride, .count = stop - start};
}

/* Put the sides of a cut on a stack of nodes, the smaller one on top; returns the new top. */
static inline int64_t push_sides(node *stack, int64_t top, node left, node right) {
  int small_left = left.count < right.count;
  stack[++top] = small_left ? right : left;
  stack[++top] = small_left ? left : right;
  return top;
}

/* Where the class or node that begins at start ends: at the next mark, or with the rows. */
static inline int64_t next_mark(const uint8_t *marks, int64_t start, int64_t count) {
  int64_t stop = start + 1;
  while (stop < count && !marks[stop]) stop++;
  return stop;
}

/* cutter.c */
int open_cutter(cutter *work, const layout *of, int64_t codes, int64_t rows,
                const mo_criteria *criteria, const mo_policy *policy);
void close_cutter(cutter *work);

/* threads.c */
void together(void *(*work)(void *), void *shared, int64_t cores);

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
void fill_block(table *block, node here, cutter *outer);
void close_table(table *closed);

/* validity.c */
int cut_holds(node here, cut tried, cutter *work);
int halves_hold(node here, int64_t middle, cutter *work);
void order_rows(node here, int32_t a, int64_t d, cutter *work);
void mark_valid(node here, int32_t a, int64_t d, cutter *work);

/* members.c */
int is_few(node here, const cutter *work);
node masked(node here, cutter *work);
int64_t tally_members(node here, int32_t a, cutter *work);
uint64_t members_between(int32_t a, int64_t low, int64_t high, const cutter *work);
int members_hold(uint64_t members, cutter *work);
void cut_members(node here, uint8_t *marks, cutter *work);

/* greedy.c */
int64_t part_rows(node here, cut by, cutter *work);
void part(node here, cut by, node *left, node *right, cutter *work);
int parts_missing(node here, int32_t a, cutter *work);
double examine(node here, int64_t greedy, int groups, int32_t *missing, cutter *work);
cut decide(node here, int64_t greedy, int groups, double *loss, cutter *work);
double loss_of(node here, cutter *work);

/* grouping.c */
int64_t top_up(node here, int64_t middle, cutter *work);
int arrange_rows(node here, cutter *work);

/* lookahead.c */
int64_t apply_cut(node here, cut by, cutter *work);
cut chosen_cut(node here, cutter *work);

/* mondrian.c */
void cut_down(node whole, int64_t floor, uint8_t *marks, cutter *work);

/* local_search.c */
int exchange_rows(node here, uint8_t *marks, cutter *work);

#endif
