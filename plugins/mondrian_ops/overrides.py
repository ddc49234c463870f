"""Options of a job changed from outside, each written ``KEY=VALUE``: what ``--set`` takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mondrian_ops.core.errors import JobError
from mondrian_ops.core.job import Job
from mondrian_ops.core.options import shown

__all__ = ["override", "with_overrides"]


def override(job: Job, settings: Iterable[str]) -> Job:
    """``job`` with some options changed, such as ``["k=10", "partitioning.fragments=4"]``.

    Raises JobError as :func:`with_overrides` and ``Job.from_dict`` do.
    """
    return Job.from_dict(
        with_overrides(job.to_dict(), settings),
        paths_required=job.input is not None and job.output is not None,
    )


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
        if section is not None and not isinstance(section, Mapping):
            raise JobError(f"{path}: {key} has no options of its own; set {key} as a whole")
        changed[key] = {**(section or {}), inner: value}
    return changed


def _yaml_value(path: str, text: str) -> Any:
    from mondrian_ops.storage import documents

    try:
        return documents.parsed(text)
    except documents.DocumentError:
        raise JobError(
            f"{path}: {shown(text)} is not valid YAML; put texts with special signs in quotes"
        ) from None
