"""Which series is attacked, and what its job has to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from mondrian_ops.errors import JobError
from mondrian_ops.job.job import Job
from mondrian_ops.series.attack import Player, attack
from mondrian_ops.series.history import Noted
from mondrian_ops.series.naming import name_of_series

JOB = Job.from_dict(
    {
        "input": "in/2025-01-01.parquet",
        "output": "out/2025-01-01",
        "k": 4,
        "l": 2,
        "entity_id": "person",
        "quasi_identifiers": ["age"],
        "sensitive": ["diagnosis"],
        "series": {},
    }
)


@pytest.mark.parametrize(
    "lacking", [{"series": None}, {"entity_id": None}, {"sensitive": ()}, {"sensitive": ("a", "b")}]
)
def test_who_is_followed_must_be_said(lacking: Mapping[str, Any]) -> None:
    with pytest.raises(JobError, match="give the job series, entity_id and one column in sensitiv"):
        attack(replace(JOB, **lacking), "out/2025-01-01", {})


def test_a_series_is_found_by_the_output_of_any_of_its_nights() -> None:
    with mock.patch("mondrian_ops.series.attack.Player") as player:
        found = attack(JOB, "/srv/out/2025-01-07", {})
    job, trees, evidence = player.call_args.args
    assert (job, trees) == (JOB, {})
    assert evidence.name == name_of_series("/srv/out/2025-01-01") != name_of_series("/srv/x")
    assert found is player.return_value.play.return_value


def test_each_night_is_looked_at_and_each_release_beside_that_is_of_none() -> None:
    """Of a night that was held there is no release: one at its output is from outside."""
    outputs = [f"out/2025-01-0{day}" for day in (1, 2, 3, 4)]
    nights = [
        Noted(number, "", "in", output, "its", 0, state)
        for number, (output, state) in enumerate(zip(outputs, ("published", "held"), strict=False))
    ]
    player = Player(JOB, {}, mock.Mock())
    with (
        mock.patch("mondrian_ops.series.attack.noted", return_value=nights),
        mock.patch("mondrian_ops.series.attack.outputs_beside", return_value=outputs),
        mock.patch(
            "mondrian_ops.publish.current_token", side_effect=lambda of: None if "04" in of else of
        ),
        mock.patch.multiple(player, see_night=mock.DEFAULT, see_outside=mock.DEFAULT) as seen,
        mock.patch.object(player, "conclude") as conclude,
    ):
        assert player.play(outputs[0]) is player.found
    assert [call.args[0] for call in seen["see_night"].call_args_list] == nights
    assert [call.args[1] for call in seen["see_outside"].call_args_list] == outputs[1:3]
    conclude.assert_called_once_with()


@pytest.mark.parametrize("subtraction", ["allow", "protect"])
def test_who_is_certain_by_subtraction_fails_a_series_that_protects_them(subtraction: str) -> None:
    options = {"protect": "intersection", "unmatched": "counterfeit", "subtraction": subtraction}
    job = Job.from_dict({**JOB.to_dict(), "series": {"kind": "snapshots", **options}})
    player = Player(job, {}, mock.Mock())
    player.found.nights.append(mock.Mock())
    with mock.patch.object(player._subtraction, "certain", return_value=2):
        player.conclude()
    told = [each for each in player.found.failures if each.startswith("2 person(s) are certain")]
    noted = [each for each in player.found.notes if each.startswith("2 person(s) are certain")]
    assert (len(told), len(noted)) == ((1, 0) if subtraction == "protect" else (0, 1))


def test_who_was_in_a_small_class_is_told() -> None:
    player = Player(JOB, {}, mock.Mock())
    player.found.nights.append(mock.Mock())
    player._attacker.below_k.update({1, 2, 3})
    player.conclude()
    assert player.found.failures == ["3 person(s) were in a class of fewer than k = 4 persons"]
