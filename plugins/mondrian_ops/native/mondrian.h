/* The cutting behind the C ABI. */
#ifndef MONDRIAN_OPS_MONDRIAN_H
#define MONDRIAN_OPS_MONDRIAN_H

#include "cutting.h"

/* Cut rows until no valid cut is left: index (rows,) their numbers class by class, marks (rows,),
 * all zero before, 1 where a class starts. The rows as a whole must satisfy the criteria. At most
 * cores threads work on them; however many do, the classes are the same. */
MO_API int mo_classes(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                      int64_t cores, int32_t *index, uint8_t *marks);

/* Loss of all classes together, in rows times attributes; index and starts (classes,) as found
 * before. */
MO_API int mo_loss(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                   const int32_t *index, const int64_t *starts, int64_t classes, double *loss);

/* A tree that is cut node by node: a node is places start to stop, and a cut moves its rows. What
 * it was opened with must stay where it is until it is closed. */
typedef struct mo_tree mo_tree;
MO_API int mo_open_tree(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                        mo_tree **opened);
MO_API void mo_close_tree(mo_tree *closed);

/* The ordered cut of a node by the policy: rows up to a code of an attribute are parted from the
 * others; attribute -1: the node is final, or cut by a group. */
MO_API void mo_cut(mo_tree *tree, int64_t start, int64_t stop, int64_t *attribute, int64_t *code);

/* Bring the rows of a node up to a code to the front; where the others start. */
MO_API int64_t mo_part(mo_tree *tree, int64_t start, int64_t stop, int64_t attribute, int64_t code);

/* DI-Mondrian (parts.c): the same with cuts into several parts at once. A node has several points
 * only where its parts have room times k rows on average. places: where a value lies in the range,
 * or in the order, of the whole dataset, from 0 to 1, instead of the ends of its interval. */
typedef struct {
  int64_t cut_points, room;
  int64_t sensitive_codes; /* of the column that has most */
} mo_multiway;
MO_API int mo_multiway_classes(const mo_rows *places, const mo_criteria *criteria,
                               const mo_multiway *multiway, int32_t *index, uint8_t *marks);
MO_API int mo_open_multiway_tree(const mo_rows *places, const mo_criteria *criteria,
                                 const mo_multiway *multiway, mo_tree **opened);

/* The attribute of a node's cut (-1: the node is final); at how many codes, which points (cut
 * points,) then begins with. */
MO_API void mo_cut_parts(mo_tree *tree, int64_t start, int64_t stop, int64_t *attribute,
                         int64_t *count, int64_t *points);

/* For the files of the cutting. */
typedef struct { /* rows of a job, packed, and the memory that they are cut with */
  table packed;
  node whole;
  cutter work;
} rows_of;

typedef struct { /* a small node, coded anew, and the memory that it is cut with */
  table block;
  cutter work;
} blocks;

typedef struct {
  int64_t most, room; /* cut points */
  int64_t *point;     /* (most,): which of the node's distinct codes; once decided: the codes */
  int64_t *counts;    /* (sensitive codes,), zero between uses */
  node *waiting; /* (rows / k + 1,): nodes to be cut; they share no row, and have k or more */
} parts;

struct mo_tree {
  rows_of rows;
  parts parts;
};

int open_rows_of(rows_of *opened, const mo_rows *rows, const mo_criteria *criteria,
                 const mo_policy *policy);
void close_rows_of(rows_of *closed);
int open_blocks(blocks *opened, const rows_of *from);
void close_blocks(blocks *closed);
void close_parts(parts *closed);
int64_t most_codes(const int64_t *first, int64_t attributes);
void write_numbers(node here, const layout *of, int32_t *numbers);
void write_block_numbers(node here, const layout *of, const table *block, int32_t *numbers);

#endif
