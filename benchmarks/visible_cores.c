/* Preloaded, it shows a process as many cores as the environment's VISIBLE_CORES says, in all the
 * ways that Python, NumPy and Arrow ask for them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int visible(void) { return atoi(getenv("VISIBLE_CORES")); }

int get_nprocs(void) { return visible(); }
int get_nprocs_conf(void) { return visible(); }

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *cores) {
  (void)process;
  memset(cores, 0, size);
  for (int core = 0; core < visible(); core++) CPU_SET_S((size_t)core, size, cores);
  return 0;
}

long sysconf(int name) {
  static long (*asked)(int);
  if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF) return visible();
  if (!asked) *(void **)&asked = dlsym(RTLD_NEXT, "sysconf");
  return asked(name);
}
