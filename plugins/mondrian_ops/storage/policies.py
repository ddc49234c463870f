"""The policies of a deployment: which of them a job meets, and whether it asks enough.

The option ``policies`` of the section ``[mondrian_ops]`` names their file, and on a command line
the variable ``AIRFLOW__MONDRIAN_OPS__POLICIES``. While the file cannot be read, every job is
refused.

An input matches a policy if something that it stands for may lie in one of the policy's locations:
so does a pattern, or a directory above them. Locations are compared as they are written and with
symbolic links followed, without case and, on a remote store, without the connection, since another
name of the same data must not be a way around. Links inside an input are noticed when its files are
listed (:func:`check_source`).
"""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from mondrian_ops.core.errors import InputError, JobError
from mondrian_ops.core.policy import (
    OutputRule,
    Policies,
    Policy,
    Required,
    misused,
    short,
    shortfalls,
)
from mondrian_ops.storage import access_policy, documents, store_access
from mondrian_ops.storage.locations import (
    before_wildcard,
    has_wildcard,
    is_local,
    local_path,
    remote_parts,
    resolved,
    shown,
)
from mondrian_ops.storage.regular_files import open_regular

if TYPE_CHECKING:
    import pyarrow as pa

    from mondrian_ops.core.job import Job
    from mondrian_ops.storage.source import Source

__all__ = [
    "check_job",
    "check_source",
    "has_policies",
    "output_rules",
    "required",
    "use_policies",
]

_VARIABLE = "AIRFLOW__MONDRIAN_OPS__POLICIES"
_SPECIAL = re.compile(r"[*?\[\]]")

_in_use: str | None = None


def use_policies(path: str | None) -> None:
    """Apply the policies in this file; None: those that the environment names, if it does."""
    global _in_use
    _in_use = path


def has_policies() -> bool:
    """Whether there are policies at all."""
    return bool(_path())


def check_job(job: Job, *, publishes: bool = True) -> Job:
    """The job as it has to run: with an approval, or without columns that undo the work, if a
    policy says so.

    ``publishes``: whether it is to publish rows; for figures alone there is no floor.

    Raises JobError if the job names what is not allowed here, asks less than a policy requires, or
    has an input that no policy matches where that is refused.
    """
    access_policy.check_job(job)
    matching = _matching(job)
    if not publishes:
        return job
    _refuse(problem for policy in matching for problem in _shortfalls(policy, job))
    floor = Required.by(matching)
    return replace(
        job,
        require_approval=job.require_approval or floor.approval,
        dependencies="refuse" if floor.dependencies == "refuse" else job.dependencies,
    )


def check_source(job: Job, source: Source) -> None:
    """Check what could not be seen before the files of the job's input were listed.

    Raises JobError if a file lies, by a symbolic link, where a policy holds that the input does not
    match, if no policy matches it where that is refused, or if a column is published in another way
    than its role allows.
    """
    policies = _current()
    if policies is None:
        return
    matching = _matching(job)
    held = {policy.name for policy in matching}
    places = {policy.name: _places_of(policy.inputs) for policy in policies.policies}
    for file in source.files:
        here = list(_places(file))
        names = [name for name, there in places.items() if _meet(here, there)]
        if not names and policies.unmatched == "refuse":
            raise _unmatched(file)
        if not held.issuperset(names):
            raise JobError(
                f"input: {shown(file)} leads to a location of a policy that {shown(source.url)} "
                "does not match; give that location as the input"
            )
    _refuse(
        problem
        for policy in matching
        for column, within in _columns(source.schema)
        for problem in misused(policy, job, column, within)
    )


def required(job: Job) -> Required:
    """What the policies require of the rest of a run."""
    return Required.by(_matching(job))


def output_rules(output: str) -> list[OutputRule] | None:
    """The rules about who writes to a location; None if there are no policies at all."""
    policies = _current()
    if policies is None:
        return None
    here = list(_places(output))
    return [rule for rule in policies.outputs if _meet(here, _places_of([rule.location]))]


# The file


def _path() -> str | None:
    return _in_use or os.environ.get(_VARIABLE)


def _current() -> Policies | None:
    path = _path()
    return _read(resolved(path)) if path else None


def _read(path: str) -> Policies:
    try:
        policies = Policies.read(documents.parsed(_text(path)))
        _check_locations(policies)
    except OSError as error:
        problem = f": {error.strerror or 'cannot be read'}"
    except UnicodeDecodeError:
        problem = ": not UTF-8 text"
    except documents.DocumentError as error:
        problem = str(error)
    except (JobError, InputError) as error:
        problem = f": {error}"
    else:
        return policies
    raise JobError(
        f"{path}{problem}; no job runs until an administrator has corrected this file, which the "
        "option policies in the section [mondrian_ops] names"
    )


def _text(path: str) -> str:
    with open_regular(path, JobError, "policies") as file:
        return file.read().decode("utf-8-sig")


