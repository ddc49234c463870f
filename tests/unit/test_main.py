"""The program ends at once, and still as a program has to end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def ended(program: str) -> subprocess.CompletedProcess[str]:
    """What becomes of a process that calls the program, whose command is replaced.

    Taking modules apart at the end of Python would call the method `__del__` of `left`.
    """
    text = f"""
import atexit, os, sys, threading
import mondrian_ops.__main__ as entry

class Left:
    def __del__(self, write=os.write):
        write(2, b"taken apart")

left = Left()
left.itself = left
{program}
entry.program()
"""
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=buffered
    )


@pytest.mark.parametrize("status", [0, 1, 130])
def test_its_status_is_that_of_the_command_and_nothing_is_left_in_a_buffer(status: int) -> None:
    done = ended(f"""
def main():
    print("x" * 100_000)
    print("the last line", end="")
    print("an error", end="", file=sys.stderr)
    return {status}
entry.main = main
""")
    assert (done.returncode, done.stderr) == (status, "an error")
    assert done.stdout == "x" * 100_000 + "\nthe last line"


def test_exit_handlers_run_the_last_one_first() -> None:
    done = ended("""
atexit.register(print, "first")
atexit.register(print, "second")
entry.main = lambda: 3
""")
    assert (done.returncode, done.stdout, done.stderr) == (3, "second\nfirst\n", "")


def test_a_thread_ends_first() -> None:
    done = ended("""
import time
def late():
    time.sleep(0.3)
    print("late", flush=True)
def main():
    threading.Thread(target=late).start()
    return 4
entry.main = main
""")
    assert (done.returncode, done.stdout) == (4, "late\n")


def test_threads_of_a_pool_do_not_hold_it() -> None:
    done = ended("""
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1)
entry.main = lambda: pool.submit(int, 5).result()
""")
    assert done.returncode == 5


def test_what_traces_it_can_write_its_results() -> None:
    done = ended("""
sys.setprofile(lambda *_: None)
entry.main = lambda: 6
""")
    assert (done.returncode, "taken apart" in done.stderr) == (6, True)


def test_a_reader_that_has_left_is_no_end_without_a_word() -> None:
    """Where nobody reads what is in the buffer, Python's own end has the status for that."""
    done = ended("""
def main():
    print("lost")
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)
    return 0
entry.main = main
""")
    assert (done.returncode, "BrokenPipeError" in done.stderr) == (120, True)


@pytest.mark.parametrize("closed", [1, 2])
def test_it_does_not_need_a_stream_that_the_caller_has_closed(closed: int) -> None:
    program = "import mondrian_ops.__main__ as it; it.main = lambda: 3; it.program()"
    shell = f'"$0" -c "$1" {closed}>&-'
    done = subprocess.run(["sh", "-c", shell, sys.executable, program], capture_output=True)
    assert done.returncode == 3


def test_an_error_that_nobody_foresaw_is_told() -> None:
    done = ended("""
def main():
    raise RuntimeError("unforeseen")
entry.main = main
""")
    assert (done.returncode, "unforeseen" in done.stderr) == (1, True)
