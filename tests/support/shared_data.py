"""Real data beside the checkout, which it can do without."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def shared_data(name: str) -> Path:
    """A file of ``../shared/data``; where there is no ``../shared``, the test is skipped.

    Where there is one, the test fails without its file: a name that is wrong skips nothing.
    """
    if not SHARED.is_dir():
        pytest.skip(f"needs ../shared/data/{name}")
    if not (file := SHARED / "data" / name).is_file():
        pytest.fail(f"../shared is there and has no data/{name}", pytrace=False)
    return file
