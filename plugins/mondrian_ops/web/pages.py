"""The pages as an application that Airflow mounts.

Airflow does not check who visits a plugin's application. So every route here requires a user, by
token or cookie as Airflow's own routes do, and shows releases of the DAGs that this user may read.
A release of another DAG gets the same answer as one that does not exist.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import wraps
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
from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.report import number_format
from mondrian_ops.report.charts import Spark, Spot
from mondrian_ops.report.frontier import DAMAGE, frontier_section, is_on_curve
from mondrian_ops.report.page import STYLE, environment
from mondrian_ops.report.sections import Section, Table, sections
from mondrian_ops.report.series import MOST_NIGHTS, series_sections
from mondrian_ops.web import comparison
from mondrian_ops.web.bulkhead import Bulkhead
from mondrian_ops.web.reader import OpenCatalogue, Reader
from mondrian_ops.web.release_list import BEFORE, Choice, ListedNight, Release, drifts_of, when

HERE = Path(__file__).parent

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC = {
    path.name: path
    for path in (STYLE, *sorted((HERE / "static").iterdir()))
    if path.suffix in MEDIA_TYPES
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

MAX_CHARACTERS = 4096
"""Of each parameter of an address. A path is no longer; SQLite compares no text of 50,000 bytes."""

MAX_CARDS = 8
SPARK_POINTS = 60

_log = logging.getLogger(__name__)


def create(
    open_catalogue: OpenCatalogue, drift: float = 0.2, bulkhead: Bulkhead | None = None
) -> FastAPI:
    """The application over a catalogue.

    :param drift: the relative change of loss or rows from one night to the next that is marked.
    :param bulkhead: answers the pages that read the catalogue.
    """
    app = FastAPI(dependencies=[Depends(get_user)], openapi_url=None)
    app.state.open_catalogue = open_catalogue
    pages = Pages(drift)
    around = (bulkhead or Bulkhead()).around

    def reading(page: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
        return around(_opened(page))

    routes: dict[str, Callable[..., Response | Awaitable[Response]]] = {
        "/": pages.start,
        "/releases": reading(pages.releases),
        "/run": reading(pages.run),
        "/releases/{entry_id}": reading(pages.release),
        "/releases/{entry_id}/series": reading(pages.series),
        "/releases/{entry_id}/report.json": reading(pages.report_json),
        "/releases/{entry_id}/report.html": reading(pages.report_html),
        "/compare": reading(pages.compare),
        "/static/{name}": pages.static,
        "/{rest:path}": pages.nothing,
    }
    for path, page in routes.items():
        # The server drops the body of an answer to HEAD.
        app.api_route(path, methods=["GET", "HEAD"], include_in_schema=False)(page)
    for error in (StarletteHTTPException, RequestValidationError, MondrianOpsError, OSError):
        app.exception_handler(error)(pages.error)
    app.exception_handler(Exception)(pages.error)
    return app


def _reader(request: Request, user: GetUserDep) -> Reader:
    if b"%00" in request.scope["query_string"] or "\0" in request.scope["path"]:
        raise HTTPException(400, "The address has a NUL character, which no text here has.")
    given = [
        *request.path_params.values(),
        *(text for _, text in request.query_params.multi_items()),
    ]
    if any(len(text) > MAX_CHARACTERS for text in given):
        raise HTTPException(
            400, f"The address has a parameter of more than {MAX_CHARACTERS:,} characters."
        )
    return Reader(request.app.state.open_catalogue, user)


def _opened(page: Callable[..., Response]) -> Callable[..., Response]:
    """The page, within the transaction of its reader."""

    @wraps(page)
    def opened(*arguments: Any, reader: Reader, **options: Any) -> Response:
        with reader.opened():
            return page(*arguments, reader=reader, **options)

    return opened


ReaderDep = Annotated[Reader, Depends(_reader)]


class Pages:
    """The routes. Links begin with the path under which Airflow mounts this application."""

    def __init__(self, drift: float) -> None:
        self._threshold = drift
        self._templates = _templates()

    def start(self, request: Request) -> Response:
        """A redirect to the list."""
        return RedirectResponse(f"{_root(request)}/releases", 303, HEADERS)

    def releases(
        self, request: Request, reader: ReaderDep, choice: Annotated[Choice, Depends()]
    ) -> Response:
        """The list of releases."""
        page = reader.page(choice)
        by_series: dict[str, list[str]] = {}
        for release in page.rows:
            by_series.setdefault(release.series, []).append(release.time)
        drifts: dict[str, dict[str, float]] = defaultdict(dict)
        for series, times in by_series.items():
            nights = reader.nights(series, min(times), max(times))
            drifts |= drifts_of(nights, self._threshold)
        return self._page(
            request,
            "releases.html",
            choice=choice,
            page=page,
            drifts=drifts,
            threshold=self._threshold,
            datasets=[(name, *self._latest(reader, name)) for name in [*by_series][:MAX_CARDS]],
            more_datasets=max(0, len(by_series) - MAX_CARDS),
            states=reader.states(),
            dags=reader.dags(),
        )

    def _latest(
        self, reader: Reader, series: str
    ) -> tuple[ListedNight | None, dict[str, float], Spark]:
        """The latest release of a dataset, its drift, and a line of the loss over its nights."""
        nights = reader.latest(series, SPARK_POINTS + BEFORE)
        drifts = drifts_of(nights, self._threshold)
        shown = [night for night in nights[-SPARK_POINTS:] if night.GCP is not None]
        latest = shown[-1] if shown else None
        return latest, drifts[latest.id] if latest else {}, _spark(shown, drifts)

    def run(self, request: Request, reader: ReaderDep, dag_id: str, run_id: str) -> Response:
        """The release of a DAG run, or the list of its releases."""
        choice = Choice(dag_id=dag_id, run_id=run_id)
        page = reader.page(choice)
        if page.total == 1:
            return RedirectResponse(f"{_root(request)}/releases/{page.rows[0].id}", 303, HEADERS)
        return self.releases(request, reader, choice)

    def release(self, request: Request, reader: ReaderDep, entry_id: str) -> Response:
        """One release."""
        release = reader.release(entry_id)
        content = reader.content(release)
        report = _report(content)
        return self._page(
            request,
            "release.html",
            release=release,
            before=(before := reader.before(release)),
            since=comparison.since(before, release),
            tasks=_tasks(release, _airflow_root(request)),
            report=report,
            sections=sections(report) if report else [],
            from_list=_from_list(release),
            is_damaged=report is None and content is not None,
            frontier=_frontier(reader, {"this release": release}),
        )

    def series(self, request: Request, reader: ReaderDep, entry_id: str) -> Response:
        """The series of which a release is a night."""
        release = reader.release(entry_id)
        report = _report(reader.content(release))
        name = report.series.name if report and report.series else ""
        nights = reader.series(release, name) if name else []
        if not nights:
            raise HTTPException(404, "This release is no night of a series that you may read.")
        return self._page(
            request,
            "series.html",
            release=release,
            name=name,
            nights=nights,
            most=MOST_NIGHTS,
            sections=series_sections(nights),
        )

    def report_json(self, reader: ReaderDep, entry_id: str) -> Response:
        """The report as the catalogue holds it."""
        content = reader.content(reader.release(entry_id))
        if content is None:
            raise HTTPException(404, "This release has no report.")
        return _download(content, "application/json", f"{entry_id}.json")

    def report_html(self, reader: ReaderDep, entry_id: str) -> Response:
        """The report as one page for filing, rendered anew: stored HTML is never served."""
        report = _report(reader.content(reader.release(entry_id)))
        if report is None:
            raise HTTPException(404, "This release has no readable report.")
        page = reports.render_html(report).encode()
        return _download(page, "text/html; charset=utf-8", f"{entry_id}.html")

    def compare(
        self,
        request: Request,
        reader: ReaderDep,
        id: Annotated[list[str], Query()],  # noqa: A002
    ) -> Response:
        """Two releases side by side."""
        if len(id) != 2:
            raise HTTPException(400, "Choose two releases to compare.")
        pair = sorted(map(reader.release, id), key=lambda release: release.time)
        found = [_report(reader.content(release)) for release in pair]
        read = [report for report in found if report]
        measured = [report for report in read if report.is_measured]
        return self._page(
            request,
            "compare.html",
            pair=pair,
            differences=comparison.differences(read) if len(read) == 2 else None,
            figures=comparison.figures_of_both(pair),
            sections=comparison.compared(measured) if len(measured) == 2 else [],
            frontier=_frontier(reader, dict(zip("AB", pair, strict=True))),
        )

    def static(self, name: str) -> Response:
        """A style, script or picture; browsers keep it, because its address names the version."""
        if name not in STATIC:
            raise HTTPException(404)
        headers = {**HEADERS, "Cache-Control": "private, max-age=31536000, immutable"}
        path = STATIC[name]
        return Response(path.read_bytes(), media_type=MEDIA_TYPES[path.suffix], headers=headers)

    def nothing(self, rest: str) -> Response:
        """404 for every other path, but only for a user: others get 401."""
        raise HTTPException(404)

    def error(self, request: Request, error: Exception) -> Response:
        """A page that explains an error without its details, which are in the log."""
        status, explanation = _explained(error)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            is_told = isinstance(error, StarletteHTTPException)  # its text says all
            _log.error("%s: %s", request.url.path, error, exc_info=None if is_told else error)
        answer = self._page(request, "error.html", status=status, explanation=explanation)
        answer.headers.update(getattr(error, "headers", None) or {})  # such as Allow
        return answer

    def _page(self, request: Request, template: str, status: int = 200, **shown: Any) -> Response:
        page = self._templates.get_template(template).render(
            root=_root(request),
            airflow=_airflow_root(request),
            **shown,
            status=status,
        )
        return HTMLResponse(page, status, HEADERS)


def _explained(error: Exception) -> tuple[int, str]:
    """Status and text for a person."""
    if isinstance(error, StarletteHTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        is_own = isinstance(error.detail, str) and error.detail != phrase
        return error.status_code, f"{error.detail}" if is_own else f"{phrase}."
    if isinstance(error, RequestValidationError):
        return 400, "The address has a missing or a wrong parameter."
    if isinstance(error, MondrianOpsError | OSError):
        return 503, (
            "The catalogue of releases cannot be read. The options [mondrian_ops] catalogue and "
            "catalogue_conn_id in Airflow's configuration say where it is; the API server's log "
            "says what is wrong."
        )
    return 500, "The page failed. The API server's log says why."


def _from_list(release: Release) -> Table:
    """Required and achieved k, l and t of a release without a report."""
    rows = [
        (name, number_format.number(required), number_format.number(achieved))
        for name, required, achieved in (
            ("k-anonymity", release.k, release.achieved_k),
            ("l-diversity", release.l, release.achieved_l),
            ("t-closeness", release.t, release.achieved_t),
        )
        if required is not None or name == "k-anonymity"
    ]
    return Table(("requirement", "required", "achieved"), rows)


def _frontier(reader: Reader, releases: dict[str, Release]) -> Section | None:
    """The newest frontier of the input that named releases share, and where these lie on it.

    None where nobody measured it, or only for other columns or another way to cut.
    """
    inputs = {release.input_series for release in releases.values()}
    content = reader.frontier(*inputs) if len(inputs) == 1 else None
    if content is None:
        return None
    try:
        frontier = json.loads(content)
        pins = {
            name: (release.k, release.GCP)
            for name, release in releases.items()
            if release.k is not None
            and release.GCP is not None
            and is_on_curve(frontier, json.loads(reader.content(release) or "{}").get("job", {}))
        }
        return frontier_section(frontier, pins) if pins else None
    except (*DAMAGE, RecursionError):
        return None


def _spark(shown: list[ListedNight], drifts: dict[str, dict[str, float]]) -> Spark:
    losses = [night.GCP or 0.0 for night in shown]
    low, high = min(losses, default=0.0), max(losses, default=0.0)
    spots = tuple(
        Spot(
            at / (len(shown) - 1) if len(shown) > 1 else 0.5,
            (loss - low) / (high - low) if high > low else 0.5,
            f"{when(night.time)}: {number_format.percent(loss)} lost",
            marked=bool(drifts[night.id]),
        )
        for at, (night, loss) in enumerate(zip(shown, losses, strict=True))
    )
    description = (
        f"Information lost in {len(losses)} releases: {number_format.percent(low)} to "
        f"{number_format.percent(high)}, now {number_format.percent(losses[-1] if losses else 0.0)}"
    )
    return Spark(description, spots)


def _report(content: bytes | None) -> reports.Report | None:
    """The report; None where there is none, or it is damaged."""
    if content is None:
        return None
    try:
        return reports.Report.from_json(content).named()
    except reports.ReportError:
        return None


def _tasks(release: Release, root: str) -> list[tuple[str, str]]:
    """Name and path of the tasks that made a release."""
    group, dot, _ = release.task_id.rpartition(".")
    at = release.map_index
    return [
        (name, links.task_path(release.dag_id, release.run_id, group + dot + name, index, root))
        for name, index in (("partition", at), ("anonymize_fragment", None), ("wrap_up", at))
    ]


def _download(content: bytes, kind: str, name: str) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="release-{name}"'}
    return Response(content, media_type=kind, headers=headers)


def _root(request: Request) -> str:
    """The path under which Airflow mounts this application."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def _airflow_root(request: Request) -> str:
    """The path of Airflow: empty, or that of ``[api] base_url``."""
    return _root(request).removesuffix(links.PREFIX)


def _templates() -> jinja2.Environment:
    templates = environment(HERE / "templates")
    templates.globals |= {"links": links, "version": _version()}
    return templates


def _version() -> str:
    """A text that changes when a static file does."""
    digest = hashlib.sha256()
    for path in STATIC.values():
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
