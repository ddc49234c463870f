"""Reading published text back: does a class cover its originals, tightly, and what does it lose?

Plain Python and Arrow's casts to text; nothing of the package.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from brute_force import ancestor, common_prefix, leaves_below

STAR = "*"
CHAINS = {
    "a": ["A", "*"],
    "b": ["B", "*"],
    "ab": ["A", "*"],
    "ö": ["*"],
    "abc": ["A", "*"],
    "never": ["B", "*"],
}
TREE_FILE = "".join(";".join([leaf, *chain]) + "\n" for leaf, chain in CHAINS.items())


def in_any_order(table: pa.Table) -> list[str]:
    """Rows to compare where their order is drawn by lot: as text, for NaN is not equal to NaN."""
    return sorted(map(str, table.to_pylist()))


def parse_bool(text: str) -> bool:
    return {"true": True, "false": False}[text]


@dataclass(frozen=True)
class Kind:
    """A type of column: its values, how it can be generalized, how its text is read."""

    type: pa.DataType
    values: st.SearchStrategy[Any]
    ways: tuple[str, ...]
    parse: Callable[[str], Any]
    line: Callable[[Any], float] = float


def _of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


_DAY = dt.date(1999, 12, 30)
_MOMENT = dt.datetime(1969, 12, 31, 23, 59, 59)
_TEXTS = _of("a", "b", "ab", "abc", "ö")
_NUMBERS = ("interval", "set", "prefix")

KINDS: Mapping[str, Kind] = {
    "int": Kind(pa.int64(), st.integers(-9, 20), (*_NUMBERS, "grid:3@1", "ladder:2/6@-1"), int),
    "small int": Kind(pa.uint8(), _of(0, 1, 7, 254, 255), (*_NUMBERS, "grid:50"), int),
    "float": Kind(
        pa.float64(),
        _of(-2.5, -0.0, 0.0, 0.1, 0.3, 0.6, 0.7, 12.0, math.nan),
        (*_NUMBERS, "grid:0.1", "ladder:0.5/1"),
        float,
    ),
    "float32": Kind(
        pa.float32(), _of(-2.5, 0.25, 0.5, 5.0, 10.0, math.nan), (*_NUMBERS, "grid:5"), float
    ),
    "decimal": Kind(
        pa.decimal128(8, 2),
        _of(*map(Decimal, ("-1.25", "0.00", "0.10", "0.25", "7.50"))),
        (*_NUMBERS, "grid:0.25"),
        Decimal,
    ),
    "date": Kind(
        pa.date32(),
        st.integers(0, 40).map(lambda days: _DAY + dt.timedelta(days)),
        (*_NUMBERS, "grid:7@4"),
        dt.date.fromisoformat,
        lambda day: float(day.toordinal()),
    ),
    "timestamp": Kind(
        pa.timestamp("us"),
        st.integers(0, 9).map(lambda n: _MOMENT + dt.timedelta(seconds=n * n, microseconds=n)),
        (*_NUMBERS, "grid:1"),
        dt.datetime.fromisoformat,
        lambda moment: (moment - _MOMENT).total_seconds(),
    ),
    "zoned": Kind(
        pa.timestamp("ms", "UTC"),
        st.integers(0, 9).map(lambda n: (_MOMENT + dt.timedelta(n)).replace(tzinfo=dt.UTC)),
        (*_NUMBERS, "grid:3"),
        dt.datetime.fromisoformat,
        lambda moment: moment.timestamp(),
    ),
    "time": Kind(
        pa.time64("us"),
        st.integers(0, 23).map(lambda hour: dt.time(hour, 5, 0, 7)),
        _NUMBERS,
        dt.time.fromisoformat,
        lambda time: float(time.hour),
    ),
    "bool": Kind(pa.bool_(), st.booleans(), ("set",), parse_bool),
    "text": Kind(pa.string(), _TEXTS, ("set", "prefix", "hierarchy:tree.csv"), str),
    "large text": Kind(pa.large_string(), _of("", "x", "xy", "10%, b"), ("prefix",), str),
    "dictionary": Kind(
        pa.dictionary(pa.int32(), pa.string()), _TEXTS, ("set", "prefix", "hierarchy:tree.csv"), str
    ),
    "number dictionary": Kind(
        pa.dictionary(pa.int8(), pa.int64()), st.integers(-9, 9), (*_NUMBERS, "grid:4"), int
    ),
    "constant": Kind(pa.int32(), st.just(-5), (*_NUMBERS, "grid:4"), int),
    "nothing": Kind(pa.float64(), st.just(math.nan), (*_NUMBERS, "grid:4"), float),
}


def _place(value: Any) -> Decimal:
    """Where a value lies on a grid's line: a number itself, the day of a moment."""
    if not isinstance(value, dt.date):
        return Decimal(str(value))
    day = value.date() if isinstance(value, dt.datetime) else value
    return Decimal(day.toordinal() - dt.date(1970, 1, 1).toordinal())


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def text_of(kind: Kind, value: Any) -> str:
    plain = kind.type.value_type if pa.types.is_dictionary(kind.type) else kind.type
    if isinstance(value, float):
        value += 0.0  # -0.0 is 0.0
    return pa.array([value], plain).cast(pa.string())[0].as_py()


