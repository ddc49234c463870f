"""A database that does not answer costs the pages their own threads, and the API server none."""

from __future__ import annotations

import asyncio
import threading

import anyio.to_thread
import httpx
import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi import FastAPI

from mondrian_ops.web.bulkhead import Bulkhead
from mondrian_ops.web.pages import create
from mondrian_ops.web.reader import Reader
from mondrian_ops.web.release_list import Page

REQUESTS, POOL = 60, 40  # requests, and the threads in which an API server answers


class SilentDatabase:
    """A database that answers only once it is ``released``; ``waiting`` threads wait for it."""

    def __init__(self):
        self.released, self.waiting = threading.Event(), 0

    def page(self, _reader):
        self.waiting += 1
        self.released.wait()
        return Page([], 0, 1, 1)


@pytest.fixture
def served(monkeypatch, catalogue, user):
    """Call ``visit`` with a client of an Airflow whose pages have three threads."""

    def serve(visit, deadline_s=60.0):
        database = SilentDatabase()
        monkeypatch.setattr(Reader, "page", lambda reader, _choice: database.page(reader))
        app = create(lambda: catalogue, bulkhead=Bulkhead(3, deadline_s))
        app.dependency_overrides[get_user] = lambda: user
        airflow = FastAPI()
        airflow.mount("/mondrian_ops", app)
        airflow.get("/own")(lambda: "an answer of Airflow")

        async def visited():
            transport = httpx.ASGITransport(airflow)
            async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
                try:
                    await visit(client, database)
                finally:
                    database.released.set()

        asyncio.run(visited())

    return serve


def pages_of(client, number):
    return [asyncio.create_task(client.get("/mondrian_ops/releases")) for _ in range(number)]


def test_the_threads_of_the_api_server_stay_free(served):
    async def visit(client, database):
        pages = pages_of(client, REQUESTS)
        pool = anyio.to_thread.current_default_thread_limiter()
        assert pool.total_tokens == POOL
        while database.waiting < POOL and (
            sum(page.done() for page in pages) < REQUESTS - 3 or database.waiting < 3
        ):
            await asyncio.sleep(0.01)
        assert database.waiting == 3
        assert pool.borrowed_tokens == 0
        assert (await client.get("/own")).status_code == 200
        assert (await client.get("/mondrian_ops/static/pages.css")).status_code == 200
        refused = [page.result() for page in pages if page.done()]
        assert {answer.status_code for answer in refused} == {503}
        assert all("still wait for the catalogue" in answer.text for answer in refused)
        waiting = [page for page in pages if not page.done()]
        database.released.set()
        assert [(await page).status_code for page in waiting] == [200] * 3
        assert (await client.get("/mondrian_ops/releases")).status_code == 200

    served(visit)


def test_a_page_says_that_the_catalogue_does_not_answer(served):
    async def visit(client, database):
        answers = [await page for page in pages_of(client, 3)]
        assert {answer.status_code for answer in answers} == {504}
        assert "did not answer within 0.01 seconds" in answers[0].text
        assert (await client.get("/mondrian_ops/releases")).status_code == 503  # they still wait

    served(visit, deadline_s=0.01)


def test_an_error_of_the_database_is_told_as_before(served):
    def broken(_reader):
        raise TimeoutError("the database's own")

    async def visit(client, database):
        database.page = broken
        answer = await client.get("/mondrian_ops/releases")
        assert answer.status_code == 503
        assert "cannot be read" in answer.text

    served(visit)
