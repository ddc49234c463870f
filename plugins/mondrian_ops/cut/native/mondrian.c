/* The cutting of all rows by threads, and the functions that Python calls. */
#include "mondrian.h"

#include <pthread.h>
#include <stdlib.h>

#include "splitting.h"

/* Cuts the nodes that are small enough for groups to the end, and searches their classes locally.
 */
static int finish_nodes(node whole, uint8_t *class_starts, workspace *work) {
  for (int64_t start = 0, stop; start < whole.count && !stopped(); start = stop) {
    stop = next_class_start(class_starts, start, whole.count);
    if (stop - start > work->policy.group_rows) continue;
    node here = node_slice(whole, start, stop, work->layout);
    cut_down(here, 0, class_starts + start, work);
    if (local_search(here, class_starts + start, work)) return MO_NO_MEMORY;
  }
  return MO_DONE;
}

/* Cuts a block to the end. */
static int finish_block(node whole, uint8_t *class_starts, workspace *work) {
  cut_down(whole, work->policy.group_rows, class_starts, work);
  return work->policy.group_rows > 0 ? finish_nodes(whole, class_starts, work) : MO_DONE;
}

/* Whether small nodes are cut in place: all attributes are narrow already. Else they are coded
 * anew, and their rows stay where they were. */
static int cuts_in_place(const layout *of, const mo_policy *policy) {
  return of->narrow == of->attributes && !of->persons && policy->group_rows == 0;
}

/* Cuts a node of at most BLOCK rows to the end. */
static int finish_node(node here, int32_t *index, uint8_t *class_starts, workspace *work,
                       blocks *own) {
  const layout *of = work->layout;
  if (cuts_in_place(of, &work->policy)) {
    int status = finish_block(here, class_starts, work);
    write_numbers(here, of, index);
    return status;
  }
  if (work->policy.group_rows > 0 && sort_by_all_codes(here, work)) return MO_NO_MEMORY;
  fill_block(&own->block, here, work);
  int status =
      finish_block((node){.rows = own->block.rows, .count = here.count}, class_starts, &own->work);
  write_block_numbers(here, of, &own->block, index);
  return status;
}

/* Nodes that threads take by turns. No two share a row. */
typedef struct {
  packed_rows packed; /* each thread cuts them with a workspace of its own */
  const mo_criteria *criteria;
  const mo_policy *policy;
  int32_t *index;
  uint8_t *class_starts;
  node *waiting;
  int64_t count; /* nodes that wait */
  int64_t taken; /* nodes that threads work on, whose sides may still come */
  int status;
  pthread_mutex_t lock;
  pthread_cond_t left;
} queue;

/* Takes the next node; returns 0 after the last one, after an error, or once it is stopped. */
static int take(queue *nodes, node *next) {
  pthread_mutex_lock(&nodes->lock);
  while (nodes->count == 0 && nodes->taken > 0) pthread_cond_wait(&nodes->left, &nodes->lock);
  int found = nodes->count > 0 && nodes->status == MO_DONE && !stopped();
  if (found) *next = nodes->waiting[--nodes->count];
  nodes->taken += found;
  pthread_mutex_unlock(&nodes->lock);
  return found;
}

/* Ends the work on a node: queues the two sides of its cut, if it has one (middle -1: none). */
static void leave(queue *nodes, node here, int64_t middle, int status) {
  const layout *of = &nodes->packed.packed.of;
  pthread_mutex_lock(&nodes->lock);
  if (middle >= 0)
    nodes->count = 1 + push_sides(nodes->waiting, nodes->count - 1, node_slice(here, 0, middle, of),
                                  node_slice(here, middle, here.count, of));
  if (status != MO_DONE) nodes->status = status;
  nodes->taken--;
  pthread_cond_broadcast(&nodes->left);
  pthread_mutex_unlock(&nodes->lock);
}

/* Cuts a node of more than BLOCK rows once (*middle: the rows of its first side, else -1), a
 * smaller one to the end. */
