"""The operator that inspects a table."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
import yaml
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops.operators import InspectOperator
from unknown_tables import patients


def inspected(context, **arguments) -> str:
    return InspectOperator(task_id="inspect", **arguments).execute(context)


def test_the_job_is_returned_and_the_log_shows_what_was_found(context, tmp_path, capfd):
    path = tmp_path / "people.parquet"
    pq.write_table(patients(), path)
    job = inspected(context, input=str(path), rows="500")
    logged = "".join(capfd.readouterr())
    assert yaml.safe_load(job)["sensitive"] == ["diagnosis", "salary"]
    assert "600 rows, 11 columns" in logged
    assert "mail.example" not in logged


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"input": "/etc/people.csv"}, "allowed_inputs"),
        ({"input": "{}/none.csv"}, "none.csv"),
        ({"input": "{}/none.csv", "rows": "1.5"}, "rows: must be a whole number"),
    ],
)
def test_what_a_retry_cannot_cure_is_final(arguments, error, context, tmp_path):
    given = {key: value.format(tmp_path) for key, value in arguments.items()}
    with pytest.raises(AirflowFailException, match=error):
        inspected(context, **given)
