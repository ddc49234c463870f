"""Links, pipes and other directories in the place of this package's own.

Somebody may write in the folder of the outputs, of the inputs, or in /tmp, and is faster than any
check. The attack is symlink following and the race between a check and its use (CWE-59, CWE-367;
M. Bishop and M. Dilger, "Checking for race conditions in file accesses", 1996).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowFailException

from mondrian_ops import publish, series, stores, tables
from mondrian_ops.engines import shipping
from mondrian_ops.errors import InputError, JobError, MondrianOpsError, StorageError
from mondrian_ops.operators.base import work_of
from mondrian_ops.publish import WorkDir, publication, work_path
from mondrian_ops.stores import AccessPolicy
from mondrian_ops.stores.locations import shown
from mondrian_ops.stores.regular_files import refuse_special
from mondrian_ops.tables import discovery
from nights import Nights
from other_users import give_away
from staged_releases import stage, version_of
from task_contexts import read_job, task_context
from teardowns import clean_up_after

RAW = b"Mary, 34, HIV"
AT_ONCE = timedelta(0)


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A directory of this user with files, which stay as they are."""
    folder = tmp_path / "elsewhere" / "precious"
    folder.mkdir(parents=True)
    for name in ("000009-0123abcd.parquet", "thesis.tex", "part-0123.parquet"):
        (folder / name).write_text("precious")
    before = {path.name: path.read_text() for path in folder.iterdir()}
    yield folder
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder in which others may write."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def _work(out: Path) -> WorkDir:
    return WorkDir(work_path(str(out / "people"), "a_dag/manual__1"))


# The rows that wait


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a series' waiting rows, with a file that the sweep would remove."""
    monkeypatch.setattr("mondrian_ops.series.sweeping._AT_LEAST", AT_ONCE)
    nights = Nights(tmp_path, series={"hold_nights": 3})
    nights.run(0, 3)
    (file,) = nights.waiting_files()
    (file.parent / "000002-0123abcd.parquet").write_bytes(RAW)
    return file.parent


def _swept(folder: Path) -> list[tuple[str, str]]:
    return [(each.state, str(each)) for each in series.sweep(str(folder), AT_ONCE)]


def test_a_sweep_follows_no_link_among_the_waiting_rows(
    waiting: Path, precious: Path, tmp_path: Path
) -> None:
    waiting.rename(tmp_path / "moved")
    waiting.symlink_to(precious)
    ((state, told),) = _swept(tmp_path)
    assert state == "failed"
    assert "is a link, where a folder of this package is expected" in told


def test_a_bad_entry_stops_no_sweep(waiting: Path, precious: Path, tmp_path: Path) -> None:
    """A file has the name of a series' directory; the next place is swept all the same."""
    for name in ("a", "z"):
        bad = tmp_path / name / waiting.parent.name
        bad.mkdir(parents=True)
        (bad / waiting.name).write_text("no directory")
    assert sorted(state for state, _ in _swept(tmp_path)) == ["failed", "failed", "removed"]


