/* Privacy criteria on classes: on counts of sensitive values, and on counted combinations. */
#include "kernels.h"

#include <math.h>
#include <string.h>

static const double TOLERANCE = 1e-9; /* entropies and distances are sums of rounded numbers */

/* r1 < c (r_l + ... + r_m), where r1 >= r2 >= ... are the counts from first on. */
static int outweighed(const int64_t *counts, int64_t first, int64_t codes, int64_t total,
                      int64_t level, double c) {
  int64_t largest = 0, before = 0, bound = total + 1;
  for (int64_t left = level - 1; left > 0 && bound > 0;) {
    int64_t next = 0, same = 0;
    for (int64_t s = first; s < codes; s++) {
      if (counts[s] < bound && counts[s] > next) {
        next = counts[s];
        same = 1;
      } else if (counts[s] == next) {
        same++;
      }
    }
    if (next > largest) largest = next;
    before += next * (same < left ? same : left);
    left -= same;
    bound = next;
  }
  return (double)largest < c * (double)(total - before);
}

static double entropy(const int64_t *counts, int64_t first, int64_t codes, int64_t total) {
  double found = 0.0;
  for (int64_t s = first; s < codes; s++) {
    if (counts[s] > 0) {
      double p = (double)counts[s] / (double)total;
      found -= p * log(p);
    }
  }
  return found;
}

/* Earth mover's distance over a hierarchy (Li et al. 2007, section 5.2.2); children come before
 * their parents. */
static double tree_distance(const int64_t *counts, int64_t total, const mo_criteria *criteria,
                            int64_t j, double *surplus, double *deficit) {
  int64_t codes = criteria->codes[j], root = criteria->parent_first[j];
  int64_t nodes = criteria->parent_first[j + 1] - root;
  const double *share = criteria->share + criteria->share_first[j];
  memset(surplus, 0, (size_t)nodes * sizeof *surplus);
  memset(deficit, 0, (size_t)nodes * sizeof *deficit);
  double found = 0.0;
  for (int64_t node = 0; node < nodes; node++) {
    double extra;
    if (node < codes) {
      extra = (double)counts[node] / (double)total - share[node];
    } else {
      double less = deficit[node] < surplus[node] ? deficit[node] : surplus[node];
      extra = surplus[node] - deficit[node];
      found += criteria->height[root + node] * less;
    }
    int64_t parent = criteria->parent[root + node];
    if (parent < 0) continue;
    if (extra > 0) surplus[parent] += extra;
    else deficit[parent] -= extra;
  }
  return found;
}

/* Distance of a group's distribution from the dataset's (Li et al. 2007, section 5). */
static double distance(const int64_t *counts, int64_t total, const mo_criteria *criteria, int64_t j,
                       double *surplus, double *deficit) {
  if (criteria->kind[j] == MO_T_TREE)
    return tree_distance(counts, total, criteria, j, surplus, deficit);
  int64_t codes = criteria->codes[j];
  const double *share = criteria->share + criteria->share_first[j];
  double found = 0.0, carried = 0.0;
  if (criteria->kind[j] == MO_T_EQUAL) {
    for (int64_t s = 0; s < codes; s++) found += fabs((double)counts[s] / (double)total - share[s]);
    return found / 2.0;
  }
  for (int64_t s = 0; s + 1 < codes; s++) {
    carried += (double)counts[s] / (double)total - share[s];
    found += fabs(carried);
  }
  return codes > 1 ? found / ((double)codes - 1.0) : 0.0;
}

/* The most rows whose codes, from first on, lie between a code and the greatest one near it. */
static int64_t most_near(const int64_t *counts, int64_t first, int64_t codes,
                         const int32_t *near_end) {
  int64_t most = 0, within = 0, next = first;
  for (int64_t s = first; s < codes; s++) {
    while (next < codes && next <= near_end[s]) within += counts[next++];
    if (within > most) most = within;
    within -= counts[s];
  }
  return most;
}

/* Whether total rows with these counts (codes,), of which distinct are not zero, satisfy a
 * criterion. */
static int satisfies(const int64_t *counts, int64_t total, int64_t distinct,
                     const mo_criteria *criteria, int64_t j, const mo_tally *memory) {
  int64_t first = criteria->uncounted[j], codes = criteria->codes[j];
  double level = criteria->level[j];
  if (criteria->kind[j] == MO_DISTINCT)
    return (double)(distinct - (first > 0 && counts[0] > 0)) >= level;
  if (criteria->kind[j] == MO_ASKED) {
    uint8_t holds = 0;
    criteria->asked(j, 1, counts, &holds);
    return holds;
  }
  int64_t counted = total - (first > 0 ? counts[0] : 0);
  if (criteria->kind[j] == MO_ENTROPY) /* Machanavajjhala et al. 2006, definition 4.1 */
    return entropy(counts, first, codes, counted) >= log(level) - TOLERANCE;
  if (criteria->kind[j] == MO_RECURSIVE) /* ibid., definition 4.2 */
    return outweighed(counts, first, codes, counted, (int64_t)level, criteria->c[j]);
  if (criteria->kind[j] == MO_NEAR) {
    const int32_t *near_end = criteria->near_end + criteria->near_first[j];
    return is_spread(most_near(counts, first, codes, near_end), counted, level);
  }
  return distance(counts, total, criteria, j, memory->surplus, memory->deficit) <=
         level + TOLERANCE;
}

