"""How well releases can be worked with: random counts, and models that are trained on them.

On tables of persons that packages ship, beside two other programs and Mondrian as published (cuts
at the median). The other programs run in an environment of their own, `use_peers.py`.
"""

from __future__ import annotations

import json
import subprocess
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.context import Context
from benchmarks.measure import ROOT
from benchmarks.tables import Table, verdict

if TYPE_CHECKING:
    import pyarrow as pa

KS = (5, 10, 25)
PROGRAMS = ("anonypy", "anjana")
LONGEST_S = 300
"""A program that needs longer for a table is not waited for."""


class Source(NamedTuple):
    """A table: who ships it, its quasi-identifiers, and the column that a model predicts."""

    package: str
    item: str
    quasi_identifiers: Sequence[str]
    target: str

    def described(self) -> dict[str, object]:
        """As `use_peers.py` takes it."""
        columns = [*self.quasi_identifiers, self.target]
        return {"package": self.package, "item": self.item, "columns": columns}


SOURCES = {
    "run": Source("openintro", "get_it_dunn_run", ("sex", "age", "city"), "race"),
    "attrition": Source(
        "modeldata",
        "attrition",
        ("Age", "Gender", "MaritalStatus", "Department", "DistanceFromHome", "MonthlyIncome",
         "OverTime"),
        "Attrition",
    ),
    "hmda": Source(
        "AER", "HMDA", ("pirat", "lvrat", "chist", "unemp", "afam", "single", "selfemp"), "deny"
    ),
    "wage": Source(
        "ISLR", "Wage", ("age", "maritl", "race", "education", "jobclass", "wage"), "health_ins"
    ),
    "credit": Source(
        "modeldata",
        "credit_data",
        ("Seniority", "Home", "Age", "Marital", "Job", "Income", "Records"),
        "Status",
    ),
    "arrests": Source(
        "carData",
        "Arrests",
        ("colour", "year", "age", "sex", "employed", "citizen", "checks"),
        "released",
    ),
    "fair": Source(
        "statsmodels",
        "fair",
        ("rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation"),
        "affairs",
    ),
    "serum": Source("survival", "flchain", ("age", "sex", "sample.yr", "kappa", "lambda"), "death"),
    "insurance": Source(
        "AER",
        "HealthInsurance",
        ("age", "gender", "married", "family", "region", "ethnicity", "education"),
        "insurance",
    ),
    "loans": Source(
        "openintro",
        "loans_full_schema",
        ("emp_length", "state", "homeownership", "annual_income", "debt_to_income",
         "loan_purpose"),
        "term",
    ),
    "viet": Source(
        "Ecdat",
        "VietNamI",
        ("age", "sex", "married", "educ", "lnhhexp", "commune"),
        "insurance",
    ),
    "cps88": Source(
        "AER",
        "CPS1988",
        ("education", "experience", "ethnicity", "smsa", "region", "wage"),
        "parttime",
    ),
    "stops": Source(
        "carData",
        "MplsStops",
        ("race", "gender", "lat", "long", "policePrecinct", "problem"),
        "personSearch",
    ),
    "elections": Source(
        "stevedata",
        "TV16",
        ("state", "age", "female", "collegeed", "racef", "famincr", "ideo"),
        "votetrump",
    ),
}  # fmt: skip


