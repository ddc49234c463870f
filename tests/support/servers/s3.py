"""An S3 server: moto's, behind real HTTP. It counts for the protocol, not for Amazon's limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from servers.processes import START_S, ServerError


@dataclass
class Request:
    """One request, and how much was answered to it so far."""

    method: str
    path: str
    bytes: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)


class S3:
    """A context manager: a server on a free port, with what was asked of it.

    Attributes: ``endpoint`` (http://…), ``options`` (keywords of pyarrow's S3FileSystem),
    ``environment`` (variables for a process of its own), ``requests``, ``watch`` (called with each
    request before it is answered).
    """

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            def log(self, *_: object, **__: object) -> None:
                """``requests`` tells more."""

        self.requests: list[Request] = []
        self.watch: Callable[[Request], None] | None = None
        application = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._counting(application), threaded=True, request_handler=Quiet
        )
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def options(self) -> dict[str, Any]:
        """For pyarrow's S3FileSystem."""
        return {
            "access_key": "test",
            "secret_key": "test",
            "region": "us-east-1",
            "scheme": "http",
            "endpoint_override": self.endpoint.removeprefix("http://"),
        }

    @property
    def environment(self) -> dict[str, str]:
        """As AWS's tools, and this project, read it."""
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def __enter__(self) -> S3:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def settle(self) -> None:
        """Wait until every request so far is carried out, those of a killed client too."""
        for request in self.requests:
            if not request.ended.wait(START_S):
                raise ServerError(f"S3 did not answer {request.method} {request.path}")

    def _counting(self, application: Callable[..., Iterable[bytes]]) -> Callable[..., Any]:
        def counted(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
            headers = {
                name.removeprefix("HTTP_").lower().replace("_", "-"): value
                for name, value in environ.items()
                if name.startswith("HTTP_")
            }
            told = Request(environ["REQUEST_METHOD"], environ["PATH_INFO"], headers=headers)
            self.requests.append(told)
            try:
                if self.watch:
                    self.watch(told)
                for chunk in application(environ, start_response):
                    told.bytes += len(chunk)
                    yield chunk
            finally:
                told.ended.set()

        return counted
