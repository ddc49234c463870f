"""Job files, YAML or JSON, and options changed from outside: what ``--set`` takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import options_of, shown
from mondrian_ops.stores import documents
from mondrian_ops.stores.access_policy import check_location
from mondrian_ops.stores.locations import in_full, resolved, with_connection
from mondrian_ops.stores.regular_files import content_within
from mondrian_ops.stores.store import store_of

_LOCATIONS = ("input", "output")


def load_job(
    job: str | os.PathLike[str] | Mapping[str, Any],
    overrides: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> Job:
    """The job in a YAML or JSON file, or in a mapping, with ``KEY=VALUE`` overrides.

    ``defaults``: for options of a file that it does not set. Relative paths in the job start at the
    home, wherever the file is. Raises JobError if the job is invalid.
    """
    if isinstance(job, Mapping):
        return _resolved(Job.from_dict(with_overrides(job, overrides)))
    path = resolved(os.fspath(job))
    given = read_job(path)
    unset = {key: each for key, each in (defaults or {}).items() if given.get(key) is None}
    mapping = with_overrides({**given, **unset}, overrides)
    base_dir = os.path.dirname(os.path.abspath(path))
    return replace(_resolved(Job.from_dict(mapping, where=path)), base_dir=base_dir)


def _resolved(job: Job) -> Job:
    """The job, with its locations as :func:`resolved` gives them."""
    input_, output = (None if url is None else resolved(url) for url in (job.input, job.output))
    return replace(job, input=input_, output=output)


def read_job(path: str) -> dict[str, Any]:
    """The mapping in a YAML or JSON file.

    Raises:
        JobError: the file is missing, not UTF-8, neither YAML nor JSON, not a mapping, larger than
            the limit ``job_file``, or lies where the access policy lets no job read.
    """
    check_location("job", path, exact=True)
    try:
        content = content_within(path, "job_file", path, JobError)
        value = documents.parsed(content.decode("utf-8-sig"))
    except (FileNotFoundError, IsADirectoryError):
        raise JobError(f"{in_full(path)}: no such job file; check the path") from None
    except UnicodeDecodeError:
        raise JobError(f"{path}: not UTF-8 text; convert the file to UTF-8") from None
    except documents.DocumentError as error:
        raise JobError(f"{path}{error}; correct the file") from None
    if not isinstance(value, dict):
        raise JobError(f"{path}: a job is a mapping of options, such as k: 5")
    return value


def with_connections(job: Job, spark: str | None, storage: str | None) -> Job:
    """The job with ``spark.connection`` replaced, and ``storage`` in each URL that names none.

    Raises JobError if such URLs are of several stores, InputError if one has an unknown scheme.
    """
    if spark:
        job = replace(job, spark=replace(job.spark, connection=spark))
    if not storage:
        return job
    given = {name: getattr(job, name) for name in _LOCATIONS if getattr(job, name)}
    urls = {name: with_connection(url, storage) for name, url in given.items()}
    changed: dict[str, Any] = {name: url for name, url in urls.items() if url != given[name]}
    if len(kinds := {store_of(url).name: None for url in changed.values()}) > 1:
        raise JobError(
            f"storage_conn_id: {', '.join(changed)} lie on different stores ({', '.join(kinds)}), "
            "which no connection reaches all; name a connection in each URL, such as "
            "s3://CONNECTION@BUCKET/KEY"
        )
    return replace(job, **changed)


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
    try:
        return documents.parsed(text)
    except documents.DocumentError:
        raise JobError(
            f"{path}: {shown(text)} is not valid YAML; put texts with special signs in quotes"
        ) from None
