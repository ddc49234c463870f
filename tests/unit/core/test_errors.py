from __future__ import annotations

import pytest

from mondrian_ops.core import errors


@pytest.mark.parametrize(
    "error",
    [
        errors.JobError,
        errors.HierarchyError,
        errors.InputError,
        errors.PrivacyError,
        errors.StorageError,
    ],
)
def test_every_error_is_final(error: type[Exception]) -> None:
    assert issubclass(error, errors.MondrianOpsError)


@pytest.mark.parametrize("error", [errors.JobError, errors.HierarchyError])
def test_wrong_descriptions_are_value_errors(error: type[Exception]) -> None:
    assert issubclass(error, ValueError)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("sensitiv", " (did you mean 'sensitive'?)"),
        ("SENSITIVE", " (did you mean 'sensitive'?)"),
        ("zebra", ""),
        ("", ""),
    ],
)
def test_did_you_mean(word: str, hint: str) -> None:
    assert errors.did_you_mean(word, ["sensitive", "output", "k"]) == hint
