/* Growing the tree of cuts, and what of it Python calls. */
#include "mondrian.h"

#include <pthread.h>
#include <stdlib.h>

#include "splitting.h"

/* The node's rows in the order of attribute a. */
static void sort_rows(node here, int32_t a, cutter *work) {
  size_t stride = (size_t)work->layout->stride;
  order_rows(here, a, tally(here, a, work), work);
  for (int64_t i = 0; i < here.count; i++)
    memcpy(work->others + (size_t)i * stride, here.rows + work->order[i] * stride, stride);
  memcpy(here.rows, work->others, (size_t)here.count * stride);
}

/* Relaxed partitioning (LeFevre et al. 2006, section 3.2): the rows of the first half, -1 without
 * one.
 *
 * Rows of the median value lie on either side of the cut, so both halves have k rows whenever the
 * node has 2k; the widest attribute whose halves keep every criterion is taken. Missing values are
 * parted from present ones first. */
static int64_t halve(node here, cutter *work) {
  int32_t attributes = work->layout->attributes, missing;
  for (int32_t a = 0; a < attributes; a++)
    if (parts_missing(here, a, work)) return part_rows(here, (cut){a, 0, 0}, work);
  examine(here, MO_RELAXED, 0, &missing, work);
  int64_t middle = here.count / 2;
  for (;;) {
    int32_t widest = -1;
    for (int32_t a = 0; a < attributes; a++)
      if (work->distinct[a] > 1 && (widest < 0 || work->score[a] > work->score[widest])) widest = a;
    if (widest < 0) return -1;
    sort_rows(here, widest, work);
    if (halves_hold(here, middle, work)) return middle;
    work->distinct[widest] = 0;
  }
}

/* How many rows the first side of a node's cut has; -1: the node is final. */
static int64_t middle_of(node here, cutter *work) {
  if (work->policy.greedy == MO_RELAXED) return halve(here, work);
  cut by = chosen_cut(here, work);
  return by.attribute < 0 ? -1 : apply_cut(here, by, work);
}

/* Whether a node is cut to the end without that the order of its rows, or their numbers, matter. */
static int by_members(node here, const cutter *work) {
  const mo_policy *policy = &work->policy;
  return is_few(here, work) && policy->greedy != MO_RELAXED && policy->group_rows == 0;
}

/* Cut until nodes have at most floor rows or no cut is left; mark where such a node starts. */
void cut_down(node whole, int64_t floor, uint8_t *marks, cutter *work) {
  int64_t stride = work->layout->stride, k = work->criteria->k;
  node waiting[WAITING];
  int64_t top = 0;
  waiting[0] = whole;
  while (top >= 0) {
    node here = waiting[top--];
    if (here.count > floor && by_members(here, work)) {
      cut_members(here, marks + (here.rows - whole.rows) / stride, work);
      continue;
    }
    int64_t middle = here.count > floor && here.count >= 2 * k ? middle_of(here, work) : -1;
    if (middle < 0) {
      marks[(here.rows - whole.rows) / stride] = 1;
      continue;
    }
    top = push_sides(waiting, top, part_of(here, 0, middle, work->layout),
                     part_of(here, middle, here.count, work->layout));
  }
}

/* Cut nodes that are small enough for groups to the end, and let their rows change classes. */
static int finish_nodes(node whole, uint8_t *marks, cutter *work) {
  for (int64_t start = 0, stop; start < whole.count; start = stop) {
    stop = next_mark(marks, start, whole.count);
    if (stop - start > work->policy.group_rows) continue;
    node here = part_of(whole, start, stop, work->layout);
    cut_down(here, 0, marks + start, work);
    if (exchange_rows(here, marks + start, work)) return MO_NO_MEMORY;
  }
  return MO_DONE;
}

/* Cut a block to the end. */
static int finish_block(node whole, uint8_t *marks, cutter *work) {
  cut_down(whole, work->policy.group_rows, marks, work);
  return work->policy.group_rows > 0 ? finish_nodes(whole, marks, work) : MO_DONE;
}

int64_t most_codes(const int64_t *first, int64_t attributes) {
  int64_t most = 1;
  for (int64_t a = 0; a < attributes; a++)
    most = first[a + 1] - first[a] > most ? first[a + 1] - first[a] : most;
  return most;
}

/* Pack rows that nothing is cut with yet. */
static int pack(rows_of *opened, const mo_rows *rows, int64_t cores) {
  memset(opened, 0, sizeof *opened);
  if (pack_rows(&opened->packed, rows, cores)) return MO_NO_MEMORY;
  opened->whole = (node){.rows = opened->packed.rows, .count = rows->rows};
  return MO_DONE;
}

