"""Keeping what was measured: a file for each run, and the committed page, part by part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import Checkout
from benchmarks.tables import Table

_HEAD = """# Measurements

Made by `make bench`; `make bench ARGS="--only PART --renew"` measures one part anew. Required
figures are the design's; nothing here is a test. Times mean something only on a machine that does
nothing else (load before: about 0).
"""
_PART = re.compile(r"^\*Part `(\w+)`, (?:measured on [-\d]+ at (\w+))?", re.MULTILINE)
_BY_HAND = "# Measured by hand\n"


@dataclass(frozen=True)
class Part:
    """The tables of one part of the benchmarks, and the machine just before it ran.

    ``commit`` is what was checked out.
    """

    name: str
    machine: dict[str, str]
    tables: Sequence[Table]
    commit: str

    def markdown(self) -> str:
        """The part as it stands on the page."""
        about = ", ".join(f"{name}: {value}" for name, value in self.machine.items())
        heading = f"*Part `{self.name}`, measured on {_today()} at {self.commit}. {about}.*\n"
        return "\n".join([heading, *(table.markdown() for table in self.tables)])


def keep(parts: Sequence[Part], folder: Path) -> None:
    """Write `results.md` and `results.json` of one run."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {
        "date": _today(),
        "commit": parts[0].commit,
        "machine": parts[0].machine,
        "tables": [table.as_dict() for part in parts for table in part.tables],
    }
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    (folder / "results.md").write_text(_page(part.markdown() for part in parts), encoding="utf-8")


def renew(part: Part, page: Path, order: Sequence[str]) -> None:
    """Put one part into the committed page, in the place of its earlier figures.

    What was measured by hand, at the end of the page, stays as it is.
    """
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    text, mark, by_hand = text.partition(_BY_HAND)
    heads = list(_PART.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    part_of = {
        head[1]: text[head.start() : end].rstrip() + "\n"
        for head, end in zip(heads, ends, strict=False)
    }
    part_of[part.name] = part.markdown()
    parts = [part_of[name] for name in order if name in part_of]
    page.write_text(_page([*parts, mark + by_hand] if mark else parts), encoding="utf-8")


def outdated(page: Path, checkout: Checkout) -> dict[str, str]:
    """The parts of the committed page that another commit than the one here was measured for.

    By name, with the commit; ``an unknown commit`` where the page does not say.
    """
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    measured = {head[1]: head[2] for head in _PART.finditer(text.partition(_BY_HAND)[0])}
    return {
        part: commit or "an unknown commit"
        for part, commit in measured.items()
        if not commit or checkout.differs(commit)
    }


def _page(parts: Iterable[str]) -> str:
    return "\n".join([_HEAD, *parts])


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
