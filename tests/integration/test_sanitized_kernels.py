"""The tests of the kernels once more, with kernels that AddressSanitizer and UBSan watch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sanitized import environment, runtime, sanitized
from servers.needs import needs

pytestmark = pytest.mark.servers  # which it needs not, but a minute

CHECKOUT = Path(__file__).resolve().parents[2]
INVARIANCE = "tests/unit/series/intersection/test_invariance.py"
# Without those of compiling, which load no kernels of ours.
UNIT = CHECKOUT / "tests" / "unit"
TESTS = (
    *sorted(str(folder.relative_to(CHECKOUT)) for folder in UNIT.rglob("native")),
    "tests/unit/cut/algorithms/test_mondrian.py",
    INVARIANCE,
)
OTHERS = tuple(
    f"tests/unit/native/test_{name}.py" for name in ("build", "layers", "missing_kernels")
)
# By a second compilation, or mostly by what is compared, which is Python.
LONG = (
    f"{INVARIANCE}::test_no_person_falls_below_k_and_l_over_nights",
    f"{INVARIANCE}::test_nobody_who_knows_any_signatures_can_tell_what_is_made_up_in_a_class",
    f"{INVARIANCE}::test_the_same_may_be_shown_where_people_have_other_values",
    "tests/unit/cut/native/test_local_search.py::test_less_is_lost_and_every_criterion_still_holds",
    "tests/unit/cut/native/test_present_codes.py"
    "::test_processors_without_look_ups_find_the_same_classes",
    "tests/unit/native/test_stopping.py"
    "::test_a_kernel_looks_at_every_node_and_ends_at_the_first_look",
)
# A byte beyond what is allocated, a sum that overflows, and a promise that is broken.
WRONG = """
#include <assert.h>
#include "kernels.h"
MO_API int beyond(int64_t length);
MO_API int overflow(int64_t a);
MO_API int promised_zero(int64_t a);
int promised_zero(int64_t a) {
  assert(a == 0);
  return 0;
}
int beyond(int64_t length) {
  char *memory = calloc((size_t)length, 1);
  int found = memory ? memory[length] : 0;
  free(memory);
  return found;
}
int overflow(int64_t a) {
  volatile int64_t sum = a + INT64_MAX;
  return sum > 0;
}
"""
CALL = """
import ctypes, sys
from mondrian_ops.native.library import function
name, argument = sys.argv[1:]
function(name, ctypes.c_int64)(int(argument))
"""


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose kernels are watched, with three more that are wrong."""
    if runtime() is None:
        needs("asan")
    return sanitized(tmp_path_factory.mktemp("sanitized"), wrong=WRONG)


def watched(plugins: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=CHECKOUT,
        env=environment(plugins),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_what_is_right_passes(plugins: Path) -> None:
    assert watched(plugins, "-c", CALL, "overflow", "0").returncode == 0


@pytest.mark.parametrize(
    ("name", "argument", "told"),
    [
        ("beyond", "8", "heap-buffer-overflow"),
        ("overflow", "1", "signed integer overflow"),
        ("promised_zero", "1", "Assertion"),
    ],
)
def test_what_is_wrong_ends_the_process(plugins: Path, name: str, argument: str, told: str) -> None:
    if not runtime() and name == "beyond":
        needs("asan")
    done = watched(plugins, "-c", CALL, name, argument)
    assert done.returncode != 0
    assert told in done.stdout or not runtime()


@pytest.mark.parametrize(
    "tests",
    [
        pytest.param(
            [
                *TESTS,
                *(f"--ignore={other}" for other in OTHERS),
                *(f"--deselect={test}" for test in LONG),
            ],
            id="short",
        ),
        pytest.param(LONG, id="long", marks=pytest.mark.soak),
    ],
)
def test_the_tests_of_the_kernels_pass(plugins: Path, tests: Sequence[str]) -> None:
    # What a sanitizer says comes from no Python, and is lost where pytest captures it.
    words = ["-m", "pytest", "-q", "--capture=sys", "-p", "no:cacheprovider"]
    words += ["-o", f"pythonpath={plugins} scripts tests/support"]
    done = watched(plugins, *words, *tests)
    assert done.returncode == 0, done.stdout
