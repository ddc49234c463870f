"""What a column discloses that shows values as they are, as those who measure it say it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class Finding:
    """What a column discloses that is published as it is, or as sets of its values.

    ``how``: by value or by order, with the ``quasi_identifier`` that it gives away; alone; jointly,
    by all quasi-identifiers (`singling_out`); or unknown, where values of its type cannot be
    compared; or as a quasi-identifier in a set, which shows values that few have. ``share``: of the
    rows that other rows with their value predict; xi; of the rows whose value ``fewer_than`` so
    many have; or of the rows that are found. ``column`` is empty for all columns together.
    """

    column: str
    how: Literal["value", "order", "alone", "unknown", "jointly", "set"]
    share: float = 0.0
    quasi_identifier: str | None = None
    fewer_than: int = 0

    def to_dict(self) -> dict[str, Any]:
        """A small JSON value."""
        return asdict(self)
