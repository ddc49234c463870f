"""Job files, YAML or JSON, and options changed from outside: what ``--set`` takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

from mondrian_ops.core.errors import JobError
from mondrian_ops.core.job import Job
from mondrian_ops.core.options import options_of, shown
from mondrian_ops.storage.allowed import check_given
from mondrian_ops.storage.files import content_within

__all__ = ["load_job", "read_job", "with_overrides"]


def load_job(job: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()) -> Job:
    """The job of a YAML or JSON file, or of a mapping, with ``KEY=VALUE`` overrides.

    Raises JobError where it is no valid job; a relative path of a file's job is taken as it is.
    """
    base, where = None, "job"
    if not isinstance(job, Mapping):
        path = os.fspath(job)
        base, where = os.path.dirname(os.path.abspath(path)), path
        job = read_job(path)
    return replace(Job.from_dict(with_overrides(job, overrides), where=where), base_dir=base)


def read_job(path: str) -> dict[str, Any]:
    """The mapping in a YAML or JSON file.

    Raises:
        JobError: missing, not UTF-8, not YAML, not a mapping, a key twice, larger than the limit
            ``job_file``, made to be endless, or not where jobs may be read.
    """
    from mondrian_ops.storage import documents

    check_given("job", path, exact=True)
    try:
        content = content_within(path, "job_file", path, JobError)
        value = documents.parsed(content.decode("utf-8-sig"))
    except (FileNotFoundError, IsADirectoryError):
        raise JobError(f"{path}: no such job file; check the path") from None
    except UnicodeDecodeError:
        raise JobError(f"{path}: not UTF-8 text; convert the file to UTF-8") from None
    except documents.DocumentError as error:
        raise JobError(f"{path}{error}; correct the file") from None
    if not isinstance(value, dict):
        raise JobError(f"{path}: a job is a mapping of options, such as k: 5")
    return value


def with_overrides(mapping: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """``mapping`` with each ``KEY=VALUE`` or ``SECTION.KEY=VALUE`` set; it is not changed itself.

    A value is read as YAML; ``null`` restores the default. Raises JobError when a setting is
    malformed; whether its key and value make sense is for ``Job.from_dict`` to say.
    """
    changed = dict(mapping)
    for setting in settings:
        path, equals, text = setting.partition("=")
        path = path.strip()
        if not equals or not path:
            raise JobError(f"--set {shown(setting)}: must be KEY=VALUE, such as k=10")
        key, dot, inner = path.partition(".")
        value = _yaml_value(path, text)
        if not dot:
            changed[key] = value
            continue
        section = changed.get(key)
        if not _has_options(key) or not isinstance(section, Mapping | NoneType):
            raise JobError(f"{path}: {key} has no options of its own; set {key} as a whole")
        changed[key] = {**(section or {}), inner: value}
    return changed


def _has_options(key: str) -> bool:
    """Whether a key of the job may be a mapping; one that is unknown is refused elsewhere."""
    option = options_of(Job).get(key)
    return option is None or option.shape == "mapping" or option.model is not None


def _yaml_value(path: str, text: str) -> Any:
    from mondrian_ops.storage import documents

    try:
        return documents.parsed(text)
    except documents.DocumentError:
        raise JobError(
            f"{path}: {shown(text)} is not valid YAML; put texts with special signs in quotes"
        ) from None
