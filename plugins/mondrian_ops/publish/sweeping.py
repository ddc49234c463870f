"""Find the working files that no run needs any more, and remove them.

A directory is removed only if it has the name of a working directory, belongs to this user, holds
the mark of an attempt at a run and, where it tells of a run in Airflow, has that run's name. So
somebody who may write beside an output cannot have anything else removed. No link is followed
(:mod:`mondrian_ops.stores.private_folders`), and what cannot be removed stops nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.publish import table_folders
from mondrian_ops.publish.work_paths import is_work_path
from mondrian_ops.publish.workdir import Owner, WorkDir
from mondrian_ops.stores.files import last_change
from mondrian_ops.stores.locations import is_hidden, is_of_table, joined, shown
from mondrian_ops.stores.private_folders import is_work_name
from mondrian_ops.stores.store import store_of

ANOTHERS = "of another user"


class Swept(NamedTuple):
    """What became of a working directory: ``removed``, ``kept`` or ``failed``, and why.

    ``forgotten``: rows wait in it for a night that does not come.
    """

    work: str
    state: str
    reason: str

    def __str__(self) -> str:
        return f"{shown(self.work)}: {self.state}, {self.reason}"


def sweep(folder: str, keep: timedelta, needed: Callable[[Owner], bool | None]) -> Iterator[Swept]:
    """Remove the working files below ``folder`` that no run needs; yields what became of each.

    ``needed`` tells whether a run in Airflow needs its working files. Where it cannot tell (None),
    and where they are those of a command line or of Python, they stay as long as a living process
    holds them, and until nothing in them has changed for the time ``keep``.
    """
    for work in directories_below(folder, is_work_name):
        try:
            removable, reason = _judged(WorkDir(work), keep, needed)
            if removable:
                WorkDir(work).remove()
            yield Swept(work, "removed" if removable else "kept", reason)
        except FileNotFoundError:
            pass  # its run has removed it meanwhile
        except (OSError, MondrianOpsError) as error:
            yield Swept(work, "failed", str(error))


def _judged(
    directory: WorkDir, keep: timedelta, needed: Callable[[Owner], bool | None]
) -> tuple[bool, str]:
    """Whether a directory may be removed, and why or why not."""
    if is_anothers(directory.root):
        return False, ANOTHERS
    if not directory.is_begun:
        return False, "no working files of a run"
    owner = directory.owner
    if owner is not None and not is_work_path(directory.root, owner.run):
        return False, "it says that it belongs to another run"
    if owner is not None and (need := needed(owner)) is not None:
        return not need, f"of the run {owner.run}"
    if directory.is_held:
        return False, "a process works with it"
    age = datetime.now(UTC) - last_change(directory.root)
    return age > keep, f"unchanged for {age / timedelta(hours=1):.1f} hours"


def directories_below(folder: str, is_wanted: Callable[[str], bool]) -> Iterator[str]:
    """The directories with wanted names at any depth below a folder.

    Links are left out, and so is what lies in other hidden directories than those of tables. Of a
    catalog itself nothing is found: the files of its tables lie in a store.
    """
    pending = [] if is_of_table(folder) else [folder]
    while pending:
        directory = pending.pop()
        for name in _directories_in(directory):
            if is_wanted(name):
                yield joined(directory, name)
            elif not is_hidden(name) or name == table_folders.FOLDER:
                pending.append(joined(directory, name))


def is_anothers(directory: str) -> bool:
    """Whether a private directory is another user's; a remote store has checked who may read it."""
    return store_of(directory).is_anothers(directory)


def _directories_in(directory: str) -> list[str]:
    try:
        return store_of(directory).directories(directory)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []  # gone meanwhile, or another user's
