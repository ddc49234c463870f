"""HDFS over WebHDFS: fsspec's client with failover between NameNodes and between DataNodes.

If a NameNode is unreachable, on standby or still starting, the next one is asked, and after a pause
all of them again. If a DataNode does not answer, or stops in the middle, the NameNode is asked for
another one (``excludedatanodes``): a read goes on where it stopped, a write starts again. A file is
written under a temporary name and renamed when it is complete; a failed rename is an error.
"""

from __future__ import annotations

import errno
import os
import posixpath
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlsplit

import pyarrow.fs as pa_fs
import requests
import urllib3
from fsspec.implementations.webhdfs import WebHDFS
from fsspec.spec import AbstractBufferedFile
from pyarrow import PythonFile

T = TypeVar("T")
_Excluding = dict[str, Any]

TIMEOUT = (10.0, 60.0)
"""Seconds to wait for a connection, and for the next bytes of an answer."""
WRITE_TIMEOUT = (60.0, 300.0)
"""The same for a write: a DataNode is silent while it replaces another in its pipeline."""

_PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds before each round of attempts; together they outlast a failover."""
_OTHER_NAME_NODE = frozenset({"StandbyException", "RetriableException", "SafeModeException"})
_UNAVAILABLE = frozenset({502, 503, 504})
_ERRORS: Mapping[str, int] = {
    "FileNotFoundException": errno.ENOENT,
    "AccessControlException": errno.EACCES,
    "SecurityException": errno.EACCES,
    "FileAlreadyExistsException": errno.EEXIST,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
}
_CHUNK_BYTES = 1 << 20
_CONNECTION_ERRORS = (
    requests.ConnectionError,
    requests.Timeout,
    urllib3.exceptions.HTTPError,
    OSError,
)


def arrow_filesystem(options: Mapping[str, Any]) -> pa_fs.FileSystem:
    """An Arrow file system of an HDFS; ``options`` are the keywords of :class:`Hdfs`."""
    return pa_fs.PyFileSystem(_Handler(Hdfs(**options)))


class _DataNodeError(OSError):
    """A DataNode did not answer, or not completely."""

    def __init__(self, location: str, cause: object) -> None:
        self.host = urlsplit(location).hostname or ""
        super().__init__(errno.EIO, f"DataNode {self.host}: {type(cause).__name__}")


class Hdfs(WebHDFS):  # type: ignore[misc]
    """An HDFS behind its NameNodes' HTTP addresses.

    :param servers: ``http://host:9870`` of each NameNode, in any order.
    :param user: the user's name, for a cluster that trusts its clients.
    :param password: for basic authentication at a gateway in front of the cluster.
    :param kerberos: authenticate by the Kerberos ticket of this process.
    :param proxy_to: act on behalf of this user.
    :param verify: for HTTPS: whether to verify servers, or the file of authorities to do it by.
    :param cert: for HTTPS: the client's certificate, or certificate and key.
    :param headers: further headers of every request.
    """

    protocol = ("hdfs", "webhdfs", "swebhdfs")

    def __init__(
        self,
        servers: Sequence[str],
        user: str | None = None,
        password: str | None = None,
        kerberos: bool = False,
        proxy_to: str | None = None,
        verify: bool | str = True,
        cert: str | Sequence[str] | None = None,
        headers: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        if self._cached:
            return
        first = urlsplit(servers[0])
        super().__init__(
            first.hostname,
            first.port,
            kerberos=kerberos,
            user=None if kerberos else user,
            password=password,
            proxy_to=proxy_to,
            use_https=first.scheme == "https",
            session_cert=tuple(cert) if isinstance(cert, list) else cert,
            session_verify=verify,
            **kwargs,
        )
        self.session.headers.update({"Accept-Encoding": "identity", **(headers or {})})
        self._servers = [server.rstrip("/") for server in servers]
        self._first = 0

    # The NameNode

    def _call(
        self,
        op: str,
        method: str = "get",
        path: str | None = None,
        data: Any = None,
        redirect: bool = True,
        **kwargs: Any,
    ) -> requests.Response:
        """Ask the active NameNode; a redirection to a DataNode is returned, not followed.

        Raises the OSError of the remote exception, or ConnectionError if no NameNode answers.
        """
        path = self._strip_protocol(path or "/")
        parameters = {**kwargs, **self.pars, "op": op.upper()}
        for pause in _PAUSES:
            time.sleep(pause)
            for _ in self._servers:
                server = self._servers[self._first]
                url = f"{server}/webhdfs/v1{quote(path, safe='/=')}"
                answer = self._answer_of(method.upper(), url, parameters, data)
                if answer is not None:
                    _raise_for(answer, path)
                    return answer
                self._first = (self._servers.index(server) + 1) % len(self._servers)
        hosts = ", ".join(self._servers)
        raise ConnectionError(errno.ECONNREFUSED, f"no active NameNode answers at {hosts}")

    def _answer_of(
        self, method: str, url: str, parameters: Mapping[str, Any], data: Any
    ) -> requests.Response | None:
        """A NameNode's answer; None if the caller should ask another one, or this one later."""
        try:
            answer: requests.Response = self.session.request(
                method, url, params=parameters, data=data, allow_redirects=False, timeout=TIMEOUT
            )
        except (requests.ConnectionError, requests.Timeout) as error:
            if parameters["op"] == "RENAME" and not _never_sent(error):
                host = urlsplit(url).netloc
                raise ConnectionError(
                    errno.ECONNRESET,
                    f"NameNode {host} stopped answering; it may have renamed the file",
                ) from None
            return None
        if answer.status_code in _UNAVAILABLE or _exception_of(answer)[0] in _OTHER_NAME_NODE:
            return None
        return answer

    # DataNodes

    def _on_data_nodes(self, path: str, attempt: Callable[[_Excluding], T]) -> T:
        """Attempt an operation on a file; if a DataNode fails, repeat it on others."""
        lost: dict[str, None] = {}
        for pause in (0.0, *_PAUSES):
            time.sleep(pause)
            try:
                return attempt({"excludedatanodes": ",".join(lost)} if lost else {})
            except _DataNodeError as error:
                failure: OSError = error
                lost.update(dict.fromkeys(self._addresses(error.host, path)))
            except (FileNotFoundError, PermissionError):
                raise
            except OSError as error:
                if not lost:  # the NameNode's own error, not its complaint that no DataNode is left
                    raise
                failure = error
                lost.clear()
        raise failure

    def _addresses(self, host: str, path: str) -> Iterator[str]:
        """The addresses, for ``excludedatanodes``, of a file's DataNode with this host name."""
        with suppress(OSError):
            yield socket.gethostbyname(host)
        with suppress(OSError, ValueError, KeyError):
            value = self._call("GETFILEBLOCKLOCATIONS", path=path).json()
            for block in value["BlockLocations"]["BlockLocation"]:
                pairs = zip(block["hosts"], block["names"], strict=True)
                yield from (address for name, address in pairs if name == host)

    def read_range(self, path: str, start: int, end: int) -> bytes:
        """The bytes ``[start, end)`` of a file that has them."""
        content = memoryview(bytearray(end - start))
        done = 0

        def read_on(excluding: _Excluding) -> None:
            nonlocal done
            for chunk in self._chunks(path, start + done, content[done:], excluding):
                done += chunk

        self._on_data_nodes(path, read_on)
        return bytes(content)

    def _chunks(
        self, path: str, offset: int, into: memoryview, excluding: _Excluding
    ) -> Iterator[int]:
        """Fill ``into`` from one DataNode; yields the bytes that each step has added."""
        if not into:
            return
        answer = self._call("OPEN", path=path, offset=offset, length=len(into), **excluding)
        location = answer.headers.get("Location")
        if location is None:  # a gateway sends the content itself
            into[:] = answer.content
            yield len(into)
            return
        with _data_node_errors(location):
            answer = self.session.get(
                self._apply_proxy(location), stream=True, timeout=TIMEOUT, allow_redirects=False
            )
            with closing(answer):
                _raise_for(answer, path)
                done = 0
                while done < len(into):
                    chunk = answer.raw.readinto(into[done : done + _CHUNK_BYTES])
                    if not chunk:
                        raise _DataNodeError(location, EOFError())
                    done += chunk
                    yield chunk

    def upload(self, path: str, content: IO[bytes]) -> None:
        """Write a file as a whole or not at all, replacing one that exists.

        ``content`` is seekable.
        """
        folder, name = posixpath.split(path)
        temporary = posixpath.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.tmp")
        try:
            self._on_data_nodes(
                temporary, lambda excluding: self._put(temporary, content, excluding)
            )
            self.mv(temporary, path)
        except BaseException:
            with suppress(Exception):
                self.rm(temporary)
            raise

    def _put(self, path: str, content: IO[bytes], excluding: _Excluding) -> None:
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        # No parents: a writer that outlives its run must not make its private directory again.
        parameters = {"overwrite": "true", "createparent": "false", **excluding}
        answer = self._call("CREATE", "PUT", path, **parameters)
        location = answer.headers["Location"]
        with _data_node_errors(location):
            answer = self.session.put(
                self._apply_proxy(location),
                data=content if size else b"",
                headers={"Content-Type": "application/octet-stream"},
                timeout=WRITE_TIMEOUT,
                allow_redirects=False,
            )
            _raise_for(answer, path)

    # What fsspec's client leaves out

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(name) for name in path]
        path = os.fspath(path)
        if "://" in path:
            path = "/" + path.partition("://")[2].partition("/")[2]
        return path.rstrip("/") or "/"

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> AbstractBufferedFile:
        kind = {"rb": _Reader, "wb": _Writer}.get(mode)
        if kind is None:
            raise ValueError(f"mode {mode!r}: HDFS files are opened 'rb' or 'wb'")
        size = block_size or self.blocksize
        return kind(self, path, mode, size, cache_options=cache_options, **kwargs)

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        try:
            return _timed(super().info(path))
        except NotADirectoryError:  # the parent is a file
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None

    def ls(self, path: str, detail: bool = False, **kwargs: Any) -> list[Any]:
        infos = super().ls(self._strip_protocol(path), detail=True)
        for info in infos:
            info["name"] = info["name"].rstrip("/")  # a file that is listed itself has one
        return list(map(_timed, infos)) if detail else [info["name"] for info in infos]

    def mkdir(
        self,
        path: str,
        create_parents: bool = True,
        permission: str | None = None,
        **kwargs: Any,
    ) -> None:
        mode: dict[str, Any] = {} if permission is None else {"permission": permission}
        self._call("MKDIRS", "put", path, **mode)

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Rename in one step, replacing a file or an empty directory."""
        target = self._strip_protocol(path2)
        answer = self._call("RENAME", "put", path1, destination=target, renameoptions="OVERWRITE")
        if answer.content and answer.json().get("boolean") is False:
            raise OSError(errno.EIO, "not renamed", path1)

    def rm(self, path: str, recursive: bool = False, **kwargs: Any) -> None:
        for name in [path] if isinstance(path, str) else path:
            answer = self._call("DELETE", "delete", name, recursive=str(recursive).lower())
            if not answer.json()["boolean"]:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)

    def may_write(self, path: str) -> bool:
        """Whether this user may create files in a directory."""
        try:
            self._call("CHECKACCESS", path=path, fsaction="-wx")
        except PermissionError:
            return False
        return True


class _Reader(AbstractBufferedFile):  # type: ignore[misc]
    """A file to read by ranges."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        end = min(self.size, end)
        return self.fs.read_range(self.path, start, end) if start < end else b""


