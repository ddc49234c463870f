"""What is fuzzed: each takes bytes, and may succeed or raise what it documents, nothing else."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from fuzz_kernels import kernels
from mondrian_ops.cut.plan import Plan
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.stores import load_job, read_hierarchy
from mondrian_ops.stores.job_files import with_overrides
from mondrian_ops.tables import open_table


@contextlib.contextmanager
def _file(content: bytes, ending: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder, f"file{ending}")
        path.write_bytes(content)
        yield str(path)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


def job(content: bytes) -> None:
    """A job's file; one that is read says itself in a form that is read as the same job."""
    with _file(content, ".yaml") as path, contextlib.suppress(MondrianOpsError):
        read = load_job(path)
        again = type(read).from_dict(json.loads(json.dumps(read.to_dict())))
        assert again == read


def hierarchy_csv(content: bytes) -> None:
    """A hierarchy's file; every leaf leads to the root."""
    _hierarchy(content, ".csv")


def hierarchy_json(content: bytes) -> None:
    """The same as a tree in JSON."""
    _hierarchy(content, ".json")


def _hierarchy(content: bytes, ending: str) -> None:
    with _file(content, ending) as path, contextlib.suppress(MondrianOpsError):
        tree: Hierarchy = read_hierarchy(path)
        assert len(set(tree.leaves)) == len(tree.leaves)
        assert len(set(tree.ancestors[-1].tolist())) == 1


def csv(content: bytes) -> None:
    """A source; its rows are as many as were counted."""
    with _file(content, ".csv") as path, contextlib.suppress(MondrianOpsError):
        source = open_table(path)
        assert sum(batch.num_rows for batch in source.batches()) == source.rows


def plan(content: bytes) -> None:
    """A plan; one that is read is written as it was."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return
    with contextlib.suppress(MondrianOpsError):
        read = Plan.from_json(value)
        assert Plan.from_json(read.to_json()) == read
        _ = read.paths


def override(content: bytes) -> None:
    """What `--set` takes."""
    with contextlib.suppress(MondrianOpsError, UnicodeDecodeError):
        with_overrides({"k": 5, "partitioning": {"seed": 1}}, [content.decode()])


TARGETS: dict[str, Callable[[bytes], None]] = {
    each.__name__: each
    for each in (job, hierarchy_csv, hierarchy_json, csv, plan, override, kernels)
}
