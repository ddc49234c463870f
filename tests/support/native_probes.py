"""The functions inside the C cutting, compiled with a face of their own (native_probes.c)."""

from __future__ import annotations

import ctypes
import os
import tempfile
import weakref
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_ops.cut.native import mondrian
from mondrian_ops.cut.native.class_criteria import Criteria
from mondrian_ops.native import build
from mondrian_ops.native.arrays import Ints
from sanitized import SANITIZED

_PLACE = tempfile.TemporaryDirectory(prefix="mondrian_ops-probes-")
_SOURCE = Path(__file__).with_suffix(".c")
_INT, _POINTER, _DOUBLE = ctypes.c_int64, ctypes.c_void_p, ctypes.c_double


@cache
def _library(*flags: str) -> ctypes.CDLL:
    """The kernels and the probes, compiled with more flags; once in a process."""
    file = Path(_PLACE.name, f"probes{''.join(flags)}.so")
    watched = SANITIZED in os.environ
    quickly = () if watched else ("-O0",)  # which compiles in a third of the time of -O3
    return ctypes.CDLL(
        str(build.build(file, sanitize=watched, more=[*quickly, *flags], also=[_SOURCE]))
    )


def _call(name: str, *arguments: Any, result: Any = _INT) -> Any:
    function = getattr(_library(), f"probe_{name}")
    function.restype = result
    return function(*arguments)


def no_criteria(k: int = 1) -> Criteria:
    """k rows, and nothing else."""
    ints, floats, first = np.zeros(0, np.int64), np.zeros(0), np.zeros(1, np.int64)
    return Criteria(
        k=k,
        kind=ints,
        column=ints,
        level=floats,
        c=floats,
        codes=ints,
        uncounted=ints,
        share=floats,
        share_first=first,
        parent=np.zeros(0, np.int32),
        height=floats,
        parent_first=first,
        near_end=np.zeros(0, np.int32),
        near_first=first,
    )


class Tally(NamedTuple):
    """Distinct codes of a node in order, and how many rows have at most each."""

    value: list[int]
    below: list[int]


class Gain(NamedTuple):
    """After which distinct code an attribute is cut (-1: nowhere), the gain and the loss before."""

    at: int
    gain: float
    whole: float


class Group(NamedTuple):
    """From which distinct code to which a group goes (-1: there is none), and the gain."""

    first: int
    last: int
    gain: float


