"""The pages as an application that Airflow mounts.

Airflow mounts it without any check of its own: here, every route asks for a user as Airflow's own
routes do, by token or by cookie, and shows what comes from DAGs that this user may read. What comes
from others is answered as what is not there.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import jinja2
from airflow.api_fastapi.core_api.security import GetUserDep, get_user
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from mondrian_ops import links
from mondrian_ops import report as reports
from mondrian_ops.core.errors import MondrianOpsError
from mondrian_ops.report import figures
from mondrian_ops.storage import Archive
from mondrian_ops.web import comparison, details
from mondrian_ops.web.reader import Listing, Reader
from mondrian_ops.web.releases import (
    NIGHTS,
    SORTS,
    Choice,
    Release,
    dataset_name,
    nights_of,
    page_of,
)

__all__ = ["create"]

HERE = Path(__file__).parent

STATIC = {
    "charts.js": "text/javascript",
    "echarts.min.js": "text/javascript",
    "icon-dark.svg": "image/svg+xml",
    "icon.svg": "image/svg+xml",
    "links.js": "text/javascript",
    "look.js": "text/javascript",
    "pages.css": "text/css",
    "pages.js": "text/javascript",
}

HEADERS = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

MAX_CARDS = 8

_log = logging.getLogger(__name__)


def create(archive: Archive, drift: float = 0.2) -> FastAPI:
    """The application over an archive of reports.

    :param drift: the relative change of loss or rows, from the nights before, that is marked.
    """
    app = FastAPI(
        title="mondrian_ops",
        dependencies=[Depends(get_user)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    pages = Pages(archive, drift)
    routes: dict[str, Callable[..., Response]] = {
        "/": pages.start,
        "/releases": pages.releases,
        "/run": pages.run,
        "/releases/{entry_id}": pages.release,
        "/releases/{entry_id}/report.json": pages.report_json,
        "/releases/{entry_id}/report.html": pages.report_html,
        "/compare": pages.compare,
        "/static/{name}": pages.static,
        "/{rest:path}": pages.nothing,
    }
    for path, page in routes.items():
        # The server leaves out the body where the method is HEAD.
        app.api_route(path, methods=["GET", "HEAD"], include_in_schema=False)(page)
    for error in (StarletteHTTPException, RequestValidationError, MondrianOpsError, OSError):
        app.exception_handler(error)(pages.error)
    app.exception_handler(Exception)(pages.error)
    return app


class Pages:
    """The routes. Links are paths below where Airflow, and in it this application, is mounted."""

    def __init__(self, archive: Archive, drift: float) -> None:
        self._listing = Listing(archive)
        self._drift = drift
        self._templates = _templates()

    def start(self, request: Request) -> Response:
        """The way to the list."""
        return RedirectResponse(f"{_root(request)}/releases", 303, HEADERS)

    def releases(
        self,
        request: Request,
        user: GetUserDep,
        choice: Annotated[Choice, Depends()],
    ) -> Response:
        """The list of releases."""
        return self._list(request, Reader(self._listing, user), choice)

    def _list(self, request: Request, reader: Reader, choice: Choice) -> Response:
        releases = reader.releases()
        page = page_of(releases, choice)
        series = list(dict.fromkeys(release.series for release in page.rows))
        nights = nights_of(releases, series)
        drifts = {
            release.id: drift.beyond(self._drift)
            for told in nights.values()
            for release, drift in told
        }
        return self._page(
            request,
            "releases.html",
            choice=choice,
            page=page,
            drifts=drifts,
            threshold=self._drift,
            datasets=[_dataset(name, nights[name], drifts) for name in series[:MAX_CARDS]],
            more_datasets=max(0, len(series) - MAX_CARDS),
            states=sorted({release.state for release in releases}),
            dags=sorted({release.dag_id for release in releases}),
            sorts=list(SORTS),
        )

    def run(self, request: Request, user: GetUserDep, dag_id: str, run_id: str) -> Response:
        """The release of a DAG run, or the list of its releases."""
        reader = Reader(self._listing, user)
        choice = Choice(dag_id=dag_id, run_id=run_id)
        found = [release for release in reader.releases() if choice.takes(release)]
        if len(found) == 1:
            return RedirectResponse(f"{_root(request)}/releases/{found[0].id}", 303, HEADERS)
        return self._list(request, reader, choice)

    def release(self, request: Request, user: GetUserDep, entry_id: str) -> Response:
        """One release."""
        reader = Reader(self._listing, user)
        release = reader.release(entry_id)
        report = reader.report(release)
        nights = nights_of(reader.releases(), [release.series])[release.series]
        before = [each for each, _ in nights if each.time < release.time]
        return self._page(
            request,
            "release.html",
            release=release,
            before=before[-1] if before else None,
            tasks=_tasks(release, _airflow_root(request)),
            answer=_answer(release, _airflow_root(request)),
            **_of_report(report, has_report=reports.JSON_NAME in release.files),
            frontier=_frontier(reader, {"this release": release}),
        )

    def report_json(self, user: GetUserDep, entry_id: str) -> Response:
        """The report as it is kept."""
        reader = Reader(self._listing, user)
        content = reader.content(reader.release(entry_id))
        return _download(content, "application/json", f"{entry_id}.json")

    def report_html(self, user: GetUserDep, entry_id: str) -> Response:
        """The report as one page for filing, made anew: nothing that is kept is taken as markup."""
        reader = Reader(self._listing, user)
        report = reader.report(reader.release(entry_id))
        try:
            page = reports.render_html(report or {})
        except details.DAMAGE:
            raise HTTPException(404, "This release has no report that can be shown.") from None
        return _download(page.encode(), "text/html; charset=utf-8", f"{entry_id}.html")

    def compare(
        self,
        request: Request,
        user: GetUserDep,
        id: Annotated[list[str], Query()],  # noqa: A002
    ) -> Response:
        """Two releases side by side."""
        if len(id) != 2:
            raise HTTPException(400, "Choose two releases to compare.")
        reader = Reader(self._listing, user)
        pair = sorted((reader.release(each) for each in id), key=lambda release: release.time)
        told = [reader.report(release) for release in pair]
        try:
            sections = comparison.compared([report for report in told if report is not None])
        except details.DAMAGE:
            sections = []
        return self._page(
            request,
            "compare.html",
            pair=pair,
            figures=comparison.figures_of_both(pair),
            sections=sections,
            frontier=_frontier(reader, dict(zip("AB", pair, strict=True))),
        )

    def static(self, name: str) -> Response:
        """Style, script or picture; these change with the version only."""
        if name not in STATIC:
            raise HTTPException(404)
        headers = {**HEADERS, "Cache-Control": "private, max-age=31536000, immutable"}
        content = (HERE / "static" / name).read_bytes()
        return Response(content, media_type=STATIC[name], headers=headers)

    def nothing(self, rest: str) -> Response:
        """There is no such page, which only a user is told."""
        raise HTTPException(404)

    def error(self, request: Request, error: Exception) -> Response:
        """A page that says what is wrong, and nothing of what lies behind it."""
        status, said = _said(error)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.error("%s: %s", request.url.path, error, exc_info=error)
        answer = self._page(request, "error.html", status=status, said=said)
        answer.headers.update(getattr(error, "headers", None) or {})  # which methods there are
        return answer

    def _page(self, request: Request, template: str, status: int = 200, **told: Any) -> Response:
        page = self._templates.get_template(template).render(
            root=_root(request),
            airflow=_airflow_root(request),
            links=links,
            url=request.url,
            **told,
            status=status,
        )
        return HTMLResponse(page, status, HEADERS)


def _said(error: Exception) -> tuple[int, str]:
    """Status and text for a person."""
    if isinstance(error, StarletteHTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        is_own = isinstance(error.detail, str) and error.detail != phrase
        return error.status_code, f"{error.detail}" if is_own else f"{phrase}."
    if isinstance(error, RequestValidationError):
        return 400, "The address asks for something that makes no sense."
    if isinstance(error, MondrianOpsError | OSError):
        return 503, (
            "The archive of reports cannot be read. Airflow's configuration says where it is "
            "([mondrian_ops] reports); the API server's log says what is wrong."
        )
    return 500, "Something went wrong; the API server's log says what."


def _of_report(report: details.Report | None, has_report: bool) -> dict[str, Any]:
    """What the page of a release shows of its report; ``damaged`` where that makes no sense."""
    empty = ("cards", "sections", "guarantees", "columns", "making", "checked", "warning", "notes")
    nothing = {**dict.fromkeys(empty, ()), "damaged": has_report}
    if report is None:
        return nothing
    try:
        verification = report.get("verification") or {}
        return {
            "cards": details.cards(report),
            "sections": details.sections(report),
            "guarantees": details.guarantees(report),
            "columns": details.columns(report),
            "making": details.making(report),
            "checked": [str(each) for each in verification.get("checked", ())],
            "warning": _warning(report),
            "notes": [str(each) for each in [*report.get("notes", ()), report.get("limits", "")]],
            "damaged": False,
        }
    except details.DAMAGE:
        return nothing


def _warning(report: details.Report) -> str:
    """What to mind before all else."""
    warnings = (figures.published_raw(report.get("columns") or {}), figures.warning(report))
    return " ".join(filter(None, warnings))


def _frontier(reader: Reader, at: dict[str, Release]) -> details.Section | None:
    """The frontier of the input that these releases have in common, if somebody measured it."""
    inputs = {dataset_name(release.input) for release in at.values()}
    told = reader.frontier(*inputs) if len(inputs) == 1 else None
    try:
        return details.frontier(told, at) if told else None
    except details.DAMAGE:
        return None


def _dataset(
    series: str, nights: list[tuple[Release, Any]], drifts: dict[str, list[tuple[str, float]]]
) -> dict[str, Any]:
    """A dataset's latest figures and its sparkline."""
    shown = [release for release, _ in nights[-NIGHTS:] if release.GCP is not None]
    losses = [release.GCP or 0.0 for release in shown]
    label = "no release was published"
    if losses:
        low, high = figures.percent(min(losses)), figures.percent(max(losses))
        label = f"information lost in {len(losses)} releases: {low} to {high}, "
        label += f"now {figures.percent(losses[-1])}"
    return {
        "name": series,
        "latest": shown[-1] if shown else None,
        "chart": {
            "kind": "spark",
            "label": label,
            "labels": [release.time[:16].replace("T", " ") for release in shown],
            "values": losses,
            "marked": [at for at, release in enumerate(shown) if drifts.get(release.id)],
        },
    }