int tally_satisfies(mo_tally *tally, const mo_criteria *criteria, int64_t j) {
  if (criteria->kind[j] == MO_NEAR) return spread_satisfies(tally, criteria, j);
  return satisfies(tally->counts, tally->total, tally->distinct, criteria, j, tally);
}

int counts_satisfy(const int64_t *counts, const mo_criteria *criteria, int64_t j,
                   const mo_tally *tally) {
  int64_t total = 0, distinct = 0;
  for (int64_t code = 0; code < criteria->codes[j]; code++) {
    total += counts[code];
    distinct += counts[code] > 0;
  }
  return satisfies(counts, total, distinct, criteria, j, tally);
}

int allocate_tally(mo_tally *tally, const mo_criteria *criteria, int64_t rows) {
  int64_t codes = 1, nodes = 1, sorted = 0;
  for (int64_t j = 0; j < criteria->count; j++) {
    int64_t tree = criteria->parent_first[j + 1] - criteria->parent_first[j];
    if (criteria->codes[j] > codes) codes = criteria->codes[j];
    if (tree > nodes) nodes = tree;
    if (criteria->kind[j] == MO_NEAR && criteria->codes[j] > sorted) sorted = criteria->codes[j];
  }
  int64_t listed = codes < rows ? codes : rows;
  memset(tally, 0, sizeof *tally);
  tally->codes = codes;
  tally->counts = zeros(codes, sizeof *tally->counts);
  tally->listed = zeros(listed + 1, sizeof *tally->listed);
  tally->others = zeros(sorted > 0 ? listed + 1 : 0, sizeof *tally->others);
  tally->surplus = zeros(nodes, sizeof *tally->surplus);
  tally->deficit = zeros(nodes, sizeof *tally->deficit);
  int found = tally->counts && tally->listed && tally->others && tally->surplus && tally->deficit;
  return found ? MO_DONE : MO_NO_MEMORY;
}

void free_tally(mo_tally *tally) {
  free(tally->counts);
  free(tally->listed);
  free(tally->others);
  free(tally->surplus);
  free(tally->deficit);
}

int mo_satisfies(const int64_t *counts, const mo_criteria *criteria, int64_t j) {
  mo_tally tally;
  int found = allocate_tally(&tally, criteria, 0);
  if (found == MO_DONE) found = counts_satisfy(counts, criteria, j, &tally);
  free_tally(&tally);
  return found;
}

/* Asks about the groups that hold so far, many at once: criterion j, an MO_ASKED. */
static int ask_groups(const int32_t *index, int64_t length, const int64_t *starts, int64_t groups,
                      const int32_t *codes, const int64_t *rows, const mo_criteria *criteria,
                      int64_t j, uint8_t *holds) {
  int64_t size = criteria->codes[j], most = ASKED_COUNTS / size + 1, waiting = 0;
  int64_t *counts = zeros(most * size, sizeof *counts), *place = zeros(most, sizeof *place);
  uint8_t *found = zeros(most, sizeof *found);
  int status = counts && place && found ? MO_DONE : MO_NO_MEMORY;
  for (int64_t i = 0; i < groups && status == MO_DONE && !stopped(); i++) {
    if (holds[i]) {
      int64_t *own = counts + waiting * size, stop = i + 1 < groups ? starts[i + 1] : length;
      memset(own, 0, (size_t)size * sizeof *own);
      for (int64_t at = starts[i]; at < stop; at++) own[codes[index[at]]] += rows[index[at]];
      place[waiting++] = i;
    }
    if (waiting < most && i + 1 < groups) continue;
    if (waiting > 0) criteria->asked(j, waiting, counts, found);
    while (waiting > 0) {
      waiting--;
      holds[place[waiting]] = found[waiting];
    }
  }
  free(counts);
  free(place);
  free(found);
  return status;
}

int mo_groups_satisfy(const int32_t *index, int64_t length, const int64_t *starts, int64_t groups,
                      const int32_t *sensitive, int64_t combinations, const int64_t *rows,
                      const mo_criteria *criteria, uint8_t *holds) {
  mo_tally tally;
  int status = allocate_tally(&tally, criteria, length);
  for (int64_t i = 0; i < groups && status == MO_DONE && !stopped(); i++) {
    int64_t start = starts[i], stop = i + 1 < groups ? starts[i + 1] : length, total = 0;
    for (int64_t at = start; at < stop; at++) total += rows[index[at]];
    int found = total >= criteria->k;
    for (int64_t j = 0; j < criteria->count && found; j++) {
      if (criteria->kind[j] == MO_ASKED) continue;
      const int32_t *codes = sensitive + criteria->column[j] * combinations;
      for (int64_t at = start; at < stop; at++)
        count_rows(&tally, codes[index[at]], rows[index[at]]);
      found = counted_satisfy(&tally, criteria, j);
    }
    holds[i] = (uint8_t)found;
  }
  for (int64_t j = 0; j < criteria->count && status == MO_DONE; j++) {
    const int32_t *codes = sensitive + criteria->column[j] * combinations;
    if (criteria->kind[j] == MO_ASKED)
      status = ask_groups(index, length, starts, groups, codes, rows, criteria, j, holds);
  }
  free_tally(&tally);
  return status;
}
