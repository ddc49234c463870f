"""Coverage-guided fuzzing: ``python tests/fuzz/run.py TARGET SECONDS``; needs atheris."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "plugins"), str(HERE.parent / "support")]

with atheris.instrument_imports(include=["mondrian_ops", "yaml", "json", "csv"]):
    from fuzz_targets import TARGETS


def main() -> None:
    """Fuzz one target from its corpus; what crashes it is left in ``.fuzz``."""
    target, seconds = sys.argv[1], sys.argv[2]
    found = HERE.parents[1] / ".fuzz" / target
    found.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", "-timeout=20", f"-artifact_prefix={found}/crash-"]
    (found / "corpus").mkdir(exist_ok=True)
    folders = [str(found / "corpus"), str(HERE / "corpus" / target)]
    atheris.Setup([sys.argv[0], *options, *folders], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
