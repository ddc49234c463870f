/* Work that several threads share. */
#include <pthread.h>

#include "cutting.h"

enum { MOST_CORES = 256 };

/* Call work by at most cores threads at once, this one among them. As many as can be started do
 * all of it: each takes some until none is left. */
void together(void *(*work)(void *), void *shared, int64_t cores) {
  pthread_t helper[MOST_CORES];
  int64_t helpers = 0;
  while (helpers < MOST_CORES && helpers + 1 < cores &&
         pthread_create(&helper[helpers], NULL, work, shared) == 0)
    helpers++;
  work(shared);
  while (helpers > 0) pthread_join(helper[--helpers], NULL);
}
