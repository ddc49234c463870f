/* Records: the rows of a job packed from columns, and small nodes coded anew in blocks. */
#include <stdatomic.h>
#include <stdlib.h>

#include "splitting.h"

enum { PACKED = 1 << 10 }; /* rows packed at a time: their records stay in the caches */

static int32_t bytes_for(int64_t codes) { return codes <= 1 << 8 ? 1 : codes <= 1 << 16 ? 2 : 4; }

static void write_code(unsigned char *record, field at, int64_t code) {
  if (at.bytes == 1) {
    record[at.offset] = (unsigned char)code;
  } else if (at.bytes == 2) {
    uint16_t narrow = (uint16_t)code;
    memcpy(record + at.offset, &narrow, sizeof narrow);
  } else {
    uint32_t wide = (uint32_t)code;
    memcpy(record + at.offset, &wide, sizeof wide);
  }
}

static void write_number(unsigned char *record, const layout *of, int64_t number) {
  uint32_t written = (uint32_t)number;
  memcpy(record + of->number, &written, sizeof written);
}

/* Lays out a record: the columns side by side, each in the bytes that its codes need, then the
 * number. */
static void lay_out(layout *of, field *column) {
  int32_t columns = of->attributes + of->sensitive, offset = 0;
  of->few = 0;
  for (int32_t a = 0; a < of->attributes; a++)
    if (column[a].codes <= FEW) column[a].offset = of->few++;
  of->narrow = of->few;
  for (int32_t a = 0; a < of->attributes; a++)
    if (column[a].codes > FEW && column[a].codes <= WORD_BITS) column[a].offset = of->narrow++;
  offset = of->narrow;
  for (int32_t a = 0; a < columns; a++) {
    column[a].bytes = bytes_for(column[a].codes);
    if (a < of->attributes && column[a].codes <= WORD_BITS) continue;
    column[a].offset = offset;
    offset += column[a].bytes;
  }
  of->number = offset;
  of->stride = (offset + (int32_t)sizeof(uint32_t) + 7) / 8 * 8;
}

static int open_columns(table *opened) {
  size_t columns = (size_t)opened->of.attributes + (size_t)opened->of.sensitive;
  opened->column = calloc(columns + 1, sizeof *opened->column);
  opened->of.column = opened->column;
  return opened->column ? MO_DONE : MO_NO_MEMORY;
}

static int open_rows(table *opened, int64_t rows) {
  opened->rows = malloc((size_t)(rows + 1) * (size_t)opened->of.stride);
  return opened->rows ? MO_DONE : MO_NO_MEMORY;
}

void close_table(table *closed) {
  free(closed->column);
  free(closed->first);
  free(closed->low);
  free(closed->high);
  free(closed->step);
  free(closed->higher);
  free(closed->rows);
  memset(closed, 0, sizeof *closed);
}

/* Writes for each step the next higher one, so that highest_step leaps at most once per level of
 * a tree. */
static void note_higher(const double *step, int64_t codes, int32_t *higher) {
  for (int64_t v = codes - 1; v >= 0; v--) {
    int64_t next = v + 1;
    while (next < codes && step[next] <= step[v]) next = higher[next];
    higher[v] = (int32_t)next;
  }
}

/* Writes a column of codes, of so many bytes each, into records. */
static void pack_column(const unsigned char *codes, int64_t bytes, int64_t count,
                        unsigned char *record, field at, size_t stride) {
  if (bytes == 1 && at.bytes == 1) {
    record += at.offset;
    for (int64_t i = 0; i < count; i++, record += stride) *record = codes[i];
    return;
  }
  for (int64_t i = 0; i < count; i++, record += stride)
    write_code(record, at, read_code(codes + i * bytes, 0, (int)bytes));
}

/* Writes rows start to stop, a column at a time. */
static void pack_some(table *into, const mo_rows *rows, int64_t start, int64_t stop) {
  const layout *of = &into->of;
  size_t stride = (size_t)of->stride;
  int64_t bytes = rows->code_bytes, count = stop - start;
  unsigned char *records = into->rows + start * of->stride;
  for (int32_t a = 0; a < of->attributes; a++)
    pack_column((const unsigned char *)rows->codes + (a * rows->rows + start) * bytes, bytes, count,
                records, of->column[a], stride);
  for (int32_t s = 0; s < of->sensitive; s++)
    pack_column((const unsigned char *)(rows->sensitive + s * rows->rows + start),
                sizeof *rows->sensitive, count, records, sensitive_field(of, s), stride);
  for (int64_t i = 0; i < count; i++) write_number(records + (size_t)i * stride, of, start + i);
}

/* Rows that threads pack, and the first that no thread has taken. */
typedef struct {
  table *into;
  const mo_rows *rows;
  _Atomic int64_t next;
} packing;

static void *pack_share(void *argument) {
  packing *all = argument;
  int64_t count = all->rows->rows, start;
  while ((start = atomic_fetch_add(&all->next, PACKED)) < count)
    pack_some(all->into, all->rows, start, start + PACKED < count ? start + PACKED : count);
  return NULL;
}

/* Packs all rows, numbered from 0, in at most cores threads. The tables over codes stay the
 * caller's. */
