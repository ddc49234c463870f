/* Sharing work among threads. */
#include <pthread.h>

#include "cutting.h"

enum { MOST_CORES = 256 };

/* Calls work in at most cores threads, this one among them. Each takes shares of the work until
 * none is left, so fewer threads, where no more can be started, do all of it. */
void run_threads(void *(*work)(void *), void *shared, int64_t cores) {
  pthread_t helper[MOST_CORES];
  int64_t helpers = 0;
  while (helpers < MOST_CORES && helpers + 1 < cores &&
         pthread_create(&helper[helpers], NULL, work, shared) == 0)
    helpers++;
  work(shared);
  while (helpers > 0) pthread_join(helper[--helpers], NULL);
}
