"""Job files: YAML or JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mondrian_ops.core.errors import JobError
from mondrian_ops.core.job import Job
from mondrian_ops.overrides import with_overrides
from mondrian_ops.storage.allowed import check_given
from mondrian_ops.storage.files import content_within

__all__ = ["load_job", "read_job"]


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
