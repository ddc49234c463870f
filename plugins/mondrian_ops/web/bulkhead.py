"""A bulkhead between the pages and the API server: threads of their own, and a deadline.

Airflow's API server answers its requests in one pool of threads. A page that waited there for the
catalogue would take a thread from it, and a database that does not answer all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from threading import BoundedSemaphore
from typing import Any

from fastapi import HTTPException
from fastapi.responses import Response

THREADS = 8
DEADLINE_S = 10.0


class Bulkhead:
    """Answers at most ``threads`` requests at once, and each within ``deadline_s`` seconds.

    A thread whose database does not answer stays busy until it does, or its client gives up.
    While all are busy, a request is refused at once.
    """

    def __init__(self, threads: int = THREADS, deadline_s: float = DEADLINE_S) -> None:
        self._executor = ThreadPoolExecutor(threads, "mondrian_ops-pages")
        self._free = BoundedSemaphore(threads)
        self._deadline_s = deadline_s

    def around(self, page: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
        """The page, with the same parameters, behind the bulkhead.

        It raises HTTPException 503 while all threads are busy, 504 when the deadline has passed.
        """

        @wraps(page)
        async def bounded(*arguments: Any, **options: Any) -> Response:
            if not self._free.acquire(blocking=False):
                raise HTTPException(503, _BUSY, {"Retry-After": f"{self._deadline_s:.0f}"})
            call = partial(copy_context().run, page, *arguments, **options)
            answer = self._executor.submit(call)
            answer.add_done_callback(lambda _answer: self._free.release())
            try:
                async with asyncio.timeout(self._deadline_s) as deadline:
                    return await asyncio.wrap_future(answer)
            except TimeoutError:
                if not deadline.expired():  # the store's own
                    raise
                raise HTTPException(504, _LATE.format(self._deadline_s)) from None

        return bounded


_WHERE = (
    "Look whether its database works; the options [mondrian_ops] catalogue and catalogue_conn_id "
    "in Airflow's configuration say where it is."
)
_LATE = "The catalogue of releases did not answer within {:g} seconds. " + _WHERE
_BUSY = "The pages still wait for the catalogue of releases. Try again in a moment. " + _WHERE
