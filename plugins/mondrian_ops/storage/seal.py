"""The seal of a release that waits: a digest that tells whether what was checked is still there."""

from __future__ import annotations

import fnmatch
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor

from mondrian_ops.storage.digest import digest_of
from mondrian_ops.storage.files import names_in
from mondrian_ops.storage.locations import joined
from mondrian_ops.storage.release import PART_PATTERN

__all__ = ["seal_of"]

_AT_ONCE = 4


def seal_of(directory: str) -> str:
    """A digest of the names and contents of the parts of a release in a directory.

    Nothing is decoded: whatever a part holds is sealed, in columns that no check counts too.

    Raises FileNotFoundError where the directory, or a part that it listed, is not there.
    """
    names = sorted(fnmatch.filter(names_in(directory), PART_PATTERN))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        digests = pool.map(digest_of, [joined(directory, name) for name in names])
        sealed = list(zip(names, digests, strict=True))
    # As JSON: a name may hold any character, a line break too, but not end early.
    return hashlib.sha256(json.dumps(sealed).encode()).hexdigest()
