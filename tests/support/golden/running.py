"""Run a job by the command line in this process, and compare its figures with the golden set."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from mondrian_ops.cli import main

_EXPECTED = Path(__file__).resolve().parents[2] / "golden"
_RENEW = "MONDRIAN_OPS_RENEW"


class Done(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str


def command(*arguments: str) -> Done:
    """Run a command of ``python -m mondrian_ops``."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(arguments)
    return Done(status, out.getvalue(), err.getvalue())


def write_job(described: Mapping[str, Any]) -> str:
    """Write a job file into the working directory, and return its path."""
    Path("job.json").write_text(json.dumps(described), "utf-8")
    return "job.json"


def run(described: Mapping[str, Any]) -> dict[str, Any]:
    """Publish a release, and return its report."""
    done = command("run", write_job(described), "--json", "--approve")
    assert done.status == 0, done.err
    report: dict[str, Any] = json.loads(done.out)
    return report


def expect(file: str, name: str, figures: Mapping[str, Any]) -> None:
    """Assert that these are the figures of ``name`` in the golden set, or renew them there."""
    path = _EXPECTED / file
    expected = json.loads(path.read_text("utf-8"))
    figures = _rounded(figures)
    if os.environ.get(_RENEW):
        path.write_text(_to_text({**expected, name: figures}), "utf-8")
    else:
        assert figures == expected[name]


def _rounded(value: Any) -> Any:
    """As JSON reads it, to nine digits: further digits depend on the order of additions."""
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.9g}"))


def _to_text(whole: Mapping[str, Mapping[str, Any]]) -> str:
    """JSON with one line for each figure, so that a diff is short."""
    entries = []
    for name in sorted(whole):
        lines = [f"  {_json(key)}: {_json(value)}" for key, value in sorted(whole[name].items())]
        entries.append(f" {_json(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
