"""A folder by which a test tells processes that it did not start where to fail, and hears of them.

Processes that others start, such as Spark's Python workers, live for many cases: what is to strike
is read at every point, and whoever takes it away first is struck by it, once. Known by this module
alone: both ends of the folder. It knows nothing of the package, which may not be there yet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

VARIABLE = "MONDRIAN_OPS_TESTS_FAULTS"
"""Names the folder to a process."""


@dataclass(frozen=True)
class Order:
    """A fault at a point of a step, on files ``below`` a folder; once, or until it is revoked."""

    step: str
    point: str
    kind: str
    below: str
    once: bool = True


class Passed(NamedTuple):
    """A point that a process came by."""

    step: str
    point: str


class Mailbox:
    """The folder. Points lie in ``seen``, and what is said of them beside it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.seen = Path(folder, "seen")
        self._orders = Path(folder, "orders")
        self._struck = Path(folder, "struck")
        self._passed = Path(folder, "passed")

    def make(self) -> None:
        """Make the folder; it may be there."""
        for each in (self.seen, self._orders, self._struck, self._passed):
            each.mkdir(parents=True, exist_ok=True)

    # What a test does

    def order(self, name: str, order: Order) -> None:
        """Let a fault strike from now on."""
        hidden = self._orders / f".{name}"
        hidden.write_text(json.dumps(asdict(order)))
        hidden.rename(self._orders / name)

    def revoke(self, name: str) -> None:
        """Let it strike no more."""
        (self._orders / name).unlink(missing_ok=True)

    def struck(self, name: str) -> list[int]:
        """The processes that a fault has struck."""
        return [int(each.suffix[1:]) for each in self._struck.glob(f"{name}.*")]

    def forget(self) -> None:
        """Forget who came by which point."""
        for each in self._passed.iterdir():
            each.unlink()

    def passed(self) -> list[Passed]:
        """The points that were passed since; each once, by step in the order of their first."""
        lines = (line for each in self._passed.iterdir() for line in each.read_text().splitlines())
        return list(dict.fromkeys(Passed(*line.split("\t")) for line in lines))

    # What a process does

    def note(self, passed: Passed) -> None:
        """Say that this process comes by a point."""
        handle = os.open(
            self._passed / str(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        os.write(handle, f"{passed.step}\t{passed.point}\n".encode())
        os.close(handle)

    def take(self, passed: Passed, path: str) -> str | None:
        """The kind of fault that strikes this process here; None for none."""
        for name, order in self._ordered():
            if Passed(order.step, order.point) != passed or not _is_below(path, order.below):
                continue
            mark = self._struck / f"{name}.{os.getpid()}"
            if not order.once:
                mark.touch()
                return order.kind
            try:
                (self._orders / name).rename(mark)
            except FileNotFoundError:  # another process was quicker
                continue
            return order.kind
        return None

    def _ordered(self) -> Iterator[tuple[str, Order]]:
        for name in sorted(os.listdir(self._orders)):
            if name.startswith("."):
                continue
            try:
                yield name, Order(**json.loads((self._orders / name).read_text()))
            except FileNotFoundError:
                continue


def _is_below(path: str, folder: str) -> bool:
    return os.path.commonpath([os.path.abspath(path), folder]) == folder