class _Writer(AbstractBufferedFile):  # type: ignore[misc]
    """A file to write: gathered in a nameless local file, uploaded when complete."""

    def _initiate_upload(self) -> None:
        self._gathered = tempfile.TemporaryFile()  # noqa: SIM115 - closed once uploaded

    def _upload_chunk(self, final: bool = False) -> bool:
        self._gathered.write(self.buffer.getvalue())
        if final:
            with self._gathered:
                self.fs.upload(self.path, self._gathered)
        return True


class _Handler(pa_fs.FSSpecHandler):  # type: ignore[misc]
    """Arrow's bridge to fsspec, without fsspec's read-ahead: Arrow has its own."""

    def open_input_file(self, path: str) -> PythonFile:
        return PythonFile(self.fs.open(path, "rb", cache_type="none"), mode="r")

    def open_input_stream(self, path: str) -> PythonFile:
        return self.open_input_file(path)

    def get_file_info_selector(self, selector: pa_fs.FileSelector) -> list[pa_fs.FileInfo]:
        if selector.recursive or selector.allow_not_found:
            recursive: list[pa_fs.FileInfo] = super().get_file_info_selector(selector)
            return recursive
        listed = self.fs.ls(selector.base_dir, detail=True)
        return [self._create_file_info(info["name"], info) for info in listed]


