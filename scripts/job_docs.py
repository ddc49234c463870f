"""Write what the documentation and editors say of a job's options, from their descriptions.

    python scripts/job_docs.py

The tables of ``docs/job.md`` stand between ``<!-- options of X -->`` and ``<!-- end -->``, where X
is ``job``, a section of it, or ``quasi_identifiers``; the schema is ``docs/job.schema.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from mondrian_ops.job.job import Job
from mondrian_ops.job.options import Options, options_of
from mondrian_ops.job.schema import job_schema, option_table

DOCS = Path(__file__).resolve().parents[1] / "docs"
_TABLE = re.compile(r"(<!-- options of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written() -> Mapping[Path, str]:
    """The files, and what they should hold."""
    document, schema = DOCS / "job.md", DOCS / "job.schema.json"
    return {
        document: with_tables(document.read_text("utf-8")),
        schema: json.dumps(job_schema(), indent=1, ensure_ascii=False) + "\n",
    }


def with_tables(text: str) -> str:
    """A document with its tables written anew."""
    models: dict[str, type[Options]] = {"job": Job}
    models |= {name: each.model for name, each in options_of(Job).items() if each.model}
    return _TABLE.sub(lambda at: f"{at[1]}\n{option_table(models[at[2]])}\n\n{at[3]}", text)


def main() -> None:
    """Write them."""
    for path, text in written().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
