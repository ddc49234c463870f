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
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from mondrian_ops.errors import HierarchyError, InputError, JobError
from mondrian_ops.job.policy import (
    OutputRule,
    Policies,
    Policy,
)
from mondrian_ops.stores import documents
from mondrian_ops.stores.locations import (
    before_wildcard,
    has_wildcard,
    is_local,
    local_path,
    parts_of,
    resolved,
    shown,
)
from mondrian_ops.stores.places import place_of
from mondrian_ops.stores.regular_files import open_regular

if TYPE_CHECKING:
    from mondrian_ops.job.job import Job

_VARIABLE = "AIRFLOW__MONDRIAN_OPS__POLICIES"
_SPECIAL = re.compile(r"[*?\[\]]")

_in_use: str | None = None


def use_policies(path: str | None) -> None:
    """Apply the policies in this file; None: those that the environment names, if it does."""
    global _in_use
    _in_use = path


def check_hierarchy(name: str, path: str) -> None:
    """Raise HierarchyError if the file of a hierarchy lies in the input of a policy.

    Its values would be published as labels, and held to nothing.
    """
    policies = current()
    for policy in met(inputs_of(policies), path):
        raise HierarchyError(
            f"{name}: lies in an input of the policy {policy.name!r}, whose rows may not become "
            "the labels of a hierarchy; move the file out of these inputs, such as into "
            "include/hierarchies"
        )


def output_rules(output: str) -> list[OutputRule] | None:
    """The rules about who writes to a location; None if there are no policies at all."""
    policies = current()
    if policies is None:
        return None
    here = list(_places(output))
    return [rule for rule in policies.outputs if _meet(here, _places_of([rule.location]))]


# The file


def _path() -> str | None:
    return _in_use or os.environ.get(_VARIABLE)


def current() -> Policies | None:
    """The policies of this process; None if there are none, JobError if they cannot be read."""
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


def policies_of(job: Job) -> list[Policy]:
    """The policies that match the job's input; raises JobError where one must and none does."""
    return [] if job.input is None else matching(job.input)


def matching(url: str) -> list[Policy]:
    """The policies that match an input; raises JobError where one must and none does."""
    policies = current()
    if policies is None:
        return []
    found = met(inputs_of(policies), url)
    if not found and policies.unmatched == "refuse":
        raise unmatched(url)
    return found


def inputs_of(policies: Policies | None) -> list[tuple[Policy, list[_Place]]]:
    """Each policy with the forms of its inputs."""
    held = () if policies is None else policies.policies
    return [(policy, _places_of(policy.inputs)) for policy in held]


def met(inputs: Iterable[tuple[Policy, list[_Place]]], url: str) -> list[Policy]:
    """The policies with an input that the location may meet."""
    here = list(_places(url))
    return [policy for policy, there in inputs if _meet(here, there)]


def unmatched(url: str) -> JobError:
    return JobError(
        f"input: no policy matches {shown(url)}, and such inputs are refused here; choose another, "
        "or have an administrator add it to the policies"
    )


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
        base, path = parts_of(url)
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


def _meet(these: Iterable[_Place], those: Sequence[_Place]) -> bool:
    """Whether something can lie in one of these locations and in one of those."""
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
    if one == other:
        return True
    are_remote = bool(one and other)
    return are_remote and not place_of(one).known_as(one).isdisjoint(
        place_of(other).known_as(other)
    )
