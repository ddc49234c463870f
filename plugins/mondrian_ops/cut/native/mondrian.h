/* Mondrian's cutting, behind the C ABI. */
#ifndef MONDRIAN_OPS_MONDRIAN_H
#define MONDRIAN_OPS_MONDRIAN_H

#include "cutting.h"

/* The least and the greatest code of each class in each attribute: low and high (attributes, most),
 * of which the first classes are written in each row. */
typedef struct {
  int64_t most, classes;
  uint8_t *low, *high;
} mo_class_extents;

/* Cut rows until no valid cut is left. Writes the rows' numbers class by class to index (rows,),
 * and 1 to class_starts (rows,), which must be zero, where a class starts. The rows as a whole
 * must satisfy the criteria. At most cores threads work; their number does not change the
 * classes. Writes extents, unless they are NULL, where the rows lie in the order of their classes
 * in the end, and there is room; else their classes stay 0. */
MO_API int mo_classes(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                      int64_t cores, int32_t *index, uint8_t *class_starts,
                      mo_class_extents *extents);

/* Loss of all classes together, in rows times attributes; index and starts (classes,) say which
 * rows a class has. */
MO_API int mo_loss(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                   const int32_t *index, const int64_t *starts, int64_t classes, double *loss);

/* A tree that is cut node by node: a node is places start to stop, and a cut moves its rows. The
 * tree points to what it was opened with until it is closed. */
typedef struct mo_tree mo_tree;
MO_API int mo_open_tree(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                        mo_tree **opened);
MO_API void mo_close_tree(mo_tree *closed);

/* The ordered cut of a node by the policy: it splits the rows up to a code of an attribute from
 * the others. Attribute -1: the node is final, or its cut is a group. */
MO_API void mo_cut(mo_tree *tree, int64_t start, int64_t stop, int64_t *attribute, int64_t *code);

/* Moves the rows of a node up to a code to the front; returns where the others start. */
MO_API int64_t mo_split(mo_tree *tree, int64_t start, int64_t stop, int64_t attribute,
                        int64_t code);

/* DI-Mondrian (di_mondrian.c): the same with cuts into several parts at once. A node is cut at
 * several points only where the parts have room times k rows on average. places: rows whose
 * tables low and high hold where a value lies in the range, or in the order, of the whole
 * dataset, from 0 to 1. */
typedef struct {
  int64_t cut_points, room;
  int64_t sensitive_codes; /* of the column that has most of them */
} mo_multiway;
MO_API int mo_multiway_classes(const mo_rows *places, const mo_criteria *criteria,
                               const mo_multiway *multiway, int32_t *index, uint8_t *class_starts);
MO_API int mo_open_multiway_tree(const mo_rows *places, const mo_criteria *criteria,
                                 const mo_multiway *multiway, mo_tree **opened);

/* The attribute of a node's cut (-1: the node is final), and the codes above which it is cut: the
 * first count of points (cut points,). */
MO_API void mo_multiway_cut(mo_tree *tree, int64_t start, int64_t stop, int64_t *attribute,
                            int64_t *count, int64_t *points);

/* Below: for the files of the cutting. */
typedef struct { /* the rows of a job, and the memory to cut them with */
  table packed;
  node whole;
  workspace work;
} packed_rows;

typedef struct { /* a small node, coded anew, and the memory to cut it with */
  table block;
  workspace work;
} blocks;

typedef struct {
  int64_t most, room; /* cut points */
  int64_t *point; /* (most,): places among the node's distinct codes; once the cut is chosen, the
                     codes */
  int64_t *counts; /* (sensitive codes,), zero between uses */
  node *waiting; /* (rows / k + 1,): nodes to cut; they share no row, and have k or more */
} parts;

struct mo_tree {
  packed_rows rows;
  parts parts;
};

/* packed_rows.c */
int pack_whole(packed_rows *opened, const mo_rows *rows, int64_t cores);
int open_work(packed_rows *packed, const mo_criteria *criteria, const mo_policy *policy);
int open_packed_rows(packed_rows *opened, const mo_rows *rows, const mo_criteria *criteria,
                     const mo_policy *policy);
void close_packed_rows(packed_rows *closed);
int open_blocks(blocks *opened, const packed_rows *from);
void close_blocks(blocks *closed);
void close_parts(parts *closed);
int64_t most_codes(const int64_t *first, int64_t attributes);
void write_numbers(node here, const layout *of, int32_t *numbers);
void write_block_numbers(node here, const layout *of, const table *block, int32_t *numbers);
void write_extents(node whole, const layout *of, const uint8_t *class_starts,
                   mo_class_extents *extents);

#endif
