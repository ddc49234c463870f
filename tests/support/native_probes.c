/* What tests call of the functions inside the cutting: on a node of rows that were packed as for a
 * job.
 *
 * A probe holds rows, a node of them, and what was last tallied of it. */
#include "mondrian.h"
#include "splitting.h"

typedef struct {
  packed_rows rows;
  node here;
  int64_t d; /* distinct codes of the attribute that was tallied last */
} probe;

MO_API void probe_close(probe *closed) {
  if (!closed) return;
  close_packed_rows(&closed->rows);
  free(closed);
}

MO_API int probe_open(const mo_rows *rows, const mo_criteria *criteria, const mo_policy *policy,
                      probe **opened) {
  *opened = calloc(1, sizeof **opened);
  if (!*opened) return MO_NO_MEMORY;
  int status = open_packed_rows(&(*opened)->rows, rows, criteria, policy);
  (*opened)->here = (*opened)->rows.whole;
  if (status == MO_DONE) return status;
  probe_close(*opened);
  *opened = NULL;
  return status;
}

/* Look at rows start to stop from now on; as members of a few if few. */
MO_API void probe_node(probe *on, int64_t start, int64_t stop, int narrow) {
  unsigned char *rows = on->rows.whole.rows + start * on->rows.packed.of.stride;
  on->here = (node){.rows = rows, .count = stop - start};
  if (narrow) on->here = make_masks(on->here, &on->rows.work);
}

MO_API int64_t probe_stride(const probe *on) { return on->rows.packed.of.stride; }

/* The numbers of all rows in their present order. */
MO_API void probe_numbers(const probe *on, int32_t *numbers) {
  write_numbers(on->rows.whole, &on->rows.packed.of, numbers);
}

static int64_t left_in(const mo_tally *tally) {
  int64_t left = (tally->total != 0) + (tally->distinct != 0);
  for (int64_t s = 0; s < tally->codes; s++) left += tally->counts[s] != 0;
  return left;
}

/* Whether what has to be zero between uses is zero. */
MO_API int probe_is_clean(const probe *on) {
  const layout *of = &on->rows.packed.of;
  int64_t codes = most_codes(of->first, of->attributes), left = 0;
  for (int64_t v = 0; v < codes; v++) left += on->rows.work.histogram[v] != 0;
  for (int64_t word = 0; word <= codes / 64; word++) left += on->rows.work.bits[word] != 0;
  left += left_in(&on->rows.work.left_tally) + left_in(&on->rows.work.right_tally);
  return left == 0;
}

/* present_codes.c */

/* Writes the codes present of every attribute, which all are narrow: bit v for code v. */
MO_API void probe_find_present(probe *on, uint64_t *present) {
  const layout *of = &on->rows.packed.of;
  find_present(on->here, &on->rows.work);
  for (int32_t a = 0; a < of->attributes; a++)
    present[a] = on->rows.work.present[of->column[a].offset];
}

MO_API int probe_count_few(probe *on, int32_t a, unsigned char *below) {
  return count_few(on->here, on->rows.packed.of.column[a], below, &on->rows.work);
}

/* splitting.h */

MO_API int64_t probe_tally(probe *on, int32_t a, int64_t *value, int64_t *below) {
  on->d = tally(on->here, a, &on->rows.work);
  memcpy(value, on->rows.work.value, (size_t)on->d * sizeof *value);
  memcpy(below, on->rows.work.below, (size_t)on->d * sizeof *below);
  return on->d;
}

MO_API double probe_width(const probe *on, int32_t a) {
  const int64_t *value = on->rows.work.value;
  return width(&on->rows.packed.of, a, value[0], value[on->d - 1], on->d);
}

MO_API int64_t probe_median_cut(const probe *on, int64_t k) {
  return median_cut(on->d, on->here.count, k, on->rows.work.below, NULL);
}

MO_API int64_t probe_gain_cut(probe *on, int32_t a, int64_t k, double *gain, double *whole) {
  return gain_cut(a, on->d, on->here.count, k, NULL, gain, whole, &on->rows.work);
}

MO_API double probe_gain_group(probe *on, int32_t a, int64_t least, int64_t most, double whole,
                               int64_t *first, int64_t *last) {
  return gain_group(a, on->d, least, most, whole, first, last, &on->rows.work);
}

/* validity.c */

MO_API int probe_cut_satisfies(probe *on, int32_t a, int64_t low, int64_t high) {
  return cut_satisfies(on->here, (cut){a, low, high}, &on->rows.work);
}

MO_API int probe_halves_satisfy(probe *on, int64_t middle) {
  return halves_satisfy(on->here, middle, &on->rows.work);
}

/* valid (distinct codes less one,) of the attribute that was tallied last. */
MO_API void probe_mark_valid(probe *on, int32_t a, uint8_t *valid) {
  mark_valid(on->here, a, on->d, &on->rows.work);
  memcpy(valid, on->rows.work.valid, (size_t)(on->d - 1));
}

/* cut_greedy.c, local_search.c */

MO_API int64_t probe_split_rows(probe *on, int32_t a, int64_t low, int64_t high) {
  return split_rows(on->here, (cut){a, low, high}, &on->rows.work);
}

MO_API int probe_local_search(probe *on, uint8_t *class_starts) {
  return local_search(on->here, class_starts, &on->rows.work);
}
