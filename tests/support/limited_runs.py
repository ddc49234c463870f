"""A run in a folder that is all that is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mondrian_ops import pipeline, stores
from mondrian_ops.engines.run import Run
from mondrian_ops.job import limits


@contextmanager
def limited_run(folder: Path) -> Iterator[Run]:
    """A run that has begun; the limits of this process are lifted in the end."""
    (folder / "in.csv").write_text("age\n1\n2\n3\n4\n")
    stores.use_policy(stores.AccessPolicy((str(folder / "in.csv"),), (str(folder / "out"),)))
    (folder / "out").mkdir()
    job = {
        "input": str(folder / "in.csv"),
        "output": str(folder / "out" / "release"),
        "k": 2,
        "quasi_identifiers": ["age"],
    }
    yield pipeline.begin(stores.load_job(job), str(folder / "out" / ".work"))
    stores.use_policy(None)
    limits.use(None)
