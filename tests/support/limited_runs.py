"""A run in a folder that is all that is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mondrian_ops import pipeline, storage
from mondrian_ops.core import resource_limits
from mondrian_ops.engines.run import Run


@contextmanager
def limited_run(folder: Path) -> Iterator[Run]:
    """A run that has begun; the limits of this process are lifted in the end."""
    (folder / "in.csv").write_text("age\n1\n2\n3\n4\n")
    storage.use_policy(storage.AccessPolicy((str(folder / "in.csv"),), (str(folder / "out"),)))
    (folder / "out").mkdir()
    job = {
        "input": str(folder / "in.csv"),
        "output": str(folder / "out" / "release"),
        "k": 2,
        "quasi_identifiers": ["age"],
    }
    yield pipeline.begin(storage.load_job(job), str(folder / "out" / ".work"))
    storage.use_policy(None)
    resource_limits.use(None)
