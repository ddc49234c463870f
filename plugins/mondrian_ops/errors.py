"""The errors of this package: each says what is wrong, where, and what to do about it.

A :class:`MondrianOpsError` is final, a second attempt on the same input ends the same way, so the
Airflow operators fail without a retry. Any other exception is unforeseen and may be retried.
Messages name options, columns, files and counts, never a person's value.
"""

from __future__ import annotations

import opcode
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any


class MondrianOpsError(Exception):
    """Base of every error this package raises on purpose; always final."""

    report: Mapping[str, Any] | None = None
    """The report of a release that was measured before it was refused or rejected."""


class JobError(MondrianOpsError, ValueError):
    """The job description is wrong; the message starts with the path of the key."""


class HierarchyError(MondrianOpsError, ValueError):
    """A generalization hierarchy is malformed, or does not cover the data."""


class InputError(MondrianOpsError):
    """The source is missing, empty, of mixed schema, lacks a column, or changed while read.

    ``where``: the file and line of a value, if it is about one.
    """

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class PrivacyError(MondrianOpsError):
    """The privacy requirement cannot be met, or a release failed its verification."""

    def __init__(self, message: str, report: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report


class UnattainableError(PrivacyError):
    """The rows as a whole do not meet the requirement, so no release of them can."""


class KernelsError(MondrianOpsError, ImportError):
    """The compiled kernels are missing here, or are those of another machine or version."""


class ApprovalError(MondrianOpsError):
    """A release needs an approval that it did not get."""


class StorageError(MondrianOpsError):
    """The output is occupied or not writable, or a working file vanished."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the known word nearest to ``word``, else the empty text."""
    import difflib

    by_folded = {name.casefold(): name for name in known}
    nearest = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return f" (did you mean {by_folded[nearest[0]]!r}?)" if nearest else ""


@contextmanager
def values_withheld() -> Iterator[None]:
    """Replace an unforeseen error by one that names its type and place, but not its message.

    For errors that end in logs: messages of Python and of libraries may quote a value of the data.
    Those of the system, OSErrors with a number, quote paths at most, and pass; so do OSErrors that
    this package raises itself. Other OSErrors have a library's text.

    Raises RuntimeError.
    """
    try:
        yield
    except MondrianOpsError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and (error.errno is not None or _is_ours(error)):
            raise
        frames = traceback.extract_tb(error.__traceback__)[1:]
        way = ", ".join(f"{PurePath(each.filename).name}:{each.lineno}" for each in frames)
        raise RuntimeError(
            f"{type(error).__name__} at {way}; its message is withheld because it may quote a value"
        ) from None


def _is_ours(error: BaseException) -> bool:
    """Whether an error is of a class of this package, or a ``raise`` of it is its origin."""
    if _is_of_this_package(type(error).__module__):
        return True
    origin = error.__traceback__
    while origin is not None and origin.tb_next is not None:
        origin = origin.tb_next
    if origin is None:
        return False
    frame = origin.tb_frame
    is_raise = frame.f_code.co_code[origin.tb_lasti] == opcode.opmap["RAISE_VARARGS"]
    return is_raise and _is_of_this_package(str(frame.f_globals.get("__name__")))


def _is_of_this_package(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
