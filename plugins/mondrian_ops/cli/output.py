"""What a command writes: results to standard output, errors to standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

REFUSED = 1
"""The exit status of a command that is refused or fails."""


def write(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(line + "\n")


def write_json(value: Any) -> None:
    """Write a value of JSON's types to standard output."""
    write(json.dumps(value, indent=1, ensure_ascii=False))


def fail(message: str, status: int) -> int:
    """Say on standard error what failed, in one line; returns ``status``."""
    from mondrian_ops.report.number_format import printable

    sys.stderr.write(f"mondrian_ops: {printable(message)}\n")
    return status
