"""Which locations and connections a job may name, where somebody else than its user set the limits.

Inside Airflow a job runs with the rights of a worker, whoever filled in the trigger form: so it may
name only what the section ``[mondrian_ops]`` of Airflow's configuration allows, and the operators
say so by :func:`restrict_to`. A person at a command line has no rights but their own, and no limits
unless the environment sets them, by the variables that Airflow reads its section from.

A location is allowed where it lies in or below an allowed one once every symbolic link is followed.
On a remote store the scheme, the connection before the ``@`` and the authority have to be the same
letter by letter; so who names a store's connection in an allowed location allows that connection.
``..`` is refused wherever it stands, percent-encoded too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mondrian_ops.core.errors import JobError
from mondrian_ops.storage.locations import check_path, is_local, local_path, remote_parts, shown

if TYPE_CHECKING:
    from mondrian_ops.core.job import Job

__all__ = [
    "OPTIONS",
    "Allowed",
    "check_found",
    "check_given",
    "check_job",
    "check_reading",
    "check_writing",
    "limits",
    "may_write",
    "restrict_to",
    "restricted_to",
]

OPTIONS = ("allowed_inputs", "allowed_outputs", "allowed_connections", "allowed_spark_conf")
"""Of the section; each a list, separated by commas or lines. What is not set allows nothing."""

_VARIABLE = "AIRFLOW__MONDRIAN_OPS__"
_STEP = re.compile(r"[/\\]")
_WILDCARD = re.compile(r"[*?[]")


@dataclass(frozen=True)
class Allowed:
    """What jobs may name.

    Attributes:
        inputs: paths and URLs that may be read, with all that lies below.
        outputs: those below which may be written too.
        connections: ids of Airflow connections, for ``spark.connection``.
        spark_conf: patterns of the Spark properties that may be set.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    spark_conf: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, str | None], home: str) -> Allowed:
        """From the texts of :data:`OPTIONS`; relative paths are those below ``home``."""
        inputs, outputs, *others = (_listed(options.get(name) or "") for name in OPTIONS)
        places = [tuple(_absolute(each, home) for each in told) for told in (inputs, outputs)]
        return cls(*places, *others)

    def to_json(self) -> dict[str, Any]:
        """A small JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Allowed | None:
        """What :meth:`to_json` gave; None for None."""
        return None if value is None else cls(**{name: tuple(value[name]) for name in value})

    def may_read(self, url: str) -> bool:
        """Whether a location lies in one that may be read."""
        return not _climbs(url) and _below(url, self.inputs + self.outputs) is not None

    def hides(self, url: str) -> bool:
        """Whether a name is hidden on the way to a location from the allowed one it lies in."""
        return _is_hidden(_below(url, self.inputs + self.outputs) or ())

    def may_write(self, url: str) -> bool:
        """Whether a location lies below one that may be written; working files lie beside it."""
        return not _climbs(url) and bool(_below(url, self.outputs))


_given: Allowed | None = None


def restrict_to(allowed: Allowed | None) -> None:
    """Hold jobs to these limits from now on; None: to those of the environment, if it has any."""
    global _given
    _given = allowed


@contextmanager
def restricted_to(allowed: Allowed) -> Iterator[None]:
    """Hold jobs to these limits within the block, and to those of before afterwards."""
    before = _given
    restrict_to(allowed)
    try:
        yield
    finally:
        restrict_to(before)


def limits() -> Allowed | None:
    """What holds in this process; None where jobs may name anything."""
    return _given or _of_environment()


def check_job(job: Job) -> None:
    """Raise JobError where the job names a location, connection or property that is not allowed.

    Nothing of what it names is looked at before, but where symbolic links lead.
    """
    check_given("input", job.input)
    check_given("output", job.output, writing=True)
    check_given("ledger", job.ledger, writing=True)
    allowed = limits()
    if allowed is None or job.engine != "spark":
        return
    if job.spark.connection not in allowed.connections:
        raise _refused(
            f"spark.connection: the connection {job.spark.connection!r}", "allowed_connections"
        )
    for name in job.spark.conf:
        if not any(fnmatchcase(name, pattern) for pattern in allowed.spark_conf):
            raise _refused(f"spark.conf: the property {name!r}", "allowed_spark_conf")


def check_given(
    option: str, url: str | None, *, writing: bool = False, exact: bool = False
) -> None:
    """Raise JobError where ``option`` names a hidden location, one not allowed, or none at all.

    Hidden names are those of working files and of archives, which are nobody's input or output.
    What is read is a pattern, unless it is ``exact``; what is written never is.
    """
    if url is None:
        return
    check_path(option, url)
    allowed = limits()
    if allowed is None:
        return
    if _climbs(url):
        raise JobError(f"{option}: {shown(url)} holds '..'; give the location without it")
    kind = "allowed_outputs" if writing else "allowed_inputs"
    roots = allowed.outputs if writing else allowed.inputs + allowed.outputs
    base = url if writing or exact else _before_wildcard(url)
    # All of it too: names after a wildcard may be hidden, and wildcards be part of a file's name.
    below = None if _below(base, roots) is None else _below(url, roots)
    if below is None:
        raise _refused(f"{option}: {shown(url)}", kind)
    if writing and not below:
        raise JobError(
            f"{option}: {shown(url)} is an allowed location itself, beside which working files "
            "may not be; give a directory in it"
        )
    if _is_hidden(below):
        raise _hidden(option, url)


def check_reading(url: str) -> None:
    """Raise JobError where a file that was found, or a directory, may not be read."""
    allowed = limits()
    if allowed is not None and not allowed.may_read(url):
        raise _led_out("input", url, "allowed_inputs")


def check_found(url: str, root: str) -> None:
    """As :func:`check_reading` for what was found in ``root``, and where it is hidden there.

    What lies in a root that is hidden itself is our own, for no job may name that.
    """
    check_reading(url)
    allowed = limits()
    if allowed is not None and allowed.hides(url) and not allowed.hides(root):
        raise _hidden("input", url)


def check_writing(url: str) -> None:
    """Raise JobError where nothing may be written: an output, or a place for working files."""
    if not may_write(url):
        raise _led_out("output", url, "allowed_outputs")


def may_write(url: str) -> bool:
    """Whether something may be written there."""
    allowed = limits()
    return allowed is None or allowed.may_write(url)


def _refused(what: str, option: str) -> JobError:
    return JobError(
        f"{what} is not allowed here; choose another, or have an administrator add it to {option} "
        "in the section [mondrian_ops] of Airflow's configuration"
    )


def _led_out(option: str, url: str, kind: str) -> JobError:
    return JobError(
        f"{option}: {shown(url)} is, or leads by a symbolic link, outside of what is allowed here; "
        f"remove it, or have an administrator add the location to {kind} in the section "
        "[mondrian_ops] of Airflow's configuration"
    )


def _hidden(option: str, url: str) -> JobError:
    return JobError(
        f"{option}: {shown(url)} is hidden, as working files are; give a location of which no "
        "name starts with a dot"
    )


def _is_hidden(names: Iterable[str]) -> bool:
    return any(name.startswith(".") and not name.startswith("..") for name in names)


def _climbs(url: str) -> bool:
    return ".." in _STEP.split(url) or ".." in _STEP.split(unquote(url))


def _before_wildcard(pattern: str) -> str:
    """The directory that all matches lie below; the whole location where it is no pattern."""
    base, parts = ("", Path(local_path(pattern)).parts) if is_local(pattern) else _split(pattern)
    return base + str(PurePosixPath(*takewhile(lambda part: not _WILDCARD.search(part), parts)))


def _split(url: str) -> tuple[str, tuple[str, ...]]:
    base, path = remote_parts(url)
    return base, PurePosixPath(path).parts


def _below(url: str, roots: Iterable[str]) -> tuple[str, ...] | None:
    """The names that lead from a root to the location; None where it lies in none of them."""
    store, path = _place(url)
    for root in roots:
        its_store, its_path = _place_of_root(root)
        if store == its_store and path.is_relative_to(its_path):
            return path.relative_to(its_path).parts
    return None


def _place(url: str) -> tuple[str, PurePosixPath]:
    """Scheme, connection and authority of a location, empty where it is local, and its path."""
    if not is_local(url):
        base, path = remote_parts(url)
        return base, PurePosixPath(path)
    # Two slashes in the beginning mean one here, but not to PurePosixPath.
    return "", PurePosixPath("/" + os.path.realpath(local_path(url)).lstrip("/"))


@lru_cache(maxsize=64)
def _place_of_root(root: str) -> tuple[str, PurePosixPath]:
    return _place(root)


def _listed(text: str) -> tuple[str, ...]:
    """Separated by commas or lines; blanks around an entry are no part of it."""
    return tuple(each.strip() for each in re.split(r"[,\n]", text) if each.strip())


def _absolute(entry: str, home: str) -> str:
    return str(Path(home, local_path(entry))) if is_local(entry) else entry


def _of_environment() -> Allowed | None:
    told = {name: os.environ.get(_VARIABLE + name.upper()) for name in OPTIONS}
    if all(text is None for text in told.values()):
        return None
    return Allowed.of(told, os.getcwd())
