"""The command line: run, plan, verify, frontier, sweep, series, contract, hierarchy,
schema, generate, init, inspect.

Results go to standard output, progress and errors to standard error. The exit status is 0 if the
command succeeds (`run`: published, or the rows of a series' night wait; `verify`: passed), 1 if it
is refused or fails, 2 for an invalid command line. A module of this
package declares the arguments of a command beside the command, which imports the heavy modules that
it needs, so that `--help` starts fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from mondrian_ops import __version__
from mondrian_ops.cli.output import REFUSED, fail
from mondrian_ops.cli.signals import SIGNALS, Terminated
from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.lean_imports import import_lean

__all__ = ["main"]

_MODULES = {
    "run": "run", "plan": "run", "verify": "verify", "frontier": "frontier", "sweep": "sweep",
    "series": "series", "contract": "contract", "hierarchy": "hierarchy", "generate": "generate",
    "init": "init", "inspect": "inspect", "schema": "init",
}  # fmt: skip
"""The module of each command."""
_INTERRUPTED = 130
_TERMINATED = 143

_EPILOG = """\
examples:
  python -m mondrian_ops inspect people.csv --write job.yaml
  python -m mondrian_ops generate poker --rows 1000000 --output data/poker.parquet
  python -m mondrian_ops run job.yaml --set k=10 --set partitioning.fragments=4
  python -m mondrian_ops verify out/poker --job job.yaml
  python -m mondrian_ops frontier job.yaml --k 2,5,10,25,50,100 --l 1,2,3
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser(given[:1]).parse_args(given)
    command: Callable[[argparse.Namespace], int] = options.command
    _survive_odd_terminals()
    try:
        with SIGNALS.raised():
            import_lean()
            status = command(options)
            sys.stdout.flush()  # raises BrokenPipeError here, not at shutdown
            return status
    except MondrianOpsError as error:
        return fail(str(error), REFUSED)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return _pipe_closed()
        if error.errno is None:  # a server's error, which names no file
            return fail(str(error), REFUSED)
        return fail(f"{error.strerror or error}: {error.filename or 'input or output'}", REFUSED)
    except MemoryError:
        return fail(
            "out of memory; raise partitioning.fragments, or run fewer jobs at once", REFUSED
        )
    except KeyboardInterrupt:
        return fail("interrupted", _INTERRUPTED)
    except Terminated:
        return fail("terminated", _TERMINATED)


def _parser(first: Sequence[str]) -> argparse.ArgumentParser:
    """What reads a command line: of the command that is its ``first`` word, if it is one."""
    parser = argparse.ArgumentParser(
        prog="mondrian_ops",
        description="k-anonymous, l-diverse releases of personal data.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mondrian_ops {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    modules = [_MODULES[name] for name in first if name in _MODULES] or [*_MODULES.values()]
    for module in dict.fromkeys(modules):
        import_module(f"{__name__}.{module}").add(commands)
    return parser


def _pipe_closed() -> int:
    # The reader has left (`| head`): nothing to report, and Python must not fail at shutdown.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return REFUSED


def _survive_odd_terminals() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