def _tasks(release: Release, root: str) -> list[tuple[str, str]]:
    """Name and path of the tasks that made a release."""
    group, dot, _ = release.task_id.rpartition(".")
    found = []
    for name in ("partition", "anonymize_fragment", "wrap_up"):
        map_index = None if name == "anonymize_fragment" else release.map_index
        path = links.task_path(release.dag_id, release.run_id, group + dot + name, map_index, root)
        found.append((name, path))
    return found


def _answer(release: Release, root: str) -> str:
    """Path of the page where somebody may approve or reject it; empty where nobody is asked."""
    if release.state != "waiting":
        return ""
    return links.action_path(
        release.dag_id, release.run_id, release.task_id, release.map_index, root
    )


def _download(content: bytes, kind: str, name: str) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="release-{name}"'}
    return Response(content, media_type=kind, headers=headers)


def _root(request: Request) -> str:
    """Where this application is mounted."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def _airflow_root(request: Request) -> str:
    """Where Airflow is: nothing, or the path of ``[api] base_url``."""
    return _root(request).removesuffix(links.PREFIX)


def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Before it is escaped, text loses what reorders or hides it on a screen.
        finalize=lambda value: figures.printable(value) if type(value) is str else value,
    )
    environment.filters |= {
        "number": figures.number,
        "percent": _dash(figures.percent),
        "seconds": _dash(figures.seconds),
        "size": _dash(figures.size),
        "when": lambda release: release.when.strftime("%Y-%m-%d %H:%M") if release.when else "–",
    }
    environment.globals |= {"version": _version(), "json": json}
    return environment


def _dash(write: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda value: "–" if value is None else write(value)


def _version() -> str:
    """A text that changes with the static files."""
    digest = hashlib.sha256()
    for name in sorted(STATIC):
        digest.update((HERE / "static" / name).read_bytes())
    return digest.hexdigest()[:12]
