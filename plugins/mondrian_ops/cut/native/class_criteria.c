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

int satisfies(const int64_t *counts, int64_t total, int64_t distinct, const mo_criteria *criteria,
              int64_t j, double *surplus, double *deficit) {
  int64_t first = criteria->uncounted[j], codes = criteria->codes[j];
  double level = criteria->level[j];
  if (criteria->kind[j] == MO_DISTINCT)
    return (double)(distinct - (first > 0 && counts[0] > 0)) >= level;
  int64_t counted = total - (first > 0 ? counts[0] : 0);
  if (criteria->kind[j] == MO_ENTROPY) /* Machanavajjhala et al. 2006, definition 4.1 */
    return entropy(counts, first, codes, counted) >= log(level) - TOLERANCE;
  if (criteria->kind[j] == MO_RECURSIVE) /* ibid., definition 4.2 */
    return outweighed(counts, first, codes, counted, (int64_t)level, criteria->c[j]);
  if (criteria->kind[j] == MO_NEAR) {
    const int32_t *near_end = criteria->near_end + criteria->near_first[j];
    return is_spread(most_near(counts, first, codes, near_end), counted, level);
  }
  return distance(counts, total, criteria, j, surplus, deficit) <= level + TOLERANCE;
}

int allocate_tally(mo_tally *tally, const mo_criteria *criteria) {
  int64_t codes = 1, nodes = 1, listed = 0;
  for (int64_t j = 0; j < criteria->count; j++) {
    int64_t tree = criteria->parent_first[j + 1] - criteria->parent_first[j];
    if (criteria->codes[j] > codes) codes = criteria->codes[j];
    if (tree > nodes) nodes = tree;
    if (criteria->kind[j] == MO_NEAR && criteria->codes[j] > listed) listed = criteria->codes[j];
  }
  tally->codes = codes;
  tally->counts = zeros(codes, sizeof *tally->counts);
  tally->surplus = zeros(nodes, sizeof *tally->surplus);
  tally->deficit = zeros(nodes, sizeof *tally->deficit);
  int status = allocate_code_list(&tally->list, listed);
  return tally->counts && tally->surplus && tally->deficit ? status : MO_NO_MEMORY;
}

void free_tally(mo_tally *tally) {
  free(tally->counts);
  free(tally->surplus);
  free(tally->deficit);
  free_code_list(&tally->list);
}

int mo_satisfies(const int64_t *counts, int64_t total, int64_t distinct,
                 const mo_criteria *criteria, int64_t j) {
  mo_tally tally;
  int found = allocate_tally(&tally, criteria);
  if (found == MO_DONE)
    found = satisfies(counts, total, distinct, criteria, j, tally.surplus, tally.deficit);
  free_tally(&tally);
  return found;
}

static int satisfies_criterion(const int32_t *index, int64_t start, int64_t stop,
                               const int32_t *codes, const int64_t *rows, int64_t total,
                               const mo_criteria *criteria, int64_t j, mo_tally *tally) {
  int64_t *counts = tally->counts, distinct = 0;
  int near = criteria->kind[j] == MO_NEAR;
  for (int64_t i = start; i < stop; i++) {
    int32_t s = codes[index[i]];
    if (near && counts[s] == 0) tally->list.listed[distinct] = s;
    distinct += counts[s] == 0;
    counts[s] += rows[index[i]];
  }
  int holds = near
                  ? spread_satisfies(counts, total, distinct, criteria, j, &tally->list)
                  : satisfies(counts, total, distinct, criteria, j, tally->surplus, tally->deficit);
  /* There may be many codes: zero those that were counted. */
  for (int64_t i = start; i < stop; i++) counts[codes[index[i]]] = 0;
  return holds;
}

int mo_groups_satisfy(const int32_t *index, int64_t length, const int64_t *starts, int64_t groups,
                      const int32_t *sensitive, int64_t combinations, const int64_t *rows,
                      const mo_criteria *criteria, uint8_t *holds) {
  mo_tally tally;
  int status = allocate_tally(&tally, criteria);
  for (int64_t i = 0; i < groups && status == MO_DONE && !stopped(); i++) {
    int64_t start = starts[i], stop = i + 1 < groups ? starts[i + 1] : length, total = 0;
    for (int64_t at = start; at < stop; at++) total += rows[index[at]];
    int found = total >= criteria->k;
    for (int64_t j = 0; j < criteria->count && found; j++) {
      const int32_t *codes = sensitive + criteria->column[j] * combinations;
      found = satisfies_criterion(index, start, stop, codes, rows, total, criteria, j, &tally);
    }
    holds[i] = (uint8_t)found;
  }
  free_tally(&tally);
  return status;
}
