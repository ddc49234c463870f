"""The Airflow of the soak."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from projects import Project, airflow_of, copied, opened


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, airflow_database: Callable[[], str]
) -> Iterator[Project]:
    """The project under the LocalExecutor, with a folder of its own for temporary files."""
    root = copied(tmp_path_factory.mktemp("soak"))
    (root / "tmp").mkdir()
    (root / "out" / "nightly").mkdir(parents=True)
    settings = {
        **opened(root),
        "MONDRIAN_OPS_HIERARCHIES": str(root / "include" / "hierarchies"),
        "AIRFLOW_VAR_MONDRIAN_OPS_LANDING": str(root / "landing"),
        "AIRFLOW_VAR_MONDRIAN_OPS_RELEASES": str(root / "out" / "nightly"),
        "AIRFLOW_VAR_MONDRIAN_OPS_JOBS": str(root / "include" / "jobs"),
        "TMPDIR": str(root / "tmp"),
    }
    with airflow_of(root, airflow_database(), settings) as airflow:
        yield Project(root, airflow)
