"""Who publishes first, and what a publisher leaves that was killed or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from mondrian_ops import catalogue, publish
from mondrian_ops.catalogue import publication, sketches
from mondrian_ops.catalogue.publication import Intention, State
from mondrian_ops.catalogue.tables import publication as table
from mondrian_ops.catalogue.tables import sketch
from mondrian_ops.data.sketch import Sketch
from mondrian_ops.errors import StorageError
from waiting_runs import WaitingRun


class Killed(BaseException):
    """A process that ends here."""


class Publisher(WaitingRun):
    """A run that publishes."""

    def intend(self) -> Intention:
        with catalogue.current().writing() as connection:
            return self.noted(connection)

    def noted(self, connection: sa.Connection) -> Intention:
        files = {"token": self.work.token, "work": self.work.root, "output": self.output}
        return publication.intend(connection, "a", **files, time="2025-01-01")

    def publish(self, fails: BaseException | None = None, places: bool = True) -> None:
        with publication.publishing(catalogue.current(), self.intend(), self.noted):
            if places:
                self.place()
            if fails:
                raise fails


@pytest.fixture
def run(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path, "own")


def pending() -> list[Intention]:
    with catalogue.current().reading() as connection:
        return publication.pending(connection, "a")


def published() -> list[bool]:
    with catalogue.current().reading() as connection:
        return list(connection.scalars(sa.select(table.c.published)))


def settle() -> State:
    (intention,) = pending()
    return publication.settle(catalogue.current(), intention)


def test_a_publication_is_intended_and_then_confirmed(run):
    with publication.publishing(catalogue.current(), run.intend(), run.noted):
        assert [each.token for each in pending()] == [run.work.token]
        run.place()
    assert pending() == []
    assert published() == [True]


def test_scopes_are_apart(run):
    run.intend()
    with catalogue.current().reading() as connection:
        assert publication.pending(connection, "") == []  # before and after the scope
        assert publication.pending(connection, "b") == []


def test_a_release_that_is_refused_for_good_leaves_nothing(run):
    with pytest.raises(StorageError, match="no"):
        run.publish(StorageError("no"), places=False)
    assert published() == []


def test_one_that_may_be_tried_again_leaves_its_intention(run):
    with pytest.raises(OSError, match="disk"):
        run.publish(OSError("disk"), places=False)
    assert settle() is State.PENDING
    assert published() == [False]
    run.place()
    assert settle() is State.PUBLISHED
    assert published() == [True]


def test_one_that_was_published_stays_whatever_was_raised_then(run):
    with pytest.raises(StorageError, match="late"):
        run.publish(StorageError("late"))
    assert published() == [True]


@pytest.mark.parametrize("places", [False, True])
def test_who_finds_the_intention_of_a_killed_publisher_asks_the_store(run, places):
    with pytest.raises(Killed):
        run.publish(Killed(), places=places)
    if not places:
        assert settle() is State.PENDING  # a retry may publish
        assert len(pending()) == 1
    run.work.remove()
    assert settle() is (State.PUBLISHED if places else State.GONE)
    assert published() == [True] * places


def test_a_release_that_appears_between_the_two_looks_is_found(run, monkeypatch):
    run.intend()
    may_publish = publish.may_publish

    def then_published(*args):
        found = may_publish(*args)
        run.place()
        return found

    monkeypatch.setattr(publish, "may_publish", then_published)
    assert settle() is State.PUBLISHED


def test_where_the_output_cannot_be_looked_at_it_counts_as_published(run, caplog):
    run.output = "s3://no-connection@bucket/out"
    run.intend()
    assert settle() is State.PUBLISHED
    assert published() == [False]  # so that the next one looks again
    assert "cannot tell whether it was published" in caplog.text


def test_a_withdrawn_intention_takes_its_rows_along_and_its_id_is_not_used_again(run):
    with catalogue.current().writing() as connection:
        first = run.noted(connection)
        nobody = Sketch.nothing()
        sketches.note(connection, first, population="", by=["a"], dataset="out", people=nobody)
        publication.withdraw(connection, first)
        assert connection.scalar(sa.select(sa.func.count()).select_from(sketch)) == 0
        assert run.noted(connection).id > first.id


@pytest.mark.parametrize("token", ["", "~"])  # before and after any token
def test_another_attempt_confirms_nothing_of_this_one(run, token):
    intention = run.intend()
    publication.confirm(catalogue.current(), "a", token)
    assert pending() == [intention]


def test_the_intentions_of_others_stay(run):
    before, own, after = (run.intend() for _ in range(3))
    with catalogue.current().writing() as connection:
        publication.withdraw(connection, own)
    assert pending() == [before, after]


def test_a_confirmed_publication_cannot_be_withdrawn(run):
    run.publish()
    with catalogue.current().writing() as connection:
        publication.withdraw(connection, Intention(1, "a", "", "", ""))
    assert published() == [True]


def test_all_attempts_at_a_release_are_confirmed(run):
    run.intend()
    run.publish()
    assert published() == [True, True]


@pytest.mark.parametrize("fails", [None, StorageError("no")])
def test_a_catalogue_that_is_away_after_the_publication_is_told_and_settled_later(
    run, monkeypatch, caplog, fails
):
    intention = run.intend()
    with monkeypatch.context() as away:

        def unreachable(*_: object) -> None:
            raise OSError("away")

        try:
            with publication.publishing(catalogue.current(), intention, run.noted):
                run.place()
                away.setattr(catalogue.Catalogue, "writing", unreachable)
                if fails:
                    raise fails
        except StorageError as error:
            assert error is fails
    assert "the next run will do that (away)" in caplog.text
    assert settle() is State.PUBLISHED


def test_a_backup_that_is_restored_during_the_publication_gets_the_release_again(run):
    with publication.publishing(catalogue.current(), run.intend(), run.noted):
        run.place()
        with catalogue.current().writing() as connection:
            connection.execute(table.delete())
    assert published() == [True]


def test_a_publication_is_confirmed_in_its_own_scope_only(run):
    """The token is that of the attempt, which may publish in several."""
    run.intend()
    with catalogue.current().writing() as connection:
        files = {"token": run.work.token, "work": run.work.root, "output": run.output}
        publication.intend(connection, "b", **files, time="2025-01-01")
    publication.confirm(catalogue.current(), "a", run.work.token)
    assert published() == [True, False]
    with catalogue.current().reading() as connection:
        assert [each.scope for each in publication.pending(connection, "b")] == ["b"]
    assert pending() == []
