"""What was asked and decided is signed as a whole, by the key of the catalogue alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from mondrian_ops.catalogue import Catalogue, Place, approvals
from mondrian_ops.catalogue.approvals import Asked, Instance
from mondrian_ops.catalogue.tables import approval
from mondrian_ops.errors import ApprovalError

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
ID = "0" * 32
RELEASE = {"job": {"k": 5}, "work": "/w", "token": "t", "seal": "s", "map_index": -1}
DECISION = ("approved", "grace", "2025-06-01T12:00:00+00:00", "", "fine", "2")


@pytest.fixture
def question() -> Asked:
    return Asked(Instance("d", "r", "wrap_up", -1), RELEASE, "a digest")


@pytest.fixture
def decided(question: Asked) -> Asked:
    return question._replace(state=approvals.DECIDED, decision=DECISION)


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(Place.of(str(tmp_path / "catalogue.db")))


def keep(catalogue: Catalogue, asked: Asked, entry_id: str = ID) -> None:
    with catalogue.writing() as connection:
        approvals.keep(connection, KEY, entry_id, asked, "2025")


def find(catalogue: Catalogue, entry_id: str = ID, key: bytes = KEY) -> Asked | None:
    with catalogue.reading() as connection:
        return approvals.find(connection, key, entry_id)


def test_the_last_question_is_found_as_it_was_kept(
    catalogue: Catalogue, question: Asked, decided: Asked
) -> None:
    assert find(catalogue) is None
    keep(catalogue, question)
    assert find(catalogue) == question
    keep(catalogue, decided)
    assert find(catalogue) == decided


def test_each_release_has_its_own_question(
    catalogue: Catalogue, question: Asked, decided: Asked
) -> None:
    ids = ["5" * 32, "0" * 32, "9" * 32]
    asked = {each: question._replace(question=each) for each in ids}
    for each in ids:
        keep(catalogue, asked[each], each)
    keep(catalogue, decided, ids[0])
    assert [find(catalogue, each) for each in ids] == [decided, asked[ids[1]], asked[ids[2]]]
    assert find(catalogue, "7" * 32) is None


CHANGED: dict[str, Callable[[Asked], Asked]] = {
    "run": lambda asked: asked._replace(instance=asked.instance._replace(run_id="x")),
    "token": lambda asked: asked._replace(release={**RELEASE, "token": "x"}),
    "files": lambda asked: asked._replace(release={**RELEASE, "seal": "x"}),
    "job": lambda asked: asked._replace(release={**RELEASE, "job": {"k": 2}}),
    "question": lambda asked: asked._replace(question="x"),
    "state": lambda asked: asked._replace(state=approvals.ASKED),
    "answer": lambda asked: asked._replace(decision=("rejected", *DECISION[1:])),
    "user": lambda asked: asked._replace(decision=(*DECISION[:-1], "3")),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_no_part_of_it_can_be_changed_without_the_key(
    catalogue: Catalogue, decided: Asked, change: Callable[[Asked], Asked]
) -> None:
    keep(catalogue, decided)
    with catalogue.writing() as connection:
        connection.execute(approval.update().values(content=change(decided).to_json()))
    with pytest.raises(ApprovalError, match="signature"):
        find(catalogue)


def test_another_key_signs_nothing_here_and_a_row_stays_with_its_release(
    catalogue: Catalogue, question: Asked
) -> None:
    keep(catalogue, question)
    with pytest.raises(ApprovalError, match="signature"):
        find(catalogue, key=OTHER_KEY)
    with catalogue.writing() as connection:
        connection.execute(approval.update().values(release="1" * 32))
    with pytest.raises(ApprovalError, match="signature"):
        find(catalogue, "1" * 32)


def test_a_password_opens_its_question_only(catalogue: Catalogue, question: Asked) -> None:
    keep(catalogue, question)
    keep(catalogue, question, "5" * 32)

    def opened(entry_id: str, password: str) -> Any:
        with catalogue.reading() as connection:
            return approvals.opened(connection, entry_id, password)

    password = question.password(KEY)
    assert opened(ID, password) == question.instance
    others = (
        question._replace(instance=question.instance._replace(map_index=0)),
        question._replace(release={**RELEASE, "token": "x"}),
    )
    for wrong in (
        "",
        password[1:],
        question.password(OTHER_KEY),
        *(o.password(KEY) for o in others),
    ):
        assert opened(ID, wrong) is None
    for entry_id in ("1" * 32, ""):
        assert opened(entry_id, password) is None
        assert opened(entry_id, "") is None
    with catalogue.reading() as connection:  # it is nowhere in the database
        assert password not in str(connection.execute(sa.select(approval)).all())
