"""Anonymize, every night, each drop that has no release yet.

A drop is `LANDING/DATASET/2025-06-01.parquet` (or `.csv`; several files whose names start with the
same day are one drop), or a directory `LANDING/DATASET/2025-06-01` with `_SUCCESS` in it. Its job
is `JOBS/DATASET.yaml`, without `input` and `output`; its release is `RELEASES/DATASET/2025-06-01`,
which becomes an Asset. A drop that fails does not affect the others.

A night takes the drops of the days before it, the oldest first, as far as it looks back. A drop
that is not complete, or whose dataset is still at work or waits for an approval in another run, is
left to a later night; one that failed is tried again. `overdue_drops` fails as long as a drop
is older than that and has no release. The log of `find_drops`, and its XCom `drops`, tell what
became of each drop.

A drop whose columns are not those of the last release of its dataset is refused, and its error
names the change and an id. Trigger the DAG with this id under `accept` to release it as it is.

Trigger the DAG with a `day`, or make a backfill, to anonymize the drops of these days in any case.
An event of the Asset `mondrian_drop` starts a run at once; its extra `{"drop":
"DATASET/2025-06-01"}` names the drop, which has to be complete.

If the job says that the releases are a `series`, a run takes one drop of it, since the nights of a
series follow one another; `next_drops` then starts a run for the next one.

| | Airflow Variable | default |
|---|---|---|
| LANDING | `mondrian_ops_landing` | `data/landing` |
| JOBS | `mondrian_ops_jobs` | `include/jobs` |
| RELEASES | `mondrian_ops_releases` | `out/nightly` |
| how many days a night looks back | `mondrian_ops_lookback_days` | 7 |
| minutes after which an unchanged file is complete | `mondrian_ops_settle_minutes` | 10 |

LANDING and RELEASES may be URLs (`hdfs://`, `s3://`); JOBS is a directory that all workers share.
"""

from __future__ import annotations

from airflow.sdk import DAG, Asset

from mondrian_ops.nightly_dags import LANDING, RELEASES, nightly_dag


def setting(name: str, default: str) -> str:
    """The template of a Variable of the table above."""
    return f"{{{{ var.value.get('mondrian_ops_{name}', '{default}') }}}}"


dag: DAG = nightly_dag(
    "mondrian_nightly",
    landing=setting("landing", LANDING),
    jobs=setting("jobs", "include/jobs"),
    releases=setting("releases", RELEASES),
    lookback_days=setting("lookback_days", "7"),
    settle_minutes=setting("settle_minutes", "10"),
    drop=Asset("mondrian_drop"),
    display_name="Mondrian: nightly",
    doc_md=__doc__,
)
