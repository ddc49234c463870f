/* The rows of a job, packed, with the memory to cut them; small nodes of them, coded anew; and the
 * tree that is cut node by node. */
#include <assert.h>
#include <string.h>

#include "mondrian.h"
#include "splitting.h"

int64_t most_codes(const int64_t *first, int64_t attributes) {
  int64_t most = 1;
  for (int64_t a = 0; a < attributes; a++)
    most = first[a + 1] - first[a] > most ? first[a + 1] - first[a] : most;
  return most;
}

/* Packs rows, without the memory to cut them. */
int pack_whole(packed_rows *opened, const mo_rows *rows, int64_t cores) {
  memset(opened, 0, sizeof *opened);
  if (pack_rows(&opened->packed, rows, cores)) return MO_NO_MEMORY;
  opened->whole = (node){.rows = opened->packed.rows, .count = rows->rows};
  return MO_DONE;
}

int open_work(packed_rows *packed, const mo_criteria *criteria, const mo_policy *policy) {
  const layout *of = &packed->packed.of;
  return open_workspace(&packed->work, of, most_codes(of->first, of->attributes),
                        packed->whole.count, criteria, policy);
}

int open_packed_rows(packed_rows *opened, const mo_rows *rows, const mo_criteria *criteria,
                     const mo_policy *policy) {
  if (pack_whole(opened, rows, 1)) return MO_NO_MEMORY;
  return open_work(opened, criteria, policy);
}

void close_packed_rows(packed_rows *closed) {
  close_workspace(&closed->work);
  close_table(&closed->packed);
}

int open_blocks(blocks *opened, const packed_rows *from) {
  int64_t rows = from->whole.count < BLOCK ? from->whole.count : BLOCK;
  int64_t codes = most_codes(from->packed.of.first, from->packed.of.attributes);
  codes = (codes < rows ? codes : rows) + 1;
  memset(opened, 0, sizeof *opened);
  if (open_block(&opened->block, &from->packed.of, rows)) return MO_NO_MEMORY;
  return open_workspace(&opened->work, &opened->block.of, codes, rows, from->work.criteria,
                        &from->work.policy);
}

void close_blocks(blocks *closed) {
  close_workspace(&closed->work);
  close_table(&closed->block);
}

void write_numbers(node here, const layout *of, int32_t *numbers) {
  for (int64_t i = 0; i < here.count; i++)
    numbers[i] = (int32_t)number_of(here.rows + i * of->stride, of);
}

/* Writes the numbers of a node's rows in the order of its block. */
void write_block_numbers(node here, const layout *of, const table *block, int32_t *numbers) {
  for (int64_t i = 0; i < here.count; i++) {
    int64_t place = number_of(block->rows + i * block->of.stride, &block->of);
    numbers[i] = (int32_t)number_of(here.rows + place * of->stride, of);
  }
}

/* Of the attributes that a record begins with, so many are compared at once. Compilers do not see
 * by themselves that bytes of a record can be. */
typedef uint8_t lanes __attribute__((vector_size(16)));
enum { LANES = 16 };

static lanes lanes_of(const unsigned char *record) {
  lanes read;
  memcpy(&read, record, sizeof read);
  return read;
}

/* Writes the extents of the attributes in bytes first to first + LANES - 1 of a record; returns how
 * many classes there are. What is compared of a record behind its narrow attributes is not written.
 */
static int64_t write_some(node whole, const layout *of, int32_t first, const uint8_t *class_starts,
                          const mo_class_extents *extents) {
  uint8_t *low[LANES], *high[LANES];
  int32_t lane[LANES], count = 0;
  for (int32_t a = 0; a < of->attributes; a++) {
    int32_t at = of->column[a].offset - first;
    if (at < 0 || at >= LANES) continue;
    low[count] = extents->low + a * extents->most;
    high[count] = extents->high + a * extents->most;
    lane[count++] = at;
  }
  size_t stride = (size_t)of->stride;
  const unsigned char *record = whole.rows + first;
  lanes least = lanes_of(record), greatest = least;
  int64_t classes = 0, most = extents->most;
  for (int64_t i = 1; i <= whole.count; i++) {
    if (i < whole.count && !class_starts[i]) {
      lanes row = lanes_of(record += stride);
      least ^= (row ^ least) & (lanes)(row < least);
      greatest ^= (row ^ greatest) & (lanes)(row > greatest);
      continue;
    }
    if (classes == most) return classes + 1;
    for (int32_t j = 0; j < count; j++) {
      low[j][classes] = least[lane[j]];
      high[j][classes] = greatest[lane[j]];
    }
    classes++;
    if (i < whole.count) least = greatest = lanes_of(record += stride);
  }
  return classes;
}

/* Writes the least and the greatest code of each class, whose rows follow one another, if all
 * attributes are narrow: a byte each. */
void write_extents(node whole, const layout *of, const uint8_t *class_starts,
                   mo_class_extents *extents) {
  int64_t classes = 0;
  if (!whole.count) return;
  for (int32_t first = 0; first < of->narrow && classes <= extents->most; first += LANES) {
    assert(first + LANES <= 2 * of->stride); /* a record is followed by room for another one */
    classes = write_some(whole, of, first, class_starts, extents);
  }
  extents->classes = classes <= extents->most ? classes : 0;
}

void close_parts(parts *closed) {
  free(closed->point);
  free(closed->counts);
  free(closed->waiting);
  memset(closed, 0, sizeof *closed);
}

int mo_open_tree(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                 mo_tree **opened) {
  *opened = calloc(1, sizeof **opened);
  if (!*opened) return MO_NO_MEMORY;
  int status = open_packed_rows(&(*opened)->rows, rows, criteria, policy);
  if (status == MO_DONE && policy->group_rows > 0)
    status = sort_by_all_codes((*opened)->rows.whole, &(*opened)->rows.work);
  if (status == MO_DONE) return status;
  mo_close_tree(*opened);
  *opened = NULL;
  return status;
}

void mo_close_tree(mo_tree *closed) {
  if (!closed) return;
  close_parts(&closed->parts);
  close_packed_rows(&closed->rows);
  free(closed);
}
