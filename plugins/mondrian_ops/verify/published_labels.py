"""What reads the labels of one quasi-identifier: see `labels` for all kinds of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.errors import PrivacyError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

STAR = "*"


class Losses(NamedTuple):
    """How much each of some labels loses, arrays (labels,).

    ``ncp``, ``lm``: by the two metrics, per row. ``exact``: the label is one value, or missing.
    ``star``: it is "*", or says as little. ``robust``: as ``ncp``, of intervals by the column's
    robust span. ``information``: the share of the column's information.
    """

    ncp: Floats
    lm: Floats
    exact: Flags
    star: Flags
    robust: Floats
    information: Floats


class PublishedLabels(ABC):
    """Reads the labels of one quasi-identifier.

    Labels come as the columns that publish them: one of texts, or three of bounds. Raises
    PrivacyError, which names the column, on a text that is no label of it.
    """

    pointed = False  # whether whole floating-point numbers are written 70.0

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def covers(
        self, labels: Sequence[pa.Array], values: pa.Array, label_of: Ints, value_of: Ints
    ) -> Flags:
        """Whether the label covers the value, for each of some pairs, (pairs,).

        ``label_of`` and ``value_of`` (pairs,) are places in ``labels`` and in ``values``, which
        have the type of the source's column.
        """

    @abstractmethod
    def losses(self, labels: Sequence[pa.Array]) -> Losses:
        """How much each label loses, measured on the whole dataset."""

    def _unread(self) -> PrivacyError:
        return PrivacyError(
            f"column {self.name!r}: a published label cannot be read, so the release cannot be "
            "checked; nothing is published; please report this error"
        )


def edged(lost: Floats, exact: Flags, star: Flags) -> Floats:
    """The losses, where exact labels lose nothing and stars all."""
    return np.where(star, 1.0, np.where(exact, 0.0, lost))
