"""What pyarrow and numpy do without until somebody asks for it, and OpenBLAS without threads."""

from __future__ import annotations

import os
import subprocess
import sys
from unittest import mock

import pytest

from mondrian_ops import lean_imports
from tiers import in_soak, one_in

LEFT_OUT = """
import sys
from mondrian_ops.lean_imports import import_lean
import_lean()
finders = list(sys.meta_path)
import_lean()
assert sys.meta_path == finders  # once is enough
import numpy as np, pyarrow as pa
assert pa.array(np.arange(3)).to_pylist() == [0, 1, 2]
assert pa.array(["a", None]).null_count == 1
assert "pandas" not in sys.modules
"""

# What pyarrow takes for missing in a Series is a number to it in any other sequence.
VALUES = """
values = pa.array(pd.Series([1.0, None]))
assert values.null_count == 1, values
assert pa.table({"a": values}).to_pandas()["a"].isna().tolist() == [False, True]
"""


@pytest.mark.parametrize(
    "program",
    one_in(
        2,
        [
            LEFT_OUT,
            f"{LEFT_OUT}\nimport pandas as pd\n{VALUES}",
            f"{LEFT_OUT}\npd = pa.table({{}}).to_pandas() is not None and sys.modules['pandas']\n"
            f"{VALUES}",
            "import pandas as pd, pyarrow as pa\n"
            "from mondrian_ops.lean_imports import import_lean\n"
            f"import_lean()\n{VALUES}",
        ],
    ),
    ids=["nobody does", "imported later", "imported by pyarrow", "imported before"],
)
def test_pandas_is_left_out_until_it_is_imported(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_where_there_is_no_pandas_it_stays_away() -> None:
    program = f"""
import sys
class Gone:
    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if fullname == "pandas":
            raise ModuleNotFoundError("gone", name=fullname)
{LEFT_OUT}
sys.meta_path.insert(0, Gone)
try:
    import pandas
except ModuleNotFoundError:
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 7, done.stderr


@pytest.mark.parametrize(("setting", "threads"), [(None, "1"), ("3", "3")])
def test_openblas_starts_no_threads_unless_the_environment_says_so(
    setting: str | None, threads: str
) -> None:
    """As far as the environment says so while numpy is imported, and no longer."""
    program = """
import os, sys
class Watched:
    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if fullname == "numpy._core._multiarray_umath":
            print(os.environ.get("OPENBLAS_NUM_THREADS"))
sys.meta_path.insert(0, Watched)
from mondrian_ops.lean_imports import import_lean
before = dict(os.environ)
import_lean()
assert "numpy" in sys.modules and dict(os.environ) == before
"""
    name = "OPENBLAS_NUM_THREADS"
    environment = {key: value for key, value in os.environ.items() if key != name}
    if setting is not None:
        environment[name] = setting
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout.split()) == (0, [threads]), done.stderr


@pytest.mark.parametrize(("before", "after"), [(700, 50_000), (90_000, 90_000), *in_soak([(0, 0)])])
def test_garbage_is_looked_for_seldom_unless_somebody_says_otherwise(
    before: int, after: int
) -> None:
    """And never among what was imported."""
    program = f"""
import gc
gc.set_threshold({before}, 7, 9)
from mondrian_ops.lean_imports import import_lean
import_lean()
assert gc.get_threshold()[:2] == ({after}, 7), gc.get_threshold()
frozen = gc.get_freeze_count()
assert (frozen > 10_000) == ({before} < {after}), frozen
kept = [[] for _ in range(100)]
import_lean()
assert gc.get_freeze_count() <= frozen  # some have gone
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_functions_of_computations_are_written_when_they_are_asked_for() -> None:
    """They are those that pyarrow writes, but for the documentation of their options."""
    program = """
import inspect, sys
from mondrian_ops.lean_imports import import_lean
import_lean()
import pyarrow as pa, pyarrow.compute as pc
assert "pyarrow.vendored.docscrape" not in sys.modules and "pydoc" not in sys.modules
assert "round" not in vars(pc) and "year" not in vars(pc) and "cast" in vars(pc)
late = pc.round
assert vars(pc)["round"] is late is pc.round
assert late([1.26], ndigits=1).to_pylist() == [1.3]
assert late([1.26], options=pc.RoundOptions(1)).to_pylist() == [1.3]
assert pc.and_([True, None], [True, True]).to_pylist() == [True, None]
assert getattr(pc, "and")([True], [False]).to_pylist() == [False]
assert not hasattr(pc, "no_such") and not hasattr(pc, "hash_sum") and not hasattr(pc, "count_all")
assert "ndigits" not in late.__doc__
from pyarrow.vendored.docscrape import NumpyDocString  # which is there for others
assert NumpyDocString(pc.RoundOptions.__doc__)["Parameters"]
assert pc.function_registry().list_functions()[5:]
names = {*dir(pc)} - {"__getattr__", "__dir__"}
signatures = {name: str(inspect.signature(getattr(pc, name))) for name in names if name.islower()
    and inspect.isfunction(getattr(pc, name)) and not name.startswith("_")}
del sys.modules["pyarrow.compute"]
import pyarrow.compute as plain
assert plain is not pc and names == {*dir(plain)}
assert len(signatures) > 200
assert all(signatures[n] == str(inspect.signature(getattr(plain, n))) for n in signatures)
assert {getattr(plain, n).__name__ == getattr(pc, n).__name__ for n in signatures} == {True}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_pyarrow_that_writes_its_functions_in_another_way_is_imported_as_it_is() -> None:
    program = """
from mondrian_ops import lean_imports
class Registry(lean_imports._Registry):
    def list_functions(self):
        return ["no_such"]
lean_imports._Registry = Registry
lean_imports.import_lean()
import pyarrow.compute as pc
assert "year" in vars(pc) and "__getattr__" not in vars(pc)
assert pc.function_registry().list_functions()[5:]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (64, 2), *in_soak([(2, 2)])])
def test_pyarrow_has_no_more_threads_than_cores_may_be_used(cores: int, threads: int) -> None:
    """Else a container that may use two cores of 64 has memory for 64 threads."""
    program = f"""
import os
os.sched_getaffinity = lambda _process: range({cores})
from mondrian_ops.lean_imports import import_lean
import pyarrow as pa
pa.set_cpu_count(64)
import_lean()
print(pa.cpu_count())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, [str(threads)]), done.stderr


@pytest.mark.parametrize("setting", [{}, {"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}])
def test_arrow_shares_the_heap_unless_the_environment_says_otherwise(
    setting: dict[str, str],
) -> None:
    """Memory that one thread frees can then be used by another one."""
    program = """