def test_no_sweep_looks_into_waiting_rows_of_another_user(
    waiting: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_away(waiting.parent, monkeypatch)
    ((state, told),) = _swept(tmp_path)
    assert state == "kept"
    assert told.endswith("of another user")


def test_a_sweep_removes_no_file_of_another_name(waiting: Path, tmp_path: Path) -> None:
    (waiting / "notes.txt").write_text("mine")
    assert dict(_swept(tmp_path)).keys() == {"kept", "removed"}
    assert (waiting / "notes.txt").read_text() == "mine"


def test_what_selects_a_series_is_in_no_log(
    waiting: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who knows it could plant a link before the next night."""
    texts = [told for _, told in _swept(tmp_path)]
    waiting.rename(tmp_path / "moved")
    texts += [told for _, told in _swept(tmp_path)]
    waiting.symlink_to(tmp_path)
    texts += [told for _, told in _swept(tmp_path)]
    waiting.unlink()
    waiting.write_text("")
    texts += [told for _, told in _swept(tmp_path)]
    waiting.unlink()
    with pytest.raises(FileNotFoundError) as missing:
        stores.names_in(str(waiting))
    texts += [str(missing.value), shown(f"s3://conn@bucket/.mondrian_waiting/{waiting.name}/x")]
    assert len(texts) >= 5
    assert not [text for text in texts if waiting.name in text]


def test_no_night_takes_rows_from_where_a_link_leads(waiting: Path, tmp_path: Path) -> None:
    """Who plants other rows, of a form that the catalogue expects, would have them published."""
    waiting.rename(tmp_path / "moved")
    waiting.symlink_to(tmp_path / "moved")
    nights = Nights(tmp_path, series={"hold_nights": 3})
    with pytest.raises(StorageError, match="is a link"):
        nights.run(1, 3)


# Working files


def test_a_run_does_not_act_on_a_link_at_its_predictable_path(out: Path, precious: Path) -> None:
    work = _work(out)
    Path(work.root).symlink_to(precious)
    with pytest.raises(StorageError, match=r"is a link, .* find out who made it, and remove it"):
        work.create()


@pytest.fixture
def airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The settings of an Airflow, which a task applies to its process."""
    for option in ("INPUTS", "OUTPUTS"):
        monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__ALLOWED_{option}", str(tmp_path))
    yield
    stores.use_policy(None)


@pytest.mark.usefixtures("airflow")
def test_what_cleans_up_goes_on_after_a_planted_link(out: Path, precious: Path) -> None:
    """Jobs of one run: the working files of those that follow hold original rows, too."""
    context = task_context()
    jobs = [
        {
            "input": str(out / "in.csv"),
            "output": str(out / name),
            "k": 2,
            "quasi_identifiers": ["age"],
        }
        for name in ("a", "b", "c")
    ]
    first, planted, last = (Path(work_of(read_job(job), context)) for job in jobs)
    for work in (first, last):
        work.mkdir()
        (work / "part-0123.parquet").write_bytes(RAW)
    planted.symlink_to(precious)
    with pytest.raises(AirflowFailException) as caught:
        clean_up_after(jobs).execute(context)
    assert str(caught.value).startswith("working files with original rows may remain: ")
    assert shown(str(planted)) in str(caught.value)
    assert "is a link" in str(caught.value)
    assert [work.exists() for work in (first, last)] == [False, False]
    assert planted.is_symlink()


def test_a_run_does_not_delete_another_directory_that_got_its_name(
    out: Path, precious: Path
) -> None:
    """Who may write in a folder may rename what is in it, but could not delete it."""
    work = _work(out)
    precious.rename(work.root)
    with pytest.raises(StorageError, match="holds no working files of a run"):
        work.create()
    Path(work.root).rename(precious)


def test_a_run_keeps_nothing_in_a_directory_of_another_user(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = _work(out)
    Path(work.root).mkdir()
    (Path(work.root) / "attempt").write_text("planted")
    give_away(Path(work.root), monkeypatch)
    with pytest.raises(StorageError, match="belongs to another user"):
        work.create()
    assert [path.name for path in Path(work.root).iterdir()] == ["attempt"]


ACTS: dict[str, Callable[[WorkDir], object]] = {
    "bytes": lambda work: work.write_bytes("rows", RAW),
    "arrow": lambda work: work.write_arrow("rows.arrow", pa.table({"name": ["Mary"]})),
    "part": lambda work: publish.write_part(
        f"{work.staging}/part-1.parquet", pa.table({"age": [34]}), work.root
    ),
    "scattered": lambda work: publish.FragmentWriter(work).append(0, pa.table({"name": ["Mary"]})),
    "read": lambda work: work.read_json("job.json"),
    "mapped": lambda work: work.read_arrow("rows.arrow"),
    "keep": lambda work: work.keep(),
    "spill": lambda work: work.spill(),
    "list": lambda work: work.staged(),
    "held": lambda work: work.is_held,
    "remove": lambda work: work.remove(),
}


@pytest.mark.parametrize("planted", ["link", "directory"])
@pytest.mark.parametrize("act", ACTS)
def test_a_run_whose_directory_is_replaced_goes_no_further(
    out: Path, tmp_path: Path, act: str, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = _work(out)
    work.create()
    work.write_arrow("rows.arrow", pa.table({"name": ["Mary"]}))
    root = Path(work.root)
    root.rename(tmp_path / "moved")
    trap = tmp_path / "trap" if planted == "link" else root
    (trap / "release").mkdir(parents=True)
    (trap / "fragments").mkdir()
    for name in ("attempt", "part-key", "rows.arrow"):
        (trap / name).write_bytes((tmp_path / "moved" / name).read_bytes())
    (trap / "job.json").write_text("{}")
    if planted == "link":
        root.symlink_to(trap)
    else:
        give_away(trap, monkeypatch)
    before = sorted(trap.rglob("*"))
    with pytest.raises(StorageError, match=r"is a link|belongs to another user"):
        ACTS[act](work)
    assert sorted(trap.rglob("*")) == before


def test_a_run_writes_nothing_where_a_link_above_its_files_leads(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is this user's; but jobs may not write there."""
    team = out / "team"
    team.mkdir()
    work = _work(team)
    work.create()
    team.rename(tmp_path / "moved")
    team.symlink_to(tmp_path / "moved")
    monkeypatch.setattr(stores.access_policy, "_in_use", AccessPolicy(outputs=(str(out),)))
    monkeypatch.setattr(publish.workdir, "check_writing", lambda url: None)  # it came before
    with pytest.raises(JobError, match="outside the allowed locations"):
        work.write_bytes("rows", RAW)
    assert not list((tmp_path / "moved").rglob("rows"))


# Releases


def test_no_publication_deletes_what_got_the_name_of_an_old_release(
    out: Path, tmp_path: Path, precious: Path
) -> None:
    publish.publish(str(stage(tmp_path / "staging", 1)), str(out / "people"))
    aside = out / ".people.mondrian_ops-previous"
    precious.rename(aside)
    publish.publish(str(stage(tmp_path / "staging", 2)), str(out / "people"))
    assert version_of(out / "people") == 2
    aside.rename(precious)


def test_no_publication_puts_a_link_in_the_place_of_a_release(
    out: Path, tmp_path: Path, precious: Path
) -> None:
    aside = out / ".people.mondrian_ops-previous"
    aside.symlink_to(precious)
    publish.publish(str(stage(tmp_path / "staging", 1)), str(out / "people"))
    assert aside.is_symlink()
    assert not (out / "people").is_symlink()
    assert version_of(out / "people") == 1


def test_an_output_that_becomes_a_link_is_not_published_through(
    out: Path, tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = publication.complete

    def swapped(*place: str) -> None:
        complete(*place)
        (out / "people").symlink_to(precious)

    monkeypatch.setattr(publication, "complete", swapped)
    with pytest.raises(StorageError, match="people: is a link"):
        publish.publish(str(stage(tmp_path / "staging", 1)), str(out / "people"))


# The place of code


def test_no_code_is_put_where_a_link_in_tmp_leads(
    tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = precious.parent / "mondrian_ops-old"
    old.mkdir(mode=0o700)
    os.utime(old, (0, 0))
    (tmp_path / f"mondrian_ops-{os.geteuid()}").symlink_to(precious.parent)
    monkeypatch.delenv(shipping.PLACE_VARIABLE, raising=False)
    monkeypatch.setattr(shipping.tempfile, "gettempdir", lambda: str(tmp_path))
    with pytest.raises(StorageError, match=r"is a link, .* remove it, or name a private folder"):
        shipping.packed.__wrapped__()
    assert sorted(path.name for path in precious.parent.iterdir()) == [old.name, precious.name]


def test_no_code_is_put_where_another_user_made_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o755)
    give_away(place, monkeypatch)
    monkeypatch.setenv(shipping.PLACE_VARIABLE, str(place))
    with pytest.raises(StorageError, match=r"belongs to another user, .* MONDRIAN_OPS_CACHE"):
        shipping.packed.__wrapped__()
    assert not list(place.iterdir())


def test_of_old_packages_only_those_of_this_package_go_and_no_link_is_followed(
    tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    (place / "mondrian_ops-0123").mkdir(parents=True, mode=0o700)
    place.chmod(0o700)
    (place / "mondrian_ops-4567").symlink_to(precious)
    (place / "mondrian_ops-mine.tar").touch()
    month = time.time() - timedelta(days=30).total_seconds()
    for path in place.iterdir():
        os.utime(path, (month, month), follow_symlinks=False)
    monkeypatch.setenv(shipping.PLACE_VARIABLE, str(place))
    made = Path(shipping.packed.__wrapped__())
    assert {path.name for path in place.iterdir()} == {made.name, "mondrian_ops-mine.tar"}


# Data


LARGE = {"age": list(range(400_000)), "name": [f"{at:x}" for at in range(400_000)]}


@pytest.fixture
def landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that jobs may read."""
    folder = tmp_path / "landing"
    folder.mkdir()
    monkeypatch.setattr(stores.access_policy, "_in_use", AccessPolicy(inputs=(str(folder),)))
    return folder


def _written(file: Path, rows: int) -> Path:
    table = pa.table(LARGE).slice(0, rows)
    if file.suffix == ".csv":
        file.write_text("age\n" + "".join(f"{age}\n" for age in range(rows)))
    else:
        pq.write_table(table, file, compression="none")
    return file


KINDS = [("p.parquet", 10), ("p.parquet", 400_000), ("p.csv", 10)]


@pytest.mark.parametrize(("name", "rows"), KINDS)
def test_data_that_becomes_a_link_after_it_was_checked_is_not_read(
    landing: Path, tmp_path: Path, name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = _written(tmp_path / name, rows)
    file = _written(landing / name, rows)
    check = discovery.check_source_file

    def swapped(url: str, root: str) -> None:
        check(url, root)
        file.unlink()
        file.symlink_to(secret)

    monkeypatch.setattr(discovery, "check_source_file", swapped)
    with pytest.raises(JobError, match="outside the allowed locations"):
        tables.open_table(str(file))


@pytest.mark.parametrize(("name", "rows"), KINDS)
def test_data_that_becomes_a_link_to_hidden_rows_is_not_read(
    landing: Path, name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (landing / ".work").mkdir()
    secret = _written(landing / ".work" / name, rows)
    file = landing / name
    file.symlink_to(secret)
    monkeypatch.setattr(discovery, "check_source_file", lambda *_: None)
    with pytest.raises(JobError, match="is hidden"):
        tables.open_table(str(file))


@pytest.mark.parametrize(("name", "rows"), KINDS[1:])
def test_data_that_becomes_a_pipe_after_it_was_checked_is_not_waited_for(
    landing: Path, name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _written(landing / name, rows)

    def swapped(path: str, mode: int | None = None, *more: type[MondrianOpsError]) -> None:
        refuse_special(path, mode, *more)
        if not file.is_fifo():
            file.unlink()
            os.mkfifo(file)

    monkeypatch.setattr("mondrian_ops.stores.regular_files.refuse_special", swapped)
    with pytest.raises(InputError, match="is a named pipe"):
        tables.open_table(str(file))
