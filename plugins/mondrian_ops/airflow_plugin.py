"""The plugin: the one file of this package that Airflow itself loads.

Every process of Airflow loads it, so it imports nothing heavy before the first request of a page.
"""

from __future__ import annotations

import asyncio
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

from mondrian_ops.links import PREFIX, RECORD, VIEW

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

    from mondrian_ops.catalogue import Catalogue

_APP = PREFIX.removeprefix("/")  # relative to Airflow's own address
_MAKING = Lock()
_ICONS = {"icon": f"{_APP}/static/icon.svg", "icon_dark_mode": f"{_APP}/static/icon-dark.svg"}


async def pages(scope: Any, receive: Any, send: Any) -> None:
    """The pages as an ASGI application, which the first request creates.

    A thread creates it, because its imports take long and Airflow answers other requests meanwhile.
    """
    app = await asyncio.to_thread(_made_once, _pages)
    await app(scope, receive, send)


async def record(scope: Any, receive: Any, send: Any) -> None:
    """What tasks ask of Airflow's record of an answer, made as :func:`pages` is."""
    app = await asyncio.to_thread(_made_once, _record)
    await app(scope, receive, send)


def _made_once(make: Callable[[], FastAPI]) -> FastAPI:
    with _MAKING:
        return make()


@cache
def _pages() -> FastAPI:
    from mondrian_ops.hooks import settings
    from mondrian_ops.web.pages import create

    return create(_catalogue, settings.drift())


@cache
def _record() -> FastAPI:
    from mondrian_ops.web.record import create

    return create(_catalogue)


@cache
def _catalogue() -> Catalogue:
    from mondrian_ops.catalogue import Catalogue
    from mondrian_ops.hooks import settings

    return Catalogue(settings.catalogue_place(with_key=False), patience_s=0)


class MondrianOpsPlugin(AirflowPlugin):
    """Registers mondrian_ops with Airflow; its operators and task groups are plain imports."""

    name = "mondrian_ops"
    fastapi_apps: list[Any] = [  # noqa: RUF012 - as Airflow declares it
        {"app": pages, "name": "mondrian_ops", "url_prefix": PREFIX},
        {"app": record, "name": "mondrian_ops_record", "url_prefix": RECORD},
    ]
    external_views: list[Any] = [  # noqa: RUF012
        {
            "name": "Anonymization",
            "href": f"{_APP}/releases",
            "destination": "nav",
            "url_route": VIEW,
            "nav_top_level": True,
            **_ICONS,
        },
        {
            "name": "Anonymization",
            "href": f"{_APP}/releases?dag_id={{DAG_ID}}",
            "destination": "dag",
            "url_route": f"{VIEW}-dag",
            **_ICONS,
        },
        {
            "name": "Anonymization",
            "href": f"{_APP}/run?dag_id={{DAG_ID}}&run_id={{RUN_ID}}",
            "destination": "dag_run",
            "url_route": f"{VIEW}-run",
            **_ICONS,
        },
    ]
