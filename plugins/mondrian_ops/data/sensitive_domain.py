"""The values of a sensitive column over the whole dataset, and their codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.encoding import Column, encode_known, indexed
from mondrian_ops.data.values import one_spelling, one_value, text_of
from mondrian_ops.errors import InputError
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class SensitiveDomain:
    """The values of a sensitive column over the whole dataset, and how often each occurs.

    ``values`` are distinct and ordered, as `one_value` gives them; ``counts`` (codes,) int64 has
    one entry per code: the missing value first if it occurs, then ``values``. The values of an
    ``entity_id`` are ``as_written``: two spellings are two persons. ``of_codes``: the texts are in
    `one_spelling`. ``pointed``: whole numbers are the leaves ``70.0`` of a hierarchy. ``near_end``
    (codes,) int32: the greatest code near each, where the job gives a width.
    """

    name: str
    values: pa.Array
    counts: NDArray[np.int64]
    as_written: bool = False
    of_codes: bool = False
    pointed: bool = False
    near_end: NDArray[np.int32] | None = None

    @property
    def missing(self) -> bool:
        """Whether the missing value occurs, and so has code 0."""
        return len(self.counts) > len(self.values)

    @property
    def distinct(self) -> int:
        """Distinct values that occur, not counting the missing one."""
        return int(np.count_nonzero(self.counts[int(self.missing) :]))

    def encode(self, column: Column) -> NDArray[np.int32]:
        """Codes (rows,) int32; raises InputError on a value that is not in the profile."""
        values = indexed(column)
        if pa.types.is_string(self.values.type):  # the leaves of a hierarchy are texts
            values = values.mapped(lambda each: text_of(each, self.pointed))
        if not self.as_written:
            values = values.mapped(one_spelling if self.of_codes else one_value)
        codes, unknown = encode_known(values, self.values)
        if unknown or not (self.missing or codes.all()):
            raise InputError(
                f"column {self.name!r}: holds values that were not there when the run was "
                "planned, so the input changed; run again from the partition task"
            )
        return np.subtract(codes, not self.missing, dtype=np.int32)
