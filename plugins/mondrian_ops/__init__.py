"""k-anonymous, l-diverse releases of personal data: in Airflow, on a command line, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mondrian_ops.version import __version__

if TYPE_CHECKING:
    from mondrian_ops.pipeline import anonymize as anonymize
    from mondrian_ops.reading.generalizer import Generalizer as Generalizer
    from mondrian_ops.reading.release import read_release as read_release

__all__ = ["Generalizer", "__version__", "anonymize", "read_release"]


def __getattr__(name: str) -> Any:
    # DAG files import this package, so numpy and pyarrow are imported on first use.
    if name == "anonymize":
        from mondrian_ops.pipeline import anonymize

        return anonymize
    if name == "read_release":
        from mondrian_ops.reading.release import read_release

        return read_release
    if name == "Generalizer":
        from mondrian_ops.reading.generalizer import Generalizer

        return Generalizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