static int open_work(rows_of *packed, const mo_criteria *criteria, const mo_policy *policy) {
  const layout *of = &packed->packed.of;
  return open_cutter(&packed->work, of, most_codes(of->first, of->attributes), packed->whole.count,
                     criteria, policy);
}

int open_rows_of(rows_of *opened, const mo_rows *rows, const mo_criteria *criteria,
                 const mo_policy *policy) {
  if (pack(opened, rows, 1)) return MO_NO_MEMORY;
  return open_work(opened, criteria, policy);
}

void close_rows_of(rows_of *closed) {
  close_cutter(&closed->work);
  close_table(&closed->packed);
}

int open_blocks(blocks *opened, const rows_of *from) {
  int64_t rows = from->whole.count < BLOCK ? from->whole.count : BLOCK;
  int64_t codes = most_codes(from->packed.of.first, from->packed.of.attributes);
  codes = (codes < rows ? codes : rows) + 1;
  memset(opened, 0, sizeof *opened);
  if (open_block(&opened->block, &from->packed.of, rows)) return MO_NO_MEMORY;
  return open_cutter(&opened->work, &opened->block.of, codes, rows, from->work.criteria,
                     &from->work.policy);
}

void close_blocks(blocks *closed) {
  close_cutter(&closed->work);
  close_table(&closed->block);
}

/* Write the numbers of a node's rows. */
void write_numbers(node here, const layout *of, int32_t *numbers) {
  for (int64_t i = 0; i < here.count; i++)
    numbers[i] = (int32_t)number_of(here.rows + i * of->stride, of);
}

/* Write the numbers of a node's rows in the order that its block has them in. */
void write_block_numbers(node here, const layout *of, const table *block, int32_t *numbers) {
  for (int64_t i = 0; i < here.count; i++) {
    int64_t place = number_of(block->rows + i * block->of.stride, &block->of);
    numbers[i] = (int32_t)number_of(here.rows + place * of->stride, of);
  }
}

/* Cut a node of at most a block's rows to the end: by its own numbers, but where it lies if codes
 * are few already. */
static int finish_node(node here, int32_t *index, uint8_t *marks, cutter *work, blocks *own) {
  const layout *of = work->layout;
  if (of->few == of->attributes && !of->persons && work->policy.group_rows == 0) {
    int status = finish_block(here, marks, work);
    write_numbers(here, of, index);
    return status;
  }
  if (work->policy.group_rows > 0 && arrange_rows(here, work)) return MO_NO_MEMORY;
  fill_block(&own->block, here, work);
  int status =
      finish_block((node){.rows = own->block.rows, .count = here.count}, marks, &own->work);
  write_block_numbers(here, of, &own->block, index);
  return status;
}

/* Nodes that threads take in turn: no row and no mark is in two of them. */
typedef struct {
  rows_of packed; /* nothing is cut with these themselves */
  const mo_criteria *criteria;
  const mo_policy *policy;
  int32_t *index;
  uint8_t *marks;
  node *waiting;
  int64_t count; /* of these */
  int64_t taken; /* nodes that threads are at, and may leave sides of */
  int status;
  pthread_mutex_t lock;
  pthread_cond_t left;
} queue;

/* The next node; 0 after the last one, or after an error. */
static int take(queue *nodes, node *next) {
  pthread_mutex_lock(&nodes->lock);
  while (nodes->count == 0 && nodes->taken > 0) pthread_cond_wait(&nodes->left, &nodes->lock);
  int found = nodes->count > 0 && nodes->status == MO_DONE;
  if (found) *next = nodes->waiting[--nodes->count];
  nodes->taken += found;
  pthread_mutex_unlock(&nodes->lock);
  return found;
}

/* Be done with a node: leave the sides of its cut, if it has one (middle -1: none). */
static void leave(queue *nodes, node here, int64_t middle, int status) {
  const layout *of = &nodes->packed.packed.of;
  pthread_mutex_lock(&nodes->lock);
  if (middle >= 0)
    nodes->count = 1 + push_sides(nodes->waiting, nodes->count - 1, part_of(here, 0, middle, of),
                                  part_of(here, middle, here.count, of));
  if (status != MO_DONE) nodes->status = status;
  nodes->taken--;
  pthread_cond_broadcast(&nodes->left);
  pthread_mutex_unlock(&nodes->lock);
}

/* Cut a node once if it is larger than a block (*middle: the rows of its first side, else -1), and
 * others to the end. */
static int cut_some(queue *nodes, node here, int64_t *middle, cutter *work, blocks *small) {
  const layout *of = work->layout;
  int64_t start = (here.rows - nodes->packed.whole.rows) / of->stride;
  int can_be_cut = here.count >= 2 * work->criteria->k;
  *middle = -1;
  if (can_be_cut && here.count <= BLOCK)
    return finish_node(here, nodes->index + start, nodes->marks + start, work, small);
  if (can_be_cut) *middle = middle_of(here, work);
  if (*middle >= 0) return MO_DONE;
  nodes->marks[start] = 1;
  write_numbers(here, of, nodes->index + start);
  return MO_DONE;
}