def _timed(info: dict[str, Any]) -> dict[str, Any]:
    return {**info, "mtime": info["modificationTime"] / 1000}


@contextmanager
def _data_node_errors(location: str) -> Iterator[None]:
    """Raise _DataNodeError for a DataNode's failure, unless it is an error about the file."""
    try:
        yield
    except (_DataNodeError, FileNotFoundError, PermissionError):
        raise
    except _CONNECTION_ERRORS as error:
        raise _DataNodeError(location, error) from None


def _exception_of(answer: requests.Response) -> tuple[str, str]:
    """Name and message of the remote exception in an answer; empty if there is none."""
    if answer.status_code < 400:
        return "", ""
    try:
        exception = answer.json()["RemoteException"]
        return str(exception["exception"]), str(exception["message"])
    except (ValueError, KeyError, TypeError):
        return "", ""


def _raise_for(answer: requests.Response, path: str) -> None:
    if answer.status_code < 400:
        return
    name, message = _exception_of(answer)
    if name in {"IllegalArgumentException", "UnsupportedOperationException"}:
        raise ValueError(message)
    code = _ERRORS.get(name, errno.EIO)
    if code == errno.EACCES and "is not a directory" in message:
        code = errno.ENOTDIR
    if answer.status_code == 401:
        raise PermissionError(
            errno.EACCES, "HDFS refuses the credentials; check those of the connection", path
        )
    if code != errno.EIO:
        raise OSError(code, os.strerror(code), path)
    lines = (message or f"HTTP status {answer.status_code}").splitlines()
    raise OSError(code, f"HDFS: {name} {lines[0]}", path)


def _never_sent(error: Exception) -> bool:
    if isinstance(error, requests.ConnectTimeout):
        return True
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    return isinstance(reason, urllib3.exceptions.NewConnectionError)
