"""A small HTTP server for a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """What a client asks."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def http_server(
    answer: Callable[[Request], tuple[int, str] | tuple[int, str, str]],
) -> Iterator[int]:
    """A server that answers with a status, a text and perhaps its type; gives its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            status, text, *kind = answer(Request(self.command, self.path, dict(self.headers), body))
            self.send_response(status)
            for each in kind:
                self.send_header("Content-Type", each)
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_arguments: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()
