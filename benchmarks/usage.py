"""Run a command to its end; print what it used as JSON: seconds, CPU seconds, MiB at most, written.

A small process between the benchmarks and what they measure: as the peak of a child the kernel
tells no less than what its parent held when it started it, and the benchmarks hold tables.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

_MIB = 1 << (20 if sys.platform == "darwin" else 10)  # of what ru_maxrss counts
_BLOCKS_OF_MIB = 2048  # of ru_oublock: 512 bytes each


def main() -> int:
    start = time.perf_counter()
    status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s, peak_mib = used.ru_utime + used.ru_stime, used.ru_maxrss / _MIB
    print(json.dumps([seconds, cpu_s, peak_mib, used.ru_oublock / _BLOCKS_OF_MIB]))
    return status if status >= 0 else 128 - status  # as a shell tells of a signal


if __name__ == "__main__":
    sys.exit(main())