class Opened:
    """Packed rows, and a node of them: all, unless `node` said which."""

    def __init__(
        self,
        rows: mondrian.Rows,
        criteria: Criteria | None = None,
        policy: mondrian.KernelPolicy | None = None,
    ) -> None:
        self._rows = rows
        self._structs = _structs(rows, criteria or no_criteria(), policy)
        self._probe = _POINTER()
        opened = ctypes.byref(self._probe)
        if _call("open", *self._structs, opened, result=ctypes.c_int):
            raise MemoryError
        weakref.finalize(self, _call, "close", self._probe, result=None)
        self._count = rows.codes.shape[1]

    def node(self, start: int, stop: int, *, in_word: bool = False) -> None:
        """Look at some of the rows from now on; at bits of a word for each if ``few``."""
        self._count = stop - start
        _call("node", self._probe, _INT(start), _INT(stop), int(in_word), result=None)

    @property
    def stride(self) -> int:
        """Bytes of a packed row."""
        return int(_call("stride", self._probe))

    def numbers(self) -> list[int]:
        """The numbers of all rows, in their present order."""
        found = np.empty(self._rows.codes.shape[1], np.int32)
        _call("numbers", self._probe, _address(found), result=None)
        return found.tolist()

    def is_clean(self) -> bool:
        """Whether the working memory that has to be zero between uses is."""
        return bool(_call("is_clean", self._probe, result=ctypes.c_int))

    def tally(self, a: int = 0) -> Tally:
        """Count the codes of an attribute, for what is asked next."""
        value, below = np.empty((2, int(np.diff(self._rows.first).max())), np.int64)
        d = _call("tally", self._probe, a, _address(value), _address(below))
        return Tally(value[:d].tolist(), below[:d].tolist())

    def present(self) -> list[set[int]]:
        """The codes that are present of each attribute; of at most 64 codes each."""
        words = np.zeros(len(self._rows.codes), np.uint64)
        _call("find_present", self._probe, _address(words), result=None)
        return [{v for v in range(64) if int(word) >> v & 1} for word in words]

    def count_few(self, a: int) -> list[int] | None:
        """How many rows have a code of at most 0 to 15; None where a register cannot count them."""
        below = np.zeros(16, np.uint8)
        counted = _call("count_few", self._probe, a, _address(below), result=ctypes.c_int)
        return below.tolist() if counted else None

    def width(self, a: int = 0) -> float:
        """Loss per row of the node."""
        return float(_call("width", self._probe, a, result=_DOUBLE))

    def median_cut(self, k: int) -> int:
        """After which distinct code; -1: nowhere."""
        return int(_call("median_cut", self._probe, _INT(k)))

    def gain_cut(self, k: int, a: int = 0) -> Gain:
        """The cut with the largest gain."""
        gain, whole = _DOUBLE(), _DOUBLE()
        gains = ctypes.byref(gain), ctypes.byref(whole)
        at = _call("gain_cut", self._probe, a, _INT(k), *gains)
        return Gain(at, gain.value, whole.value)

    def gain_group(self, least: int, most: int, whole: float, a: int = 0) -> Group:
        """The group amid the others of ``least`` to ``most`` rows; ``whole``: as of `gain_cut`."""
        first, last = _INT(), _INT()
        ends = ctypes.byref(first), ctypes.byref(last)
        asked = _INT(least), _INT(most), _DOUBLE(whole)
        gain = _call("gain_group", self._probe, a, *asked, *ends, result=_DOUBLE)
        return Group(first.value, last.value, gain)

    def cut_satisfies(self, low: int, high: int, a: int = 0) -> bool:
        """Whether rows of codes low to high, and the others, satisfy the criteria."""
        return bool(
            _call("cut_satisfies", self._probe, a, _INT(low), _INT(high), result=ctypes.c_int)
        )

    def halves_satisfy(self, middle: int) -> bool:
        """Whether the first rows of the node, and the others, satisfy the criteria."""
        return bool(_call("halves_satisfy", self._probe, _INT(middle), result=ctypes.c_int))

    def mark_valid(self, a: int = 0) -> list[bool]:
        """Which cuts of the attribute that was tallied keep k and the criteria."""
        valid = np.zeros(self._count, np.uint8)
        cuts = len(self.tally(a).value) - 1
        _call("mark_valid", self._probe, a, _address(valid), result=None)
        return [bool(each) for each in valid[:cuts]]

    def split_rows(self, low: int, high: int, a: int = 0) -> int:
        """Bring rows of codes low to high to the front; how many they are."""
        return int(_call("split_rows", self._probe, a, _INT(low), _INT(high)))

    def local_search(self, class_starts: NDArray[np.uint8]) -> None:
        """Let rows change their classes, which begin at the ``class_starts`` (rows,)."""
        if _call("local_search", self._probe, _address(class_starts), result=ctypes.c_int):
            raise MemoryError


def classes_by(
    flag: str, rows: mondrian.Rows, criteria: Criteria, policy: mondrian.KernelPolicy
) -> tuple[NDArray[np.int32], Ints]:
    """`mondrian.classes` of a library that was compiled with one more flag."""
    count = rows.codes.shape[1]
    index, class_starts = np.empty(count, np.int32), np.zeros(count, np.uint8)
    structs = _structs(rows, criteria, policy)
    into = _address(index), _address(class_starts)
    if _library(flag).mo_classes(*structs, _INT(1), *into, None):
        raise MemoryError
    return index, np.flatnonzero(class_starts)


def _structs(
    rows: mondrian.Rows, criteria: Criteria, policy: mondrian.KernelPolicy | None
) -> tuple[Any, ...]:
    """References to all as C takes them; they keep the structures alive, and not the arrays."""
    made = (
        *mondrian._checked(rows, criteria),
        mondrian._policy(policy or mondrian.KernelPolicy(0, 3, 0)),
    )
    return tuple(map(ctypes.byref, made))


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return _POINTER(array.ctypes.data)
