"""The section ``series`` of a job: whether its rows may wait, and what its nights share."""

from __future__ import annotations

from typing import Literal

from mondrian_ops.job.options import SHARE, Options, option
from mondrian_ops.late_methods import dataclass


@dataclass(frozen=True, slots=True)
class Series(Options):
    """Options of a series: the releases of one dataset, night after night, that hang together."""

    kind: Literal["increments", "snapshots"] = option(
        "increments",
        title="Kind of the series",
        text="What a drop holds.",
        choices={
            "increments": "rows that no drop before it had",
            "snapshots": "all rows as they are now, so that a drop replaces the one before it",
        },
        form=None,
    )
    hold_nights: int = option(
        0,
        title="Nights to wait",
        text="How many nights a row may wait for better company before it is published. With 0 no "
        "row waits.",
        minimum=0,
        maximum=366,
        examples=(7,),
        form=None,
    )
    hold_above: float | None = option(
        None,
        title="Loss above which rows wait",
        text="The rows of an equivalence class wait if their information loss (NCP per row and "
        "quasi-identifier) is larger. Needs `hold_nights`.",
        **SHARE,
        unset="rows wait only if they cannot be published at all",
        needs="hold_nights",
        examples=(0.1,),
        form=None,
    )
    overdue: Literal["publish", "suppress"] = option(
        "publish",
        title="Rows that have waited long enough",
        text="What happens to rows that have waited for `hold_nights`.",
        choices={
            "publish": "they are published, generalized as far as it takes, or left out if even "
            "that is impossible",
            "suppress": "they are left out, and counted, if they would have to wait again",
        },
        needs="hold_nights",
        form=None,
    )
    boundaries: Literal["nightly", "stable"] = option(
        "nightly",
        title="Boundaries of the generalization",
        text="Where the intervals of numbers, dates and times may end.",
        choices={
            "nightly": "anywhere; each night anew",
            "stable": "where the first night divided them, so that groups can be counted over "
            "all nights",
        },
        see="[Count over all nights](series.md#count-over-all-nights)",
        form=None,
    )
    refit_above: float | None = option(
        None,
        title="Drift above which boundaries are fitted anew",
        text="The boundaries are fitted anew in a night whose drift is larger: the share of its "
        "rows that lie between other boundaries of a column than in the night of the fit. Counts "
        "before and after cannot be compared then, and the report says so.",
        **SHARE,
        unset="only when a person asks for it",
        only_with={"boundaries": ("stable",)},
        examples=(0.2,),
        form=None,
    )
    protect: Literal["release", "intersection"] = option(
        "release",
        title="Protection across nights",
        text="Against whom the series protects people.",
        choices={
            "release": "those who see one release",
            "intersection": "those who hold all releases and know in which nights a person was: "
            "while the person's value stays the same, at least `l` sensitive values common to all "
            "of the person's classes remain, but fewer for those who subtract a class of one night "
            "from that of the next (see `subtraction`); needs `entity_id`, one sensitive column "
            "and a whole `l` of `diversity: distinct`. No other column is published unchanged, and "
            "this one in one "
            "spelling of each value; `cut` and `relaxed` have no effect",
        },
        form=None,
    )
    unmatched: Literal["wait", "suppress", "counterfeit"] = option(
        "wait",
        title="Rows without a partner",
        text="What happens to rows that no class of the night may take without giving people away.",
        choices={
            "wait": "in a series of increments they wait, which needs hold_nights; in one of "
            "snapshots they are left out of the night, and counted",
            "suppress": "they are left out of the night, and counted",
            "counterfeit": "they are published, and rows are made up that have the sensitive "
            "values their classes lack; the report counts these, and `_counterfeits.parquet` says "
            "how many each class has. A row that still has no partner waits if rows may wait, or "
            "is left out",
        },
        only_with={"protect": ("intersection",)},
        form=None,
    )

    subtraction: Literal["allow", "protect"] = option(
        "allow",
        title="Protection against subtraction",
        text="Whether values are certain to somebody who knows everybody's class in every night, "
        "and subtracts classes from one another.",
        choices={
            "allow": "they are: of 5,000 people, of whom 4 % leave and come each night, after "
            "twelve nights 51 % at `l: 2`, 45 % at 3 and 36 % at 5, after thirty 83, 77 and 69 %",
            "protect": "they are not: `l` values stay equally likely for each person. Costs about "
            "twice the loss, and three made-up rows for ten people; needs "
            "`unmatched: counterfeit`; set `l` to 5 or more",
        },
        see="[Protect against subtraction](series.md#protect-against-subtraction)",
        only_with={"protect": ("intersection",)},
        form=None,
    )

    @property
    def holds(self) -> bool:
        """Whether rows may wait for a later night."""
        return self.hold_nights > 0 and self.kind == "increments"