static int cut_some(queue *nodes, node here, int64_t *middle, workspace *work, blocks *small) {
  const layout *of = work->layout;
  int64_t start = (here.rows - nodes->packed.whole.rows) / of->stride;
  int can_be_cut = here.count >= 2 * work->criteria->k;
  *middle = -1;
  if (can_be_cut && here.count <= BLOCK)
    return finish_node(here, nodes->index + start, nodes->class_starts + start, work, small);
  if (can_be_cut) *middle = middle_of(here, work);
  if (*middle >= 0) return MO_DONE;
  nodes->class_starts[start] = 1;
  write_numbers(here, of, nodes->index + start);
  return MO_DONE;
}

/* The loop of a thread, with working memory of its own; without memory it takes no node. */
static void *work_off(void *argument) {
  queue *nodes = argument;
  packed_rows own = nodes->packed;
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
  close_workspace(&own.work);
  return NULL;
}

/* Cuts the packed rows to the end in at most cores threads. */
static int cut_all(queue *nodes, int64_t cores) {
  nodes->waiting[nodes->count++] = nodes->packed.whole;
  pthread_mutex_init(&nodes->lock, NULL);
  pthread_cond_init(&nodes->left, NULL);
  run_threads(work_off, nodes, cores);
  pthread_cond_destroy(&nodes->left);
  pthread_mutex_destroy(&nodes->lock);
  return nodes->count > 0 ? MO_NO_MEMORY : nodes->status; /* no thread had memory to take them */
}

int mo_classes(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
               int64_t cores, int32_t *index, uint8_t *class_starts, mo_class_extents *extents) {
  int64_t large = rows->rows / BLOCK; /* the most nodes of more than BLOCK rows that share no row */
  queue nodes = {
      .criteria = criteria, .policy = policy, .index = index, .class_starts = class_starts};
  cores = cores < large + 1 ? cores : large + 1;
  nodes.waiting = zeros(2 * large + 1, sizeof *nodes.waiting); /* both sides of each, or the root */
  int status = pack_whole(&nodes.packed, rows, cores);
  if (status == MO_DONE) status = nodes.waiting ? cut_all(&nodes, cores) : MO_NO_MEMORY;
  if (extents && status == MO_DONE && cuts_in_place(&nodes.packed.packed.of, policy) && !stopped())
    write_extents(nodes.packed.whole, &nodes.packed.packed.of, class_starts, extents);
  close_table(&nodes.packed.packed);
  free(nodes.waiting);
  return status;
}

/* Ordered cuts only: a condition compares with a value, and cannot express a group. */
void mo_cut(mo_tree *tree, int64_t start, int64_t stop, int64_t *attribute, int64_t *code) {
  workspace *work = &tree->rows.work;
  node here = node_slice(tree->rows.whole, start, stop, &tree->rows.packed.of);
  *attribute = -1;
  *code = 0;
  if (here.count < 2 * work->criteria->k) return; /* fill_group needs k other rows */
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

int64_t mo_split(mo_tree *tree, int64_t start, int64_t stop, int64_t attribute, int64_t code) {
  node here = node_slice(tree->rows.whole, start, stop, &tree->rows.packed.of);
  return start + split_rows(here, (cut){(int32_t)attribute, 0, code}, &tree->rows.work);
}

int mo_loss(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
            const int32_t *index, const int64_t *starts, int64_t classes, double *loss) {
  packed_rows from;
  int status = open_packed_rows(&from, rows, criteria, policy);
  size_t stride = (size_t)from.packed.of.stride;
  *loss = 0.0;
  for (int64_t c = 0; status == MO_DONE && c < classes && !stopped(); c++) {
    int64_t stop = c + 1 < classes ? starts[c + 1] : rows->rows;
    node class = {.rows = from.work.others, .count = stop - starts[c]};
    for (int64_t i = 0; i < class.count; i++)
      memcpy(class.rows + (size_t)i * stride,
             from.packed.rows + (size_t)index[starts[c] + i] * stride, stride);
    *loss += loss_of(class, &from.work);
  }
  close_packed_rows(&from);
  return status;
}
