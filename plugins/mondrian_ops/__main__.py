"""The program: ``python -m mondrian_ops``, and ``mondrian-ops`` of an installed wheel."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

from mondrian_ops.cli import main


def program() -> NoReturn:
    """Run a command, and end this process with its exit status.

    At the end Python takes all modules apart, which takes a tenth of a second. So the process ends
    just before, when exit handlers have run and nothing is left in a buffer; unless another thread
    has to end first, or somebody traces the program.
    """
    status = main()
    others = {*threading.enumerate()} - {threading.current_thread()}
    is_watched = sys.gettrace() or sys.getprofile()  # by what writes its results afterwards
    if not is_watched and all(each.daemon for each in others):
        atexit._run_exitfuncs()
        with suppress(OSError, ValueError):  # which Python then tells about
            for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed from the start
                stream.flush()
            os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    program()
