/* Sharing work among threads, and stopping them. */
#include <pthread.h>

#include "cutting.h"

enum { MOST_CORES = 256 };

static _Thread_local const int *watched;

void mo_watch(const int *flag) { watched = flag; }

/* Polled between nodes, classes and steps: a kernel that stops leaves its loops, and frees its
 * memory as always. */
#ifndef COUNT_LOOKS
int stopped(void) { return watched && __atomic_load_n(watched, __ATOMIC_RELAXED); }
#else /* tests: how often kernels looked, and after how many looks they are stopped */
MO_API int64_t mo_looks;
MO_API int64_t mo_looks_left;
int stopped(void) { return __atomic_add_fetch(&mo_looks, 1, __ATOMIC_RELAXED) > mo_looks_left; }
#endif

typedef struct {
  void *(*work)(void *);
  void *shared;
  const int *flag;
} share;

static void *watch_and_work(void *argument) {
  const share *own = argument;
  mo_watch(own->flag);
  return own->work(own->shared);
}

/* Calls work in at most cores threads, this one among them. Each takes shares of the work until
 * none is left, so fewer threads, where no more can be started, do all of it. */
void run_threads(void *(*work)(void *), void *shared, int64_t cores) {
  pthread_t helper[MOST_CORES];
  share same = {work, shared, watched};
  int64_t helpers = 0;
  while (helpers < MOST_CORES && helpers + 1 < cores &&
         pthread_create(&helper[helpers], NULL, watch_and_work, &same) == 0)
    helpers++;
  work(shared);
  while (helpers > 0) pthread_join(helper[--helpers], NULL);
}