@dataclass(frozen=True)
class Column:
    """A quasi-identifier of a table: all its values, and how it is published."""

    name: str
    kind: Kind
    way: str
    values: Sequence[Any]

    @property
    def listed(self) -> str:
        return f"{self.name}={self.way}"

    @property
    def present(self) -> list[Any]:
        """Distinct values without the missing one."""
        found = {text_of(self.kind, v): v for v in self.values if not is_missing(v)}
        return list(found.values())

    @property
    def codes(self) -> list[Any]:
        """What is known of each value when rows are cut: of a grid, the cell alone."""
        code = self._cell if "grid" in self.way else lambda value: value
        return [None if is_missing(value) else code(value) for value in self.values]

    def _cell(self, value: Any) -> int:
        step, _, origin = self.way.partition(":")[2].partition("@")
        return math.floor((_place(value) - Decimal(origin or 0)) / Decimal(step))

    @property
    def tells_apart(self) -> bool:
        """Whether two rows differ in it, be it that one has no value."""
        return len(self.present) + any(map(is_missing, self.values)) > 1

    def check(self, published: str | None, originals: Sequence[Any]) -> tuple[float, float]:
        """Assert that a class is published as it should be; returns its NCP and LM per row."""
        present = [value for value in originals if not is_missing(value)]
        if not present:
            assert published is None
            return 0.0, 0.0
        if len(present) < len(originals) and published == STAR:
            return 1.0, 1.0
        assert published is not None
        assert len(present) == len(originals), "missing and present are published as '*'"
        word = self.way.partition(":")[0]
        return getattr(self, f"_check_{word}")(published, present)

    def _check_interval(self, published: str, present: list[Any]) -> tuple[float, float]:
        low, high = min(present), max(present)
        texts = text_of(self.kind, low), text_of(self.kind, high)
        if low == high:
            assert self.kind.parse(published) == low
            return 0.0, 0.0
        assert published == f"[{texts[0]}, {texts[1]}]"
        line = self.kind.line
        span = line(max(self.present)) - line(min(self.present))
        loss = (line(high) - line(low)) / span
        return loss, loss

    def _check_grid(self, published: str, present: list[Any]) -> tuple[float, float]:
        step, _, origin = self.way.partition(":")[2].partition("@")
        unit, start = Decimal(step), Decimal(origin or 0)
        cells = [self._cell(value) for value in present]
        low, high = start + unit * min(cells), start + unit * (max(cells) + 1)
        assert published[0] == "["
        assert published[-1] == ")"
        ends = published[1:-1].split(", ")
        if isinstance(present[0], dt.date):
            ends = [_place(dt.date.fromisoformat(end)) for end in ends]
        assert [Decimal(end) for end in ends] == [low, high]
        whole = [self._cell(value) for value in self.present]
        span = unit * (max(whole) + 1 - min(whole))
        loss = float((high - low) / span)
        return loss, loss

    def _check_set(self, published: str, present: list[Any]) -> tuple[float, float]:
        texts = {text_of(self.kind, value) for value in present}
        if len(texts) == 1:
            assert {published} == texts
            return 0.0, 0.0
        assert published == "{" + ", ".join(sorted(texts, key=self._order)) + "}"
        size = max(2, len(self.present))
        return len(texts) / size, (len(texts) - 1) / (size - 1)

    def _order(self, text: str) -> Any:
        return self.kind.parse(text)

    def _check_prefix(self, published: str, present: list[Any]) -> tuple[float, float]:
        texts = {text_of(self.kind, value) for value in present}
        shared, longest = common_prefix(texts), max(map(len, texts))
        assert published == shared.ljust(longest, STAR)
        if len(texts) == 1:
            return 0.0, 0.0
        domain = [text_of(self.kind, value) for value in self.present]
        below = sum(text.startswith(shared) for text in domain)
        return below / len(domain), (below - 1) / max(1, len(domain) - 1)

    def _check_hierarchy(self, published: str, present: list[Any]) -> tuple[float, float]:
        label = ancestor(CHAINS, set(present))
        assert published == label
        if len(set(present)) == 1:
            return 0.0, 0.0
        below = leaves_below(CHAINS, label)
        return below / len(CHAINS), (below - 1) / (len(CHAINS) - 1)

    def _check_ladder(self, published: str, present: list[Any]) -> tuple[float, float]:
        widths, _, origin = self.way.partition(":")[2].partition("@")
        start = Decimal(origin or 0)
        if len({float(value) for value in present}) == 1:
            assert self.kind.parse(published) == present[0]
            return 0.0, 0.0
        for width in map(Decimal, widths.split("/")):

            def step(value: Any, width: Decimal = width) -> int:
                return math.floor((Decimal(str(value)) - start) / width)

            steps = {step(value) for value in present}
            if len(steps) > 1:
                continue
            low = start + width * steps.pop()
            shown = [Decimal(end) for end in published[1:-1].split(", ")]
            is_closed = published[-1] == "]"
            assert shown == [low, low + width - (1 if is_closed else 0)]
            return self._share(width)
        assert published == STAR
        return 1.0, 1.0

    def _share(self, width: Decimal) -> tuple[float, float]:
        """A ladder's interval loses its share of the widest intervals that hold values."""
        widths, _, origin = self.way.partition(":")[2].partition("@")
        widest, start = Decimal(widths.split("/")[-1]), Decimal(origin or 0)
        steps = [math.floor((Decimal(str(value)) - start) / widest) for value in self.present]
        loss = float(width / (widest * (max(steps) - min(steps) + 1)))
        return loss, loss
