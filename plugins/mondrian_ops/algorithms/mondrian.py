"""Mondrian on a fragment: cut until no valid cut is left (seed, section 5, figure 7).

`cut` chooses how: ``median`` of the attribute of largest representativity, the source's rule;
``gain``, the valid cut with the largest fall of information loss; ``lookahead``, the cut whose
finished subtree loses least. See docs/algorithms.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.core import kernels
from mondrian_ops.core.criteria import Privacy, SensitiveDomain
from mondrian_ops.core.generalization import Classes, Encoded, kernel_codes, kernel_space

__all__ = ["POLICIES", "CodedRows", "anonymize"]

POLICIES = {"median": kernels.MEDIAN, "gain": kernels.GAIN, "lookahead": kernels.LOOKAHEAD}


@dataclass(frozen=True)
class CodedRows:
    """Rows as the kernels see them.

    ``codes`` (rows, attributes) unsigned, C-ordered; ``sensitive`` (rows, columns) int32.
    """

    encoded: Sequence[Encoded]
    codes: NDArray[np.unsignedinteger]
    sensitive: NDArray[np.int32]
    space: kernels.Space
    criteria: kernels.Criteria

    @classmethod
    def of(
        cls,
        encoded: Sequence[Encoded],
        sensitive: Sequence[NDArray[np.int32]],
        domains: Sequence[SensitiveDomain],
        privacy: Privacy,
    ) -> CodedRows:
        """Put encoded columns together."""
        codes = kernel_codes(encoded)
        matrix = np.zeros((len(codes), max(1, len(sensitive))), np.int32)
        for i, column in enumerate(sensitive):
            matrix[:, i] = column
        return cls(encoded, codes, matrix, kernel_space(encoded), privacy.kernel(domains))


def anonymize(rows: CodedRows, cut: str) -> Classes:
    """The equivalence classes of ``rows``, cut by policy ``cut``; no valid cut is left in any.

    The rows as a whole must satisfy the criteria. Rows lie shuffled within their class: their order
    tells nothing of the source's.
    """
    count = len(rows.codes)
    index = np.arange(count, dtype=np.int32)
    scratch = kernels.new_scratch(count, rows.space, rows.criteria)
    marks = kernels.grow(
        rows.codes, rows.sensitive, index, rows.space, rows.criteria, POLICIES[cut], scratch
    )
    starts = np.flatnonzero(marks)
    kernels.shuffle_classes(index, starts, _seed(rows))
    return Classes(index, starts)


def _seed(rows: CodedRows) -> np.uint64:
    """A seed that only the source's own row order gives, so that none can undo the shuffle."""
    digest = hashlib.blake2b(np.ascontiguousarray(rows.codes), digest_size=8)
    digest.update(np.ascontiguousarray(rows.sensitive))
    return np.uint64(int.from_bytes(digest.digest(), "little"))
