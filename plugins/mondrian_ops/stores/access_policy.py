"""Which locations and connections a job may name.

Inside Airflow a job runs with the rights of a worker, whoever filled in the trigger form. A job may
therefore name only what the section ``[mondrian_ops]`` of Airflow's configuration allows; the
operators apply this policy with :func:`use_policy`. On a command line a job runs with the rights of
its user, so there is no policy unless the environment variables from which Airflow reads the
section are set.

A location is allowed if it is an allowed location or lies below one, after all symbolic links are
followed. On a remote store the scheme, the connection before the ``@`` and the authority must be
equal, so an allowed location also allows its connection. ``..`` is always refused, even
percent-encoded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mondrian_ops.errors import JobError
from mondrian_ops.job.checks import refuse_template
from mondrian_ops.late_methods import dataclass
from mondrian_ops.stores.locations import (
    WAITING,
    before_wildcard,
    check_path,
    home,
    is_local,
    is_of_table,
    local_path,
    parts_of,
    shown,
)

if TYPE_CHECKING:
    from mondrian_ops.job.job import Job

OPTIONS = ("allowed_inputs", "allowed_outputs", "allowed_connections", "allowed_spark_conf")
"""The section's options: lists, separated by commas or lines. An unset option allows nothing."""

_VARIABLES = tuple(f"AIRFLOW__MONDRIAN_OPS__{name.upper()}" for name in OPTIONS)
_UNSET = (None,) * len(_VARIABLES)
_SEPARATOR = re.compile(r"[/\\]")