from mondrian_ops.lean_imports import import_lean
import_lean()
import pyarrow as pa
print(pa.default_memory_pool().backend_name)
"""
    name = "ARROW_DEFAULT_MEMORY_POOL"
    environment = {key: value for key, value in os.environ.items() if key != name} | setting
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    expected = setting.get(name, "system")
    assert (done.returncode, done.stdout.split()) == (0, [expected]), done.stderr


# Of malloc.h: M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD.
ARENAS, MMAP, TRIM = (-8, 1), (-3, 32 << 20), (-1, 128 << 20)


@pytest.mark.parametrize(
    ("setting", "calls"),
    [
        ({}, [ARENAS, MMAP, TRIM]),
        ({"GLIBC_TUNABLES": "glibc.malloc.check=0"}, [ARENAS, MMAP, TRIM]),
        ({"GLIBC_TUNABLES": "glibc.malloc.check=0:glibc.malloc.arena_max=4"}, [MMAP, TRIM]),
        ({"MALLOC_ARENA_MAX": "4"}, [MMAP, TRIM]),
        ({"MALLOC_MMAP_THRESHOLD_": "9"}, [ARENAS, TRIM]),
        ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=9"}, [ARENAS, MMAP]),
    ],
)
def test_threads_share_a_heap_that_keeps_memory_unless_the_environment_says_otherwise(
    setting: dict[str, str], calls: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ARENA_MAX", "MMAP_THRESHOLD_", "TRIM_THRESHOLD_"):
        monkeypatch.delenv(f"MALLOC_{name}", raising=False)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    libc = mock.Mock()
    monkeypatch.setattr("ctypes.CDLL", lambda _: libc)
    for name in ("_import_with", "limit_pyarrow"):  # nothing more of this process is changed
        monkeypatch.setattr(lean_imports, name, mock.Mock())
    monkeypatch.setitem(sys.modules, "pandas", mock.Mock())
    lean_imports.import_lean()
    assert libc.mallopt.call_args_list == [mock.call(*each) for each in calls]
