"""Values of any kind that a class publishes as the set of those in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from mondrian_ops.data.encoding import Column, encode_known, indexed
from mondrian_ops.errors import InputError
from mondrian_ops.generalize.attributes import Attribute, Classes, Extent, Losses, Published
from mondrian_ops.generalize.encoded import Encoded
from mondrian_ops.generalize.labels import dictionary_of_texts, set_text, single_text, starred
from mondrian_ops.generalize.native.classes import distinct_per_class
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True)
class SetAttribute(Attribute):
    """Values of any kind, published as the set of those in the class, in the attribute's order.

    With ``lists`` a set is published as the list of its values' texts, and what is hidden as an
    empty one; else as text.
    """

    domain: pa.Array
    lists: bool = False
    generalization: str = field(default="set", kw_only=True)

    def encode(self, column: Column) -> Encoded:
        codes, unknown = encode_known(indexed(column), self.domain)
        if unknown:
            raise InputError(
                f"column {self.name!r}: {unknown} row(s) hold values that it did not hold when the "
                "run was planned; the input changed, run again from the partition task"
            )
        return Encoded(
            codes=codes,
            size=len(self.domain) + 1,
            kind="set",
            present=float(max(1, len(self.domain))),
            # The share of a column's bits that n values leave open (docs/algorithms.md).
            step=np.log(np.arange(1, len(self.domain) + 2)) / np.log(max(2, len(self.domain))),
            values=self.domain,
            weight=self.weight,
        )

    def _published(self, encoded: Encoded, classes: Classes, extent: Extent) -> Published:
        low, high = extent
        star = (low == 0) & (high > 0)
        members, ends = distinct_per_class(
            encoded.codes, classes.index, classes.starts, encoded.size
        )
        sizes = np.diff(ends, prepend=0)
        exact = low == high
        values = max(2, len(self.domain))
        ncp = np.where(exact, 0.0, sizes / values)
        lm = np.where(exact, 0.0, (sizes - 1) / (values - 1))
        ncp[star] = lm[star] = 1.0
        bounds = pairwise([0, *ends.tolist()])
        sets = [tuple(members[start:end].tolist()) for start, end in bounds]
        # Sorted: the order in which classes were cut would disclose the cuts.
        place = {codes: at for at, codes in enumerate(sorted(set(sets)))}
        ids = np.array([place[codes] for codes in sets], np.int64)
        texts = self.texts(self.domain).to_pylist()
        labels = pa.array([_set_text(codes, texts) for codes in place], pa.string())
        published = starred(dictionary_of_texts(ids, labels), star)
        if self.lists:
            sets_of = dict(zip(labels.to_pylist(), place, strict=True))  # of "*" none
            codes_of = [sets_of.get(label, ()) for label in published.dictionary.to_pylist()]
            members_of = [[texts[code - 1] for code in codes] for codes in codes_of]
            lists = pa.array(members_of, pa.list_(pa.string()))
            published = pa.DictionaryArray.from_arrays(published.indices, lists)
        columns = {self.name: published}
        return Published.each(columns, Losses(ncp, lm, exact, star))


def _set_text(members: Sequence[int], texts: Sequence[str]) -> str | None:
    if members[0] == 0:
        return None
    if len(members) == 1:
        return single_text(texts[members[0] - 1])
    return set_text([texts[member - 1] for member in members])