def _check_locations(policies: Policies) -> None:
    """Raise JobError for a relative path: tasks have other working directories than commands."""
    named: dict[str, Sequence[str]] = {}
    for at, rule in enumerate(policies.outputs):
        named[f"outputs[{at}].location"] = (rule.location,)
    for at, policy in enumerate(policies.policies):
        for key, urls in (("inputs", policy.inputs), ("outputs", policy.outputs)):
            named[f"policies[{at}].{key}"] = urls
    for key, locations in named.items():
        for url in locations:
            if is_local(url) and not os.path.isabs(local_path(url)):
                raise JobError(f"{key}: {url} is relative; give an absolute path or a URL")


# Which policies match


def _matching(job: Job) -> list[Policy]:
    policies = _current()
    if policies is None or job.input is None:
        return []
    here = list(_places(job.input))
    matching = [each for each in policies.policies if _meet(here, _places_of(each.inputs))]
    if not matching and policies.unmatched == "refuse":
        raise _unmatched(job.input)
    return matching


def _unmatched(url: str) -> JobError:
    return JobError(
        f"input: no policy matches {shown(url)}, and such inputs are refused here; choose another, "
        "or have an administrator add it to the policies"
    )


def _refuse(problems: Iterable[str]) -> None:
    found = ". ".join(dict.fromkeys(problems))
    if found:
        raise JobError(found)


def _shortfalls(policy: Policy, job: Job) -> Iterator[str]:
    """What the job asks less than the policy requires, locations included."""
    yield from shortfalls(policy, job)
    output = str(job.output)
    if policy.outputs and not access_policy.below(output, policy.outputs):
        required_ = f"outputs: {', '.join(map(shown, policy.outputs))}"
        yield short(policy, "output", f"is {shown(output)}", required_, "give a directory in it")


class _Place(NamedTuple):
    """One form of a location: its store, empty if it is local, and the names in its path."""

    store: str
    names: tuple[str, ...]


def _places_of(locations: Iterable[str]) -> list[_Place]:
    """The forms of a policy's locations, with where the links that their patterns match lead."""
    places: list[_Place] = []
    for url in locations:
        places += _places(url)
        if is_local(url) and has_wildcard(local_path(url)):
            for match in glob.iglob(local_path(url)):
                places += _places(match)
    return list(dict.fromkeys(places))


def _places(url: str) -> Iterator[_Place]:
    """The forms of a location: as it is written, and with links followed or escapes decoded."""
    if not is_local(url):
        base, path = remote_parts(url)
        for form in {path, posixpath.normpath(unquote(path))}:
            yield _Place(base, _names(form))
        return
    path = os.path.abspath(local_path(url))
    base = before_wildcard(path)
    behind = PurePosixPath(path).relative_to(base)
    for form in {path, os.path.realpath(path), str(Path(os.path.realpath(base), behind))}:
        yield _Place("", _names(form))


def _names(path: str) -> tuple[str, ...]:
    return tuple(name.casefold() for name in path.split("/") if name)


def _meet(these: Iterable[_Place], those: Iterable[_Place]) -> bool:
    """Whether something can lie in one of these locations and in one of those."""
    those = list(those)
    return any(
        _names_meet(one.names, other.names) and _on_one_store(one.store, other.store)
        for one in these
        for other in those
    )


def _names_meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    for name, other_name in zip(one, other, strict=False):
        if "**" in (name, other_name):
            return True
        if not _name_meets(name, other_name):
            return False
    return True


def _name_meets(one: str, other: str) -> bool:
    """Whether one name can match both, each of which may be a pattern, or a name as it is."""
    if one == other or fnmatchcase(one, other) or fnmatchcase(other, one):
        return True
    if not (has_wildcard(one) and has_wildcard(other)):
        return False
    (start, end), (other_start, other_end) = _ends(one), _ends(other)
    starts = start.startswith(other_start) or other_start.startswith(start)
    return starts and (end.endswith(other_end) or other_end.endswith(end))


def _ends(pattern: str) -> tuple[str, str]:
    """The characters before the first special one of a pattern, and those after the last."""
    parts = _SPECIAL.split(pattern)
    return parts[0], parts[-1]


def _on_one_store(one: str, other: str) -> bool:
    if one == other or not (one and other):
        return one == other
    return not _servers(one).isdisjoint(_servers(other))


def _servers(base: str) -> set[str]:
    """The bucket, or the hosts, however the URL calls them."""
    scheme, _, authority = base.partition("://")
    authority = authority.rpartition("@")[2]
    if scheme == "s3":
        return {f"s3://{authority}"}
    hosts = {urlsplit(f"//{authority}").hostname}
    with suppress(InputError):  # unknown servers cannot be read from either
        hosts |= {urlsplit(server).hostname for server in store_access.servers_of(base)}
    return {f"hdfs://{host}" for host in hosts}


def _columns(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The names of all columns and of the fields inside them, each with its column."""
    for column in schema:
        fields = [column]
        while fields:
            field = fields.pop()
            yield field.name, column.name
            fields += [field.type.field(at) for at in range(field.type.num_fields)]
