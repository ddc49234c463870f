"""A proxy before a server that runs in a process of its own: it tells what was asked of it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from servers.processes import START_S, ServerError
from servers.s3 import Request

_OF_A_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


class Proxy:
    """A context manager: a server on a free port that forwards each request to another one.

    Attributes: ``endpoint`` (http://…), ``requests``, ``watch`` (called with each request before it
    is forwarded).
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[Request] = []
        self.watch: Callable[[Request], None] | None = None
        handler = type("Handler", (_Handler,), {"proxy": self, "port": port})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.socket.listen(128)  # Arrow opens many connections at once
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Proxy:
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
                raise ServerError(f"no answer to {request.method} {request.path}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: Proxy
    port: int

    def log_message(self, *_: object) -> None:
        """``requests`` tells more."""

    def handle_expect_100(self) -> bool:
        """Send no ``100 Continue`` where there is no content to send, as RFC 9110 has it.

        Azure's client, given it together with an error, takes the last of that error's header for
        the begin of its text, cannot read the text and ends its process.
        """
        has_content = self.headers.get("Content-Length") != "0"
        return super().handle_expect_100() if has_content else True

    def _forward(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        told = Request(self.command, unquote(urlsplit(self.path).path), headers=headers)
        self.proxy.requests.append(told)
        try:
            body = self._body()
            if self.proxy.watch:
                self.proxy.watch(told)
            status, headers, content = self._answer(body)
            told.bytes = len(content)
        finally:
            told.ended.set()
        with suppress(ConnectionError):  # a client that was killed
            self._send(status, headers, content)

    def _send(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _OF_A_CONNECTION or (
                name.lower() == "content-length" and self.command == "HEAD"
            ):
                self.send_header(name, " ".join(value.split()))  # some have several lines
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)

    def _answer(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() not in _OF_A_CONNECTION:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _forward  # noqa: N815
