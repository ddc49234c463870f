"""Which tests share a process."""

from pathlib import Path

import pytest

from groups import GROUPS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("path", GROUPS)
def test_a_group_names_tests_that_are_there(path: str) -> None:
    """A renamed file that is left behind here starts servers of its own."""
    assert (ROOT / path).exists()