class Peers:
    """The environment of the other programs, made once below the scratch directory."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.folder = context.scratch / "use"
        self.folder.mkdir(exist_ok=True)
        self._python = ROOT / ".venv-bench" / "bin" / "python"

    def prepare(self, tables: Mapping[str, Mapping[str, object]]) -> None:
        """Install the programs, and write tables: by name, who ships each, and its columns."""
        if not self._python.exists():
            self._context.say("use: installing requirements-bench.txt")
            venv.create(self._python.parents[1], with_pip=True)
            pip = [str(self._python), "-m", "pip", "install", "--quiet", "-r"]
            subprocess.run([*pip, str(ROOT / "requirements-bench.txt")], check=True)
        self._run("tables", str(self.folder), given=json.dumps(tables))

    def path(self, name: str) -> Path:
        """The file of a table."""
        return self.folder / f"{name}.parquet"

    def release(self, program: str, name: str, k: int) -> pa.Table | None:
        """What a program releases of a table's quasi-identifiers; None if it takes too long."""
        from pyarrow import parquet

        output = self.folder / f"{name}-{program}-{k}.parquet"
        try:
            self._run("release", program, str(self.path(name)), str(k), str(output))
        except subprocess.TimeoutExpired:
            return None
        return parquet.read_table(output)

    def _run(self, *arguments: str, given: str = "") -> None:
        script = str(Path(__file__).with_name("use_peers.py"))
        command = [str(self._python), script, *arguments]
        done = subprocess.run(
            command, input=given, text=True, capture_output=True, check=False, timeout=LONGEST_S
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments[:3])}: {done.stderr[-1500:]}")


def tables(context: Context) -> Iterator[Table]:
    """The errors of counts, and how well models predict."""
    peers = Peers(context)
    peers.prepare({name: each.described() for name, each in SOURCES.items()})
    yield _counts(context, peers)


def _counts(context: Context, peers: Peers) -> Table:
    from pyarrow import parquet

    rows = []
    for name in SOURCES:
        raw = parquet.read_table(peers.path(name))
        for k in KS[1:2] if context.rounds == 1 else KS:
            context.say(f"use: {name}, k = {k}")
            errors = {
                "auto": _error(raw, ours(raw, k)[0], k),
                "classic": _error(raw, ours(raw, k, cut="median")[0], k),
                **{each: _error(raw, peers.release(each, name, k), k) for each in PROGRAMS},
            }
            best = min(error for error in errors.values() if error is not None)
            shown = [
                f"> {LONGEST_S} s" if error is None else f"{100 * error:.1f} %"
                for error in errors.values()
            ]
            rows.append(
                (f"{name}, {raw.num_rows:,} rows, k = {k}", *shown, verdict(errors["auto"] == best))
            )
    return Table(
        "Random counts: the median relative error",
        ("table", "auto", "cut: median", *PROGRAMS, "the least is ours"),
        rows,
        note="1,000 counts of rows in random ranges of two quasi-identifiers, each of at least 1 % "
        f"of the rows. A program may take {LONGEST_S} s. anjana may suppress 5 % of the rows, and "
        "has hierarchies of 16, 8, 4 and 2 intervals.",
    )


def ours(raw: pa.Table, k: int, **options: Any) -> tuple[pa.Table, Mapping[str, Any]]:
    """Our release of a table, and its report."""
    from mondrian_ops import anonymize

    *quasi_identifiers, target = raw.column_names
    job = {"k": k, "quasi_identifiers": quasi_identifiers, "sensitive": [target], **options}
    released: tuple[pa.Table, Mapping[str, Any]] = anonymize(raw, job)
    return released


def labels_of(raw: pa.Table, names: Sequence[str]) -> Mapping[str, Any]:
    """What reads the labels of any release of a table, each column with its default."""
    import pyarrow.compute as pc

    from mondrian_ops.job.job import Job
    from mondrian_ops.verify.labels import labels_of_job

    domains = {name: pc.unique(raw[name]).sort() for name in names}
    types = {name: raw.schema.field(name).type for name in names}
    job = Job.from_dict({"k": 2, "quasi_identifiers": list(names)}, paths_required=False)
    return labels_of_job(job, types, domains, {}, {})


def _error(raw: pa.Table, released: pa.Table | None, k: int) -> float | None:
    from mondrian_ops.verify.use import columns_of_table, query_errors

    if released is None:
        return None
    labels = labels_of(raw, raw.column_names[:-1])
    errors = query_errors(list(columns_of_table(labels, raw, released).values()), k)
    assert errors is not None
    return errors.median
