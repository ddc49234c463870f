"""The values of options: numbers, lists and texts as people write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from jobs import minimal, with_sensitive
from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import rows_of
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.job.sections import Partitioning


def test_the_values_of_a_form_mean_what_they_show() -> None:
    form = {
        "input": "in.csv",
        "output": "out",
        "k": "5",
        "l": None,
        "t": "",
        "identifiers": [],
        "quasi_identifiers": ["age", "zip=prefix"],
        "sensitive": None,
        "relaxed": "false",
        "cut": "",
        "partitioning": {"fragments": "4", "sample": "1e-2", "seed": None},
    }
    job = Job.from_dict(form)
    assert (job.k, job.l, job.t, job.relaxed, job.cut) == (5, None, None, False, "auto")
    assert job.quasi_identifier_names == ("age", "zip")
    assert job.partitioning == Partitioning(fragments=4, sample=0.01)


def test_blanks_between_commas_name_nothing() -> None:
    job = Job.from_dict(minimal(identifiers="a, ,b,", sensitive="", quasi_identifiers="c,,d=set"))
    assert job.identifiers == ("a", "b")
    assert job.sensitive == ()
    assert job.quasi_identifier_names == ("c", "d")


def test_values_of_any_depth_are_refused_in_a_few_words() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for key in ("quasi_identifiers", "identifiers", "k", "partitioning", "algorithm", "ladder"):
        with pytest.raises(JobError) as caught:
            Job.from_dict(minimal(**{key: deep}))
        assert len(str(caught.value)) < 600


def test_a_text_is_a_list_separated_by_commas() -> None:
    job = Job.from_dict(with_sensitive(sensitive="income, wealth", quasi_identifiers="a, b=set"))
    assert job.sensitive == ("income", "wealth")
    assert job.quasi_identifiers == (QuasiIdentifier("a"), QuasiIdentifier("b", "set"))


def test_paths_and_numbers_of_other_libraries_are_taken() -> None:
    job = Job.from_dict(minimal(input=Path("in.csv"), k=np.int64(7)))
    assert (job.input, job.k, type(job.k)) == ("in.csv", 7, int)
    for names in (np.array(["age", "zip"]), pd.Index(["age", "zip"]), pd.Series(["age", "zip"])):
        job = Job.from_dict(minimal(quasi_identifiers=names))
        assert job.quasi_identifier_names == ("age", "zip")
    with pytest.raises(JobError, match="quasi_identifiers: must be a list, not 7"):
        Job.from_dict(minimal(quasi_identifiers=np.int64(7)))


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(JobError) as caught:
        Job.from_dict(minimal(cut="x" * 5000))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "given", [{"a": True, "b": 3, "c": None}, ["a=true", "b = 3", ""], "a=true, b=3"]
)
def test_names_with_texts_are_a_mapping_or_lines(given: Any) -> None:
    job = Job.from_dict(minimal(spark={"conf": given}))
    assert job.spark.conf == {"a": "true", "b": "3"}


@pytest.mark.parametrize(("limit", "rows"), [(0, 0), (0.999, 99), (1, 1), (120, 120)])
def test_a_limit_is_a_number_of_rows_or_a_share_of_them(limit: float, rows: int) -> None:
    assert rows_of(limit, 100) == rows


@pytest.mark.parametrize(("share", "rows"), [(0.29, 29), (0.57, 57)])
def test_a_share_of_rows_is_not_one_row_short(share: float, rows: int) -> None:
    assert rows_of(share, 100) == rows