int pack_rows(table *into, const mo_rows *rows, int64_t cores) {
  memset(into, 0, sizeof *into);
  layout *of = &into->of;
  *of = (layout){.attributes = (int32_t)rows->attributes,
                 .sensitive = (int32_t)rows->sensitive_columns,
                 .persons = (int32_t)rows->persons,
                 .kind = rows->kind,
                 .first = rows->first,
                 .low = rows->low,
                 .high = rows->high,
                 .step = rows->step,
                 .span = rows->span,
                 .most = rows->most,
                 .present = rows->present};
  if (open_columns(into)) return MO_NO_MEMORY;
  into->higher = calloc((size_t)rows->first[rows->attributes] + 1, sizeof *into->higher);
  if (!into->higher) return MO_NO_MEMORY;
  of->higher = into->higher;
  for (int32_t a = 0; a < of->attributes; a++) {
    int64_t first = rows->first[a], codes = rows->first[a + 1] - first;
    into->column[a].codes = codes;
    note_higher(rows->step + first, codes, into->higher + first);
  }
  for (int32_t s = 0; s < of->sensitive; s++) {
    const int32_t *codes = rows->sensitive + s * rows->rows;
    int32_t most = 0;
    for (int64_t i = 0; i < rows->rows; i++) most = codes[i] > most ? codes[i] : most;
    into->column[of->attributes + s].codes = (int64_t)most + 1;
  }
  lay_out(of, into->column);
  if (open_rows(into, rows->rows)) return MO_NO_MEMORY;
  packing all = {.into = into, .rows = rows};
  run_threads(pack_share, &all, cores);
  return MO_DONE;
}

/* Allocates a block for nodes of at most so many rows. */
int open_block(table *block, const layout *outer, int64_t rows) {
  memset(block, 0, sizeof *block);
  block->of = *outer;
  if (open_columns(block)) return MO_NO_MEMORY;
  size_t size = 0;
  for (int32_t a = 0; a < outer->attributes; a++) {
    int64_t codes = outer->column[a].codes;
    block->column[a].codes = codes <= rows ? codes : rows + 1; /* code 0 stays the missing value */
    size += (size_t)block->column[a].codes;
  }
  for (int32_t s = 0; s < outer->sensitive; s++)
    block->column[outer->attributes + s] = sensitive_field(outer, s);
  if (outer->persons) {
    field *persons = &block->column[outer->attributes + outer->sensitive - 1];
    persons->codes = rows < persons->codes ? rows : persons->codes;
  }
  lay_out(&block->of, block->column);
  block->first = calloc((size_t)outer->attributes + 1, sizeof *block->first);
  block->low = calloc(size + 1, sizeof *block->low);
  block->high = calloc(size + 1, sizeof *block->high);
  block->step = calloc(size + 1, sizeof *block->step);
  block->higher = calloc(size + 1, sizeof *block->higher);
  if (!block->first || !block->low || !block->high || !block->step || !block->higher)
    return MO_NO_MEMORY;
  block->of.first = block->first;
  block->of.low = block->low;
  block->of.high = block->high;
  block->of.step = block->step;
  block->of.higher = block->higher;
  return open_rows(block, rows);
}

/* Numbers a node's persons anew, so that tables over persons stay in the caches. The counts of a
 * tally hold the number of each person, plus one; they are zeroed again. */
static void number_persons(table *block, node here, workspace *outer) {
  const layout *from = outer->layout;
  int64_t column = from->sensitive - 1, found = 0, *number = outer->left_tally.counts;
  field read = sensitive_field(from, column), written = sensitive_field(&block->of, column);
  for (int64_t i = 0; i < here.count; i++) {
    int64_t person = code_of(here.rows + i * from->stride, read);
    if (number[person] == 0) number[person] = ++found;
    write_code(block->rows + i * block->of.stride, written, number[person] - 1);
  }
  for (int64_t i = 0; i < here.count; i++) number[code_of(here.rows + i * from->stride, read)] = 0;
}

/* Codes attribute a of a node anew: its distinct codes become 1, 2, ... in order, 0 stays the
 * missing value. */
static void recode(table *block, node here, int32_t a, workspace *outer) {
  const layout *from = outer->layout;
  layout *to = &block->of;
  int64_t d = tally(here, a, outer), shift = outer->value[0] != 0;
  block->first[a + 1] = block->first[a] + d + shift;
  for (int64_t j = 0; j < d; j++) {
    int64_t v = outer->value[j], at = block->first[a] + j + shift;
    outer->histogram[v] = j + shift;
    block->low[at] = from->low[from->first[a] + v];
    block->high[at] = from->high[from->first[a] + v];
    if (from->kind[a] == MO_SET) block->step[block->first[a] + j] = from->step[from->first[a] + j];
    else block->step[at] = j + 1 < d ? highest_step(from, a, v, outer->value[j + 1]) : 0.0;
  }
  note_higher(block->step + block->first[a], d + shift, block->higher + block->first[a]);
  field read = from->column[a], written = to->column[a];
  for (int64_t i = 0; i < here.count; i++)
    write_code(block->rows + i * to->stride, written,
               outer->histogram[code_of(here.rows + i * from->stride, read)]);
  for (int64_t j = 0; j < d; j++) outer->histogram[outer->value[j]] = 0;
}

/* Copies a node's rows into a block, coded anew and numbered from 0: the size of tables then
 * follows the rows of the node, not the distinct values of a column. */
void fill_block(table *block, node here, workspace *outer) {
  const layout *from = outer->layout, *to = &block->of;
  for (int32_t a = 0; a < to->attributes; a++) recode(block, here, a, outer);
  for (int32_t s = 0; s < to->sensitive - to->persons; s++)
    for (int64_t i = 0; i < here.count; i++)
      write_code(block->rows + i * to->stride, sensitive_field(to, s),
                 code_of(here.rows + i * from->stride, sensitive_field(from, s)));
  if (to->persons) number_persons(block, here, outer);
  for (int64_t i = 0; i < here.count; i++) write_number(block->rows + i * to->stride, to, i);
}
