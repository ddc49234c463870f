"""People released before, with the catalogue in a PostgreSQL: publishers at once, killed, cut off.

The order of the steps of two runs is enumerated on SQLite
(``tests/integration/test_two_runs_at_once.py``); here the database really has several clients.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from mondrian_ops import publish
from mondrian_ops.errors import PrivacyError
from mondrian_ops.pipeline import overlap_check
from people_runs import PeopleRun, publications

pytestmark = pytest.mark.postgres

KILLED = """
import os, signal, sys
from mondrian_ops import publish as publishing
from mondrian_ops.pipeline import overlap_check
from people_runs import PeopleRun

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

place, step = sys.argv[1:]
run = PeopleRun(place, "killed", range(20))
if step == "in the transaction":
    noted = overlap_check._noted
    overlap_check._noted = lambda *args: die(noted(*args))
elif step == "before the publication":
    publishing.publish = die
else:
    publish = publishing.publish
    publishing.publish = lambda *args: die(publish(*args))
run.publish()
"""


def at_once(*publish: Callable[[], None]) -> list[BaseException | None]:
    """Publish in threads that begin together; what each raised."""
    ready = threading.Barrier(len(publish))

    def one(each: Callable[[], None]) -> None:
        ready.wait()
        each()

    with ThreadPoolExecutor(len(publish)) as threads:
        begun = [threads.submit(one, each) for each in publish]
    return [each.exception() for each in begun]


def test_of_publishers_at_once_each_person_is_released_by_one(database, tmp_path):
    """Each shares people with its neighbours, but not with those beyond."""
    for number in range(5):
        place, population = tmp_path / str(number), str(number)
        runs = [
            PeopleRun(place, f"run{at}", range(at * 10, at * 10 + 15), population=population)
            for at in range(4)
        ]
        outcomes = at_once(*(run.publish for run in runs))
        published = [run.is_published for run in runs]
        assert published == [error is None for error in outcomes]
        assert any(published)
        assert not any(map(all, itertools.pairwise(published)))
        assert {type(error) for error in outcomes} <= {type(None), OSError, PrivacyError}
        for run in runs:
            if not run.is_published:
                with suppress(PrivacyError):
                    run.publish()  # as a retry does
        published = [run.is_published for run in runs]
        assert not any(map(all, itertools.pairwise(published)))
        assert len(publications(population)) == sum(published)


@pytest.mark.parametrize(
    "step", ["in the transaction", "before the publication", "after the publication"]
)
def test_a_publisher_that_is_killed_is_no_obstacle_and_not_forgotten(database, tmp_path, step):
    code = [sys.executable, "-c", KILLED, str(tmp_path), step]
    path = os.pathsep.join(filter(None, sys.path))
    killed = subprocess.run(code, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert killed.returncode == -signal.SIGKILL
    other = PeopleRun(tmp_path, "other", range(19, 40))
    if step == "after the publication":
        with pytest.raises(PrivacyError, match="of its people are in the release of"):
            other.publish()
        assert [each.published for each in publications()] == [True]
        return
    if step == "before the publication":
        with pytest.raises(OSError, match="1 other run"):
            other.publish()
        publish.WorkDir(publish.work_path(f"{tmp_path}/killed", "killed")).remove()
    other.publish()
    assert [each.intention.output for each in publications()] == [other.output]


def test_a_transaction_that_the_server_ends_leaves_nothing_and_may_be_tried_again(
    database, tmp_path, monkeypatch
):
    run = PeopleRun(tmp_path, "own", range(20))
    noted = overlap_check._noted

    def cut_off(job, work, connection):
        intention = noted(job, work, connection)
        database.cut_off()
        return intention

    with monkeypatch.context() as patched:
        patched.setattr(overlap_check, "_noted", cut_off)
        with pytest.raises(OSError, match=r"^catalogue: the database does not answer"):
            run.publish()
    assert not run.is_published
    database.back()
    assert publications() == []
    run.publish()
    assert run.is_published


@pytest.mark.parametrize("overlap", ["warn", "refuse"])
def test_while_the_database_is_away_nothing_is_published(database, tmp_path, overlap):
    run = PeopleRun(tmp_path, "own", range(20), overlap)
    database.cut_off()
    with pytest.raises(OSError, match=r"^catalogue: the database does not answer"):
        run.publish()
    assert not run.is_published
    database.back()
    run.publish()
    assert run.is_published


def test_a_database_that_goes_during_the_publication_is_told_when_it_is_back(
    database, tmp_path, caplog
):
    run = PeopleRun(tmp_path, "own", range(20))
    with overlap_check.recorded(run.job, run.work):
        database.cut_off()
        run.place()
    assert "could not be confirmed" in caplog.text
    run.work.remove()  # as a run does that has published
    database.back()
    with pytest.raises(PrivacyError, match="of its people are in the release of"):
        PeopleRun(tmp_path, "other", range(19, 40)).publish()
    assert [each.published for each in publications()] == [True]


def test_a_restored_backup_knows_what_it_held_and_who_publishes_meanwhile_but_no_more(
    database, tmp_path
):
    """Releases since the backup are lost to it, as docs/operate.md says."""
    before, since, during = (
        PeopleRun(tmp_path, f"run{first}", range(first, first + 20)) for first in (0, 20, 40)
    )
    before.publish()
    database.copy_to(f"{database.name}_backup", tmp_path)
    since.publish()
    with overlap_check.recorded(during.job, during.work):
        during.place()
        database.restore(f"{database.name}_backup")
    known = [(each.intention.output, each.published) for each in publications()]
    assert known == [(before.output, True), (during.output, True)]
