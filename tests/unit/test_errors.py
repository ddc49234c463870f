from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import errors


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


BROKEN = b"PAR1" + b"x" * 100 + b" \0\0\0PAR1"  # Arrow's error has no number


def called_in(module: str, what: str, **names: Any) -> None:
    """Run a function of a module that does ``what``."""
    scope = {"__name__": module, **names}
    exec(f"def act():\n    {what}", scope)  # noqa: S102 - its globals are what matters
    scope["act"]()


@pytest.mark.parametrize(
    ("module", "what"),
    [
        ("mondrian_ops.stores.files", "pq.ParquetFile(pa.BufferReader(BROKEN))"),
        ("mondrian_ops.stores.files", "fail('Ada')"),
        ("mondrian_ops_else", "raise OSError('Ada')"),
        ("httpx", "raise TimeoutError('Ada')"),
    ],
)
def test_an_oserror_without_a_number_has_the_text_of_a_library(module: str, what: str) -> None:
    def fail(text: str) -> None:
        raise ConnectionError(text)

    with (
        pytest.raises(RuntimeError, match=r"^(OS|Connection|Timeout)Error at .*withheld") as caught,
        errors.values_withheld(),
    ):
        called_in(module, what, pa=pa, pq=pq, fail=fail, BROKEN=BROKEN)
    assert "Ada" not in str(caught.value) and "thrift" not in str(caught.value)


@pytest.mark.parametrize("kind", [OSError, TimeoutError, ConnectionError])
def test_an_oserror_of_ours_says_what_is_wrong(kind: type[OSError]) -> None:
    with pytest.raises(kind, match=r"^run again$"), errors.values_withheld():
        called_in("mondrian_ops.stores.files", "raise kind('run again') from None", kind=kind)


@pytest.mark.parametrize("error", [errors.PrivacyError("k"), OSError(28, "No space left")])
def test_our_own_errors_and_those_of_the_system_say_what_is_wrong(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, errors.values_withheld():
        raise error
    assert caught.value is error


def test_what_ends_a_task_is_no_error() -> None:
    with pytest.raises(SystemExit, match="stopped"), errors.values_withheld():
        raise SystemExit("stopped")
