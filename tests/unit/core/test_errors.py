from __future__ import annotations

import pyarrow as pa
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


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowNotImplementedError,
        pa.ArrowCapacityError,
        pa.ArrowInvalid,
        pa.ArrowKeyError,
        RuntimeError,
        AssertionError,
        StopIteration,
        MemoryError,
        KeyError,
        type("OfALibrary", (Exception,), {}),
    ],
)
def test_the_words_of_an_error_that_is_not_ours_are_withheld(error: type[Exception]) -> None:
    with (
        pytest.raises(RuntimeError, match=rf"^{error.__name__} at test_errors\.py:\d+") as caught,
        errors.values_withheld(),
    ):
        raise error("Ada Lovelace")
    assert "Ada" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "error", [errors.PrivacyError("k"), OSError(28, "No space left"), ConnectionError("gone")]
)
def test_our_own_errors_and_those_of_the_system_say_what_is_wrong(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, errors.values_withheld():
        raise error
    assert caught.value is error


def test_what_ends_a_task_is_no_error() -> None:
    with pytest.raises(SystemExit, match="stopped"), errors.values_withheld():
        raise SystemExit("stopped")
