"""Coverage-guided fuzzing: ``python tests/fuzz/run.py TARGET SECONDS``; needs atheris.

``kernels`` runs anew, with kernels that sanitizers watch and that are covered as Python is; atheris
brings the library for both.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
FOUND = HERE.parents[1] / ".fuzz"
sys.path.insert(0, str(HERE.parent / "support"))
sys.path.append(str(HERE.parents[1] / "plugins"))  # after a copy of the package, if there is one

if sys.argv[1] == "kernels" and "MONDRIAN_OPS_SANITIZED" not in os.environ:
    from sanitized import environment, fuzzed

    FOUND.mkdir(exist_ok=True)
    library = Path(atheris.path(), "asan_with_fuzzer.so")
    settings = environment(fuzzed(FOUND / "plugins"), library)
    os.execve(sys.executable, [sys.executable, *sys.argv], settings)  # noqa: S606

with atheris.instrument_imports(include=["mondrian_ops", "yaml", "json", "csv"]):
    from fuzz_targets import TARGETS


def main() -> None:
    """Fuzz one target from its corpus; what crashes it is left in ``.fuzz``."""
    target, seconds = sys.argv[1], sys.argv[2]
    found = FOUND / target
    found.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", "-timeout=20", f"-artifact_prefix={found}/"]
    (found / "corpus").mkdir(exist_ok=True)
    folders = [str(found / "corpus"), str(HERE / "corpus" / target)]
    atheris.Setup([sys.argv[0], *options, *folders], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
