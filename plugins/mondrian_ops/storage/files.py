"""Single files of bytes: whole, or not there at all."""

from __future__ import annotations

from pathlib import Path

from mondrian_ops.storage.locations import local_path

__all__ = ["read_file", "write_file"]


def write_file(url: str, content: bytes) -> None:
    """Write a file as a whole or not at all; one that is there is replaced."""
    path = local_path(url)
    temporary = Path(f"{path}.tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def read_file(url: str) -> bytes:
    """The content of a file; raises FileNotFoundError where there is none."""
    return Path(local_path(url)).read_bytes()
