"""Threads of this process, and how much they hold in memory together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

from mondrian_ops.cores import available_cores
from mondrian_ops.native.library import adopt, stop_flag

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 8  # one thread decodes what the others work on, and keeps no more of them busy
_ROWS = 1 << 19  # of parts or fragments in work at a time, unless two of them have more


def at_once(rows: int) -> int:
    """How many pieces of at most so many rows this process works on at a time.

    Two where cores allow, and more only of small ones, so that memory does not grow with cores.
    """
    return min(available_cores(), max(2, _ROWS // max(1, rows)))


def shared_rows(rows: int) -> int:
    """The rows of a batch, if two threads would take ``rows`` each: more threads take fewer."""
    return rows * 3 // (1 + max(2, _threads()))  # one batch more than threads is in memory


def in_threads(
    work: Callable[[T], R], items: Iterable[T], threads: int | None = None
) -> Iterator[R]:
    """``work`` on every item, some at once, by default on all cores; results in the items' order.

    The kernels and Arrow release the GIL. Only a few results wait for the consumer, so the number
    of items does not affect memory. The first exception cancels the rest; one that ends the
    program, such as KeyboardInterrupt, also stops the kernels. A single item needs no other thread.
    """
    items = iter(items)
    begin = list(islice(items, 2))
    if len(begin) < 2:
        yield from map(work, begin)
        return
    items = chain(iter(begin), items)
    del begin  # an iterator alone forgets what it has given
    threads = threads or _threads()
    running: deque[Future[R]] = deque()
    flag = stop_flag()
    with ThreadPoolExecutor(threads, "", adopt, (flag,)) as pool:
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        except BaseException as error:
            if not isinstance(error, (Exception, GeneratorExit)):
                flag.value = 1
            pool.shutdown(cancel_futures=True)
            raise


def _threads() -> int:
    return min(available_cores(), _THREADS)