/* Take nodes until none is left: with working memory of one's own, or not at all. */
static void *work_off(void *argument) {
  queue *nodes = argument;
  rows_of own = nodes->packed;
  blocks small = {0};
  node here;
  int status = open_work(&own, nodes->criteria, nodes->policy);
  if (status == MO_DONE) status = open_blocks(&small, &own);
  while (status == MO_DONE && take(nodes, &here)) {
    int64_t middle;
    status = cut_some(nodes, here, &middle, &own.work, &small);
    leave(nodes, here, middle, status);
  }
  close_blocks(&small);
  close_cutter(&own.work);
  return NULL;
}

/* Cut the packed rows to the end by at most cores threads. */
static int cut_all(queue *nodes, int64_t cores) {
  nodes->waiting[nodes->count++] = nodes->packed.whole;
  pthread_mutex_init(&nodes->lock, NULL);
  pthread_cond_init(&nodes->left, NULL);
  together(work_off, nodes, cores);
  pthread_cond_destroy(&nodes->left);
  pthread_mutex_destroy(&nodes->lock);
  return nodes->count > 0 ? MO_NO_MEMORY : nodes->status; /* nobody could take them */
}

int mo_classes(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
               int64_t cores, int32_t *index, uint8_t *marks) {
  int64_t large = rows->rows / BLOCK; /* nodes larger than a block that share no row, at most */
  queue nodes = {.criteria = criteria, .policy = policy, .index = index, .marks = marks};
  cores = cores < large + 1 ? cores : large + 1;
  nodes.waiting = zeros(2 * large + 1, sizeof *nodes.waiting); /* both sides of each, or all rows */
  int status = pack(&nodes.packed, rows, cores);
  if (status == MO_DONE) status = nodes.waiting ? cut_all(&nodes, cores) : MO_NO_MEMORY;
  close_table(&nodes.packed.packed);
  free(nodes.waiting);
  return status;
}

int mo_open_tree(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                 mo_tree **opened) {
  *opened = calloc(1, sizeof **opened);
  if (!*opened) return MO_NO_MEMORY;
  int status = open_rows_of(&(*opened)->rows, rows, criteria, policy);
  if (status == MO_DONE && policy->group_rows > 0)
    status = arrange_rows((*opened)->rows.whole, &(*opened)->rows.work);
  if (status == MO_DONE) return status;
  mo_close_tree(*opened);
  *opened = NULL;
  return status;
}

void mo_close_tree(mo_tree *closed) {
  if (!closed) return;
  close_parts(&closed->parts);
  close_rows_of(&closed->rows);
  free(closed);
}

/* An ordered cut: no comparison with a value tells a group from the others. */
void mo_cut(mo_tree *tree, int64_t start, int64_t stop, int64_t *attribute, int64_t *code) {
  cutter *work = &tree->rows.work;
  node here = part_of(tree->rows.whole, start, stop, &tree->rows.packed.of);
  *attribute = -1;
  *code = 0;
  if (here.count < 2 * work->criteria->k) return; /* a group could not be topped up */
  cut by = chosen_cut(here, work);
  if (by.attribute < 0 || by.low > 0) return;
  field at = tree->rows.packed.of.column[by.attribute];
  int64_t below = 0;
  for (int64_t i = 0; i < here.count; i++)
    below += code_of(here.rows + i * tree->rows.packed.of.stride, at) <= by.high;
  if (below < work->criteria->k) return;
  *attribute = by.attribute;
  *code = by.high;
}

int64_t mo_part(mo_tree *tree, int64_t start, int64_t stop, int64_t attribute, int64_t code) {
  node here = part_of(tree->rows.whole, start, stop, &tree->rows.packed.of);
  return start + part_rows(here, (cut){(int32_t)attribute, 0, code}, &tree->rows.work);
}

int mo_loss(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
            const int32_t *index, const int64_t *starts, int64_t classes, double *loss) {
  rows_of from;
  int status = open_rows_of(&from, rows, criteria, policy);
  size_t stride = (size_t)from.packed.of.stride;
  *loss = 0.0;
  for (int64_t c = 0; status == MO_DONE && c < classes; c++) {
    int64_t stop = c + 1 < classes ? starts[c + 1] : rows->rows;
    node class = {.rows = from.work.others, .count = stop - starts[c]};
    for (int64_t i = 0; i < class.count; i++)
      memcpy(class.rows + (size_t)i * stride,
             from.packed.rows + (size_t)index[starts[c] + i] * stride, stride);
    *loss += loss_of(class, &from.work);
  }
  close_rows_of(&from);
  return status;
}
