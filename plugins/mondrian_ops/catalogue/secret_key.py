"""The secret key of the catalogue: 32 random bytes, written as 64 hexadecimal digits.

Who has the key and the catalogue can find out whether somebody they know is in a release. The key
is never in the database.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

from mondrian_ops.errors import StorageError
from mondrian_ops.stores.local import sync
from mondrian_ops.stores.regular_files import open_regular

_DIGITS = re.compile(r"[0-9a-fA-F]{64}")


def read(key: str | None, file: str | None, may_make: bool) -> bytes:
    """The key, given as text or in a file; ``may_make`` a missing file.

    Raises StorageError if it is missing or no key.
    """
    if key is not None:
        return _parsed(key, "the password of the connection [mondrian_ops] catalogue_key_conn_id")
    if file is None:
        raise StorageError(
            "catalogue: no key is given; a catalogue in PostgreSQL needs [mondrian_ops] "
            "catalogue_key_conn_id or catalogue_key (outside Airflow MONDRIAN_OPS_CATALOGUE_KEY); "
            "`openssl rand -hex 32` makes one"
        )
    try:
        with open_regular(file, name=f"catalogue: the key {file}") as opened:
            return _parsed(opened.read().decode("ascii"), file)
    except FileNotFoundError:
        if not may_make:
            raise StorageError(
                f"catalogue: the key {file} is missing, and without it the persons in the "
                "catalogue cannot be found again; restore it (for a new catalogue in PostgreSQL "
                "make it: `openssl rand -hex 32`)"
            ) from None
    except UnicodeDecodeError:
        return _parsed("", file)
    made = secrets.token_bytes(32)
    _write(file, made)
    return made


def _write(file: str, key: bytes) -> None:
    """Write a key that is missing, to a private file that appears whole and stays."""
    path = Path(file)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as opened:
        opened.write(key.hex() + "\n")
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.rename(path)
    sync(path.parent)


def fingerprint(key: bytes) -> str:
    """A name of a key, which does not disclose it."""
    return hashlib.blake2b(b"id", key=key, digest_size=8).hexdigest()


def signature(key: bytes, purpose: str, *values: Any) -> str:
    """The keyed hash of values that JSON can hold, as 64 digits; those of two purposes differ."""
    return hmac.new(key, json.dumps([purpose, *values]).encode(), "sha256").hexdigest()


def _parsed(text: str, place: str) -> bytes:
    if not _DIGITS.fullmatch(text.strip()):
        raise StorageError(
            f"catalogue: {place} is not a key, which has 64 hexadecimal digits; restore it, or "
            "for a new catalogue make one with `openssl rand -hex 32`"
        )
    return bytes.fromhex(text.strip())
