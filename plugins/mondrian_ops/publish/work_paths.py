"""Where the working files of a run lie: hidden, beside its output or in the folder of its table."""

from __future__ import annotations

import hashlib

from mondrian_ops.publish import table_folders
from mondrian_ops.publish.publication import publication_of
from mondrian_ops.stores.locations import check_path, joined, name_of, parent_of
from mondrian_ops.stores.places import place_of


def work_path(output: str, run_id: str) -> str:
    """The working directory of a run: hidden, beside the output and so on its file system.

    Those of a table lie in its location, where its catalog says.

    Raises JobError if no file can have the output's path, or its last name is too long.
    """
    check_path("output", output, len(f".{_suffix(run_id)}"))
    target = place_of(output).real(output)
    target = publication_of(target).beside(target)
    return joined(parent_of(target), f".{name_of(target)}{_suffix(run_id)}")


def output_of(path: str) -> str:
    """The output for which :func:`work_path` returned ``path``, with symbolic links followed."""
    name = name_of(path)[1:].rpartition(".mondrian_ops-")[0]
    beside = joined(parent_of(path), name)
    return table_folders.table_of(beside) or beside


def is_work_path(path: str, run_id: str) -> bool:
    """Whether :func:`work_path` may have returned ``path`` for some output of the run."""
    name = name_of(path)
    return name.startswith(".") and name.endswith(_suffix(run_id))


def _suffix(run_id: str) -> str:
    return f".mondrian_ops-{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"
