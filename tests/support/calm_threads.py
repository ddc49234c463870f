"""One thread for OpenBLAS in each process of the tests, as in each of our own (`lean_imports`).

Its threads wait by spinning: where several processes share the cores, a product of small matrices
takes ten times the processor time.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
