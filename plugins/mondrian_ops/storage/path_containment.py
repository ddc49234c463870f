"""Whether one location lies in another, or would be read as part of an input.

Symbolic links are followed. Two remote locations are on one store if they have a server or the
bucket in common.
"""

from __future__ import annotations

import fnmatch
from pathlib import Path, PurePath, PurePosixPath

from mondrian_ops.storage import connections
from mondrian_ops.storage.discovery import linked_directories, source_root
from mondrian_ops.storage.locations import is_local, local_path, remote_parts

__all__ = ["lies_in", "would_be_read"]


def lies_in(url: str, other: str) -> bool:
    """Whether a location is the other one or lies below it."""
    return _on_one_store(url, other) and _path(url).is_relative_to(_path(other))


def would_be_read(file: str, input_url: str) -> bool:
    """Whether a file lies in an input (a file, a directory or a glob).

    That includes files below the target of a symbolic link in the input.
    """
    if is_local(file) and is_local(input_url):
        path = _path(file)
        if any(path.is_relative_to(directory) for directory in linked_directories(input_url)):
            return True
    root = source_root(input_url)
    if not lies_in(file, root):
        return False
    names, patterns = _path(file).parts, _path(input_url).parts
    if _path(root) == _path(input_url) or "**" in patterns:
        return True
    return len(patterns) <= len(names) and all(map(fnmatch.fnmatchcase, names, patterns))


def _path(url: str) -> PurePath:
    if is_local(url):
        return Path(local_path(url)).resolve()
    return PurePosixPath(remote_parts(url)[1])


def _on_one_store(one: str, other: str) -> bool:
    if is_local(one) or is_local(other):
        return is_local(one) and is_local(other)
    one_base, other_base = remote_parts(one)[0], remote_parts(other)[0]
    return not connections.servers_of(one_base).isdisjoint(connections.servers_of(other_base))