@dataclass(frozen=True)
class AccessPolicy:
    """The locations, connections and Spark properties that jobs may name.

    Attributes:
        inputs: paths and URLs that may be read, and everything below them.
        outputs: paths and URLs below which may be written, and read.
        connections: ids of Airflow connections, for ``spark.connection``.
        spark_conf: patterns of the Spark properties that may be set.
        dags: directories of DAG files, in which job files and their hierarchies may lie, too.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    spark_conf: tuple[str, ...] = ()
    dags: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, str | None], dags: Iterable[str] = ()) -> AccessPolicy:
        """The policy that the section's options describe."""
        inputs, outputs, spark, conf = (_listed(options.get(name) or "") for name in OPTIONS)
        return cls(_absolute(inputs), _absolute(outputs), spark, conf, tuple(dags))

    def to_json(self) -> dict[str, Any]:
        """A small JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> AccessPolicy | None:
        """The policy that :meth:`to_json` wrote; None for None."""
        return None if value is None else cls(**{name: tuple(value[name]) for name in value})

    def names_to(self, url: str) -> tuple[str, ...] | None:
        """The names from an allowed location to this one; None if it lies below none."""
        return None if _goes_up(url) else below(url, self.inputs + self.outputs)

    def may_read(self, url: str) -> bool:
        """Whether a location may be read."""
        return self.names_to(url) is not None

    def may_write(self, url: str) -> bool:
        """Whether a location may be written.

        An allowed location itself may not: its working files would lie beside it. Those of a table
        lie where its files are.
        """
        names = None if _goes_up(url) else below(url, self.outputs)
        return names is not None and bool(names or is_of_table(url))


_in_use: AccessPolicy | None = None


def use_policy(policy: AccessPolicy | None) -> None:
    """Apply a policy in this process; None: that of the environment, if it has one."""
    global _in_use
    _in_use = policy


def current_policy() -> AccessPolicy | None:
    """The policy of this process; None if jobs may name anything."""
    return _in_use or _of_environment()


def check_access(job: Job) -> None:
    """Raise JobError if the job names a location, connection or property that is not allowed.

    Symbolic links are followed; no file is opened.
    """
    check_location("input", job.input)
    check_location("output", job.output, writing=True)
    policy = current_policy()
    if policy is None or job.engine != "spark":
        return
    if job.spark.connection not in policy.connections:
        raise _refused(
            f"spark.connection: the connection {job.spark.connection!r}", "allowed_connections"
        )
    for name in job.spark.conf:
        if not any(fnmatchcase(name, pattern) for pattern in policy.spark_conf):
            raise _refused(f"spark.conf: the property {name!r}", "allowed_spark_conf")


def check_location(
    option: str, url: str | None, *, writing: bool = False, exact: bool = False
) -> None:
    """Raise JobError if ``option`` names a location that is impossible, not allowed, or hidden.

    Working files have hidden names, so that no job reads or writes them.
    A location to read is a pattern, unless it is ``exact``; a location to write never is.
    """
    if url is None:
        return
    refuse_template(option, url)
    check_path(option, url)
    if WAITING in _SEPARATOR.split(url):
        raise JobError(
            f"{option}: {shown(url)} has rows that wait for a night of their series, which no "
            "other job may publish; give another location"
        )
    policy = current_policy()
    if policy is None:
        return
    if _goes_up(url):
        raise JobError(f"{option}: {shown(url)} contains '..'; give the location without it")
    kind = "allowed_outputs" if writing else "allowed_inputs"
    roots = policy.outputs if writing else policy.inputs + policy.outputs
    if option in ("job", "hierarchy"):  # which lies beside a job
        roots += policy.dags
    base = url if writing or exact else before_wildcard(url)
    # Check the whole location too: a name after a wildcard may be hidden, and a file's name may
    # contain a wildcard character.
    names = None if below(base, roots) is None else below(url, roots)
    if names is None:
        raise _refused(f"{option}: {shown(url)}", kind)
    if writing and not names and not is_of_table(url):
        raise JobError(
            f"{option}: {shown(url)} is itself an allowed location, and working files, which are "
            "written beside the output, would lie outside it; give a directory in it"
        )
    if _is_hidden(names):
        raise _hidden(option, url)


def check_reading(url: str) -> None:
    """Raise JobError if a file or directory of a source may not be read."""
    policy = current_policy()
    if policy is not None and not policy.may_read(url):
        raise _outside("input", url, "allowed_inputs")


def check_source_file(url: str, root: str) -> None:
    """Raise JobError if a file of the source in ``root`` may not be read, or is hidden there.

    A hidden ``root`` belongs to this package, as no job may name it: its files may be read.
    """
    policy = current_policy()
    if policy is None:
        return
    names = policy.names_to(url)
    if names is None:
        raise _outside("input", url, "allowed_inputs")
    if _is_hidden(names) and not _is_hidden(policy.names_to(root) or ()):
        raise _hidden("input", url)


def check_opened(path: str, place: str) -> None:
    """Raise JobError if a local data file may not be read: ``place`` is where it really lies.

    Called when it is open, since ``path`` may have become a link after it was checked.
    """
    policy = current_policy()
    if policy is None:
        return
    names = _below(("", PurePosixPath(place)), policy.inputs + policy.outputs)
    if names is None:
        raise _outside("input", path, "allowed_inputs")
    if _is_hidden(set(names) - set(PurePosixPath(path).parts)):
        raise _hidden("input", path)


def check_place(place: str) -> None:
    """Raise JobError unless a local directory, opened there, is one in which jobs may write."""
    policy = current_policy()
    if policy is None:
        return
    for root in policy.outputs:
        store, path = _store_and_path_of_root(root)
        if not store and f"{place}/".startswith(f"{path}/" if path.name else "/"):
            return
    raise _outside("output", place, "allowed_outputs")


def check_writing(url: str) -> None:
    """Raise JobError if an output or working files may not be written there."""
    if not may_write(url):
        raise _outside("output", url, "allowed_outputs")


def may_write(url: str) -> bool:
    """Whether an output or working files may be written there."""
    policy = current_policy()
    return policy is None or policy.may_write(url)


def _refused(what: str, option: str) -> JobError:
    return JobError(
        f"{what} is not allowed here; choose another, or have an administrator add it to {option} "
        "in the section [mondrian_ops] of Airflow's configuration"
    )


def _outside(option: str, url: str, kind: str) -> JobError:
    return JobError(
        f"{option}: {shown(url)} lies outside the allowed locations, perhaps through a symbolic "
        f"link; remove it, or have an administrator add the location to {kind} in the section "
        "[mondrian_ops] of Airflow's configuration"
    )


def _hidden(option: str, url: str) -> JobError:
    return JobError(
        f"{option}: {shown(url)} is hidden, because a name in it starts with a dot; give a "
        "location without such a name"
    )


def _is_hidden(names: Iterable[str]) -> bool:
    return any(name.startswith(".") and not name.startswith("..") for name in names)


def _goes_up(url: str) -> bool:
    return any(".." in _SEPARATOR.split(text) for text in (url, unquote(url)))


def below(url: str, roots: Iterable[str]) -> tuple[str, ...] | None:
    """The names that lead from one of the roots to the location; None if it lies in none."""
    return _below(_store_and_path(url), roots)


def _below(place: tuple[str, PurePosixPath], roots: Iterable[str]) -> tuple[str, ...] | None:
    store, path = place
    for root in roots:
        root_store, root_path = _store_and_path_of_root(root)
        if store == root_store and path.is_relative_to(root_path):
            return path.relative_to(root_path).parts
    return None


def _store_and_path(url: str) -> tuple[str, PurePosixPath]:
    """Scheme, connection and authority of a location (empty if it is local), and its path."""
    if not is_local(url):
        base, path = parts_of(url)
        return base, PurePosixPath(path)
    # Two slashes at the beginning mean one to the system, but not to PurePosixPath.
    return "", PurePosixPath("/" + os.path.realpath(local_path(url)).lstrip("/"))


@lru_cache(maxsize=64)
def _store_and_path_of_root(root: str) -> tuple[str, PurePosixPath]:
    return _store_and_path(root)


def _listed(text: str) -> tuple[str, ...]:
    """The entries of a list, separated by commas or lines, without blanks around them."""
    return tuple(entry.strip() for entry in re.split(r"[,\n]", text) if entry.strip())


def _absolute(urls: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(Path(home(), local_path(url))) if is_local(url) else url for url in urls)


def _of_environment() -> AccessPolicy | None:
    texts = tuple(map(os.environ.get, _VARIABLES))
    return None if texts == _UNSET else AccessPolicy.of(dict(zip(OPTIONS, texts, strict=True)))
