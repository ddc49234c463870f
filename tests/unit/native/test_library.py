"""How the library is found, how failures of C are raised, and how kernels are stopped."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from mondrian_ops.cli.signals import SIGNALS
from mondrian_ops.cut.native import mondrian
from mondrian_ops.data.native import counting
from mondrian_ops.engines.threads import in_threads
from mondrian_ops.native import library
from native_probes import no_criteria


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (-1, MemoryError, "not enough memory"),
        (-2, ValueError, "kernel: a code or a node is outside of its table"),
    ],
)
def test_a_status_becomes_an_error(monkeypatch, status, error, text):
    monkeypatch.setattr(library, "_library", lambda: SimpleNamespace(kernel=lambda: status))
    with pytest.raises(error, match=text):
        library.function("kernel")()
    assert library.function("kernel", result=ctypes.c_int64)() == status  # not one of its kind


@pytest.mark.parametrize("content", [None, b"no library"])
def test_missing_kernels_are_an_import_error_with_the_remedy(monkeypatch, tmp_path, content):
    path = tmp_path / "kernels.so"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(library, "path", lambda: path)
    with pytest.raises(ImportError, match=r"kernels\.so.*make install"):
        library._loaded.__wrapped__()


@pytest.fixture(scope="module")
def long_work():
    """Cuts that take many minutes: they look ahead from a million rows on."""
    count, sizes = 1_000_000, [50] * 6
    generator = np.random.default_rng(0)
    values = np.tile(np.linspace(0, 1, 50), 6)
    rows = mondrian.Rows(
        codes=generator.integers(1, 50, (6, count), np.uint16),
        sensitive=np.zeros((0, count), np.int32),
        kind=np.full(6, mondrian.INTERVAL),
        first=np.cumsum([0, *sizes]),
        low=values,
        high=values,
        step=np.zeros(300),
        span=np.ones(6),
        most=np.ones(6),
        present=np.full(6, 49.0),
    )
    policy = mondrian.KernelPolicy(mondrian.GAIN, 8, count)
    return partial(mondrian.classes, rows, no_criteria(5), policy)


@contextmanager
def interrupted():
    """SIGINT comes a moment later, while a kernel is at work."""
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@contextmanager
def adopted():
    """A flag that stops the kernels of this thread."""
    flag = ctypes.c_int()
    library.adopt(flag)
    try:
        yield flag
    finally:
        library.adopt(None)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_keyboard_interrupt_ends_a_kernel(long_work, cores):
    with interrupted(), pytest.raises(KeyboardInterrupt):
        long_work(cores=cores)


def test_a_keyboard_interrupt_ends_the_kernels_of_all_threads(long_work):
    with interrupted(), pytest.raises(KeyboardInterrupt):
        list(in_threads(lambda _: long_work(cores=1), range(4), 2))


def test_a_kernel_is_stopped_from_another_thread(long_work):
    with adopted() as flag:
        threading.Timer(0.5, partial(setattr, flag, "value", 1)).start()
        with pytest.raises(library.Stopped):
            long_work(cores=2)


def test_a_flag_also_stops_the_kernels_to_come(long_work):
    with adopted() as flag:
        flag.value = 1
        with pytest.raises(library.Stopped):
            long_work(cores=1)
        with pytest.raises(library.Stopped):
            list(in_threads(lambda _: long_work(cores=1), range(4), 2))


def test_a_signal_between_two_steps_of_a_command_stops_the_next_one(long_work):
    with pytest.raises(KeyboardInterrupt), SIGNALS.raised():
        SIGNALS.watched(lambda *_: None)
        os.kill(os.getpid(), signal.SIGINT)
        long_work(cores=1)
    assert groups_of_bits() == 2


def test_after_an_interrupt_kernels_work_again(long_work):
    with interrupted(), pytest.raises(KeyboardInterrupt):
        long_work(cores=1)
    assert groups_of_bits() == 2


def groups_of_bits() -> int:
    words = np.array([[1, 2, 1]], np.uint64)
    return len(counting.group_by_bits(words, np.array([3], np.uint64))[1])
