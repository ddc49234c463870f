"""Measure what cutting costs on this machine, and fit `mondrian_ops.cut.cut_costs` to it.

    .venv/bin/python scripts/cut_costs.py [--rows 20000] [--k 5 10 20]

Each figure is the median over poker hands and random numbers of 20 to 2,000 values, by processor
time; powers of k are lines through logarithms. What is printed stands beside what the package has.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from mondrian_ops.cut.algorithms.mondrian import CodedRows, CutPolicy, loss
from mondrian_ops.cut.anonymizer import Anonymizer
from mondrian_ops.cut.criteria import KAnonymity, Privacy
from mondrian_ops.cut.cut_costs import COSTS, CutCosts
from mondrian_ops.data.profile import Profiler
from mondrian_ops.datasets.poker import poker
from mondrian_ops.job.job import Job

SMALL = max(COSTS.smaller)
FEW_JOINED = 6
VALUES = (20, 200, 2000)  # of each column of random numbers


@dataclass(frozen=True)
class Case:
    """Rows that are cut with a k, and the seconds of what was measured on them."""

    coded: CodedRows
    k: int

    @property
    def level(self) -> float:
        """Seconds of a level if ``level_s`` were 1."""
        return self.coded.count * COSTS.level_seconds(self.coded.rows.present) / COSTS.level_s

    @property
    def slower(self) -> float:
        return COSTS.slower(np.diff(self.coded.rows.first))

    def seconds(self, **cut: int) -> float:
        """Processor time of cutting the rows; the least of three times."""
        policy, spent = CutPolicy("gain", **cut), []
        for _ in range(3):
            began = time.process_time()
            policy.classes(self.coded)
            spent.append(time.process_time() - began)
        return max(1e-9, min(spent))

    def more(self, than: Mapping[str, int], **cut: int) -> float:
        """Seconds that a policy takes beyond those of another one."""
        return max(1e-9, self.seconds(**cut) - self.seconds(**than))


def coded_of(table: pa.Table, k: int) -> CodedRows:
    """All columns of a table as quasi-identifiers in codes."""
    described = {"k": k, "quasi_identifiers": list(table.column_names)}
    job = Job.from_dict(described, paths_required=False)
    profiler = Profiler(job, table.schema, {})
    profiler.add(table)
    anonymizer = Anonymizer(job, profiler.finish(), {}, CutPolicy("gain"))
    return anonymizer.encode(table, Privacy(KAnonymity(k), ()))


def cases(rows: int, all_k: Sequence[int]) -> Iterator[Case]:
    """Every dataset with every k."""
    hands = poker(rows, 0)
    tables = [hands.select(hands.column_names[:-1])]
    generator = np.random.default_rng(0)
    for values in VALUES:
        columns = {f"n{i}": generator.integers(0, values, rows) for i in range(4)}
        tables.append(pa.table(columns))
    for table, k in product(tables, all_k):
        yield Case(coded_of(table, k), k)


def power_of_k(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """a and b of a · k**b through pairs (k, cost); b is 0 where all have the same k."""
    k, cost = (np.log(np.array(each, np.float64)) for each in zip(*points, strict=True))
    if np.ptp(k) == 0:
        return float(np.exp(np.median(cost))), 0.0
    b, a = np.polyfit(k, cost, 1)
    return float(np.exp(a)), float(b)


def fitted(measured: Sequence[Case]) -> CutCosts:
    """The figures of this machine. How wide columns and criteria of packages cost more is kept."""

    def middle(of_case: Callable[[Case], float]) -> float:
        return median(map(of_case, measured))

    def small(case: Case, **more: int) -> dict[str, int]:
        return {"rollout_rows": SMALL * case.k, **more}

    def grouped(case: Case, **more: int) -> dict[str, int]:
        return small(case, group_rows=SMALL * case.k, **more)

    def some(case: Case) -> float:
        return (1 + case.slower) / 2

    greedy_s = middle(lambda case: case.seconds() / case.coded.rows.codes.size)
    level_s = middle(lambda case: case.more({}, **small(case)) / case.level)

    def levels(case: Case, than: Mapping[str, int], **cut: int) -> float:
        return case.more(than, **cut) / (level_s * case.level)

    smaller = {
        few: middle(lambda case, few=few: levels(case, {}, rollout_rows=few * case.k))  # type: ignore[misc]
        for few in COSTS.smaller
    }
    groups, groups_by_k = power_of_k(
        [(case.k, levels(case, small(case), **grouped(case)) / some(case)) for case in measured]
    )
    candidates = {
        few: middle(
            lambda case, few=few: (
                levels(case, small(case), **grouped(case, candidates=few))  # type: ignore[misc]
                / levels(case, small(case), **grouped(case))
            )
        )
        for few in COSTS.candidates
    }
    reach = FEW_JOINED
    few_joined = middle(
        lambda case: (
            levels(
                case,
                {},
                rollout_rows=reach * case.k,
                group_rows=reach * case.k,
                candidates=1,
                joined=2,
            )
            / some(case)
        )
    )
    doubling, doubling_by_k = power_of_k(
        [(case.k, levels(case, grouped(case), **larger(case)) / case.slower) for case in measured]
    )
    joined = {
        count: middle(
            lambda case, count=count: (
                levels(case, grouped(case), **grouped(case, joined=count))  # type: ignore[misc]
                / (some(case) * lost(case) * case.k**groups_by_k)
            )
        )
        for count in COSTS.joined
    }
    return CutCosts(
        greedy_s=greedy_s, level_s=level_s, wide=COSTS.wide, wide_values=COSTS.wide_values,
        smaller=smaller, groups=groups, groups_by_k=groups_by_k, candidates=candidates,
        few_joined=few_joined, doubling=doubling, doubling_by_k=doubling_by_k,
        many=COSTS.many, many_values=COSTS.many_values, joined=joined,
        asked=COSTS.asked,
    )  # fmt: skip


def larger(case: Case) -> dict[str, int]:
    """Nodes of twice 8 k rows, cut by groups."""
    rows = 2 * SMALL * case.k
    return {"rollout_rows": rows, "group_rows": rows}


def lost(case: Case) -> float:
    """The share of information that greedy cutting loses."""
    return loss(case.coded, CutPolicy("gain")) / case.coded.rows.codes.size


def shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {shown(each)}" for key, each in value.items())
    return f"{value:.3g}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--k", type=int, nargs="+", default=[5, 10, 20])
    options = parser.parse_args(arguments)
    found = fitted(list(cases(options.rows, options.k)))
    for each in fields(CutCosts):
        name = each.name
        print(f"{name:14} {shown(getattr(found, name)):44} {shown(getattr(COSTS, name))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
