"""Which files a source has, and of which format they are."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops.core.errors import InputError
from mondrian_ops.storage import open_source
from source_samples import PEOPLE, csv_file, read


def test_directory_is_read_in_the_order_of_its_files_without_the_hidden_ones(tmp_path):
    for name in ("b.parquet", "a.parquet", "sub/c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"file": [name]}), tmp_path / name)
    for hidden in ("_SUCCESS", ".part.crc", "_temporary/x.parquet"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_text("no data")
    source = open_source(str(tmp_path))
    assert read(source)["file"].to_pylist() == ["a.parquet", "b.parquet", "sub/c.parquet"]
    assert open_source(str(tmp_path / "[ab].parquet")).rows == 2
    assert open_source(str(tmp_path / "**" / "c.parquet")).rows == 1


def test_a_file_whose_name_has_wildcard_characters_is_that_file(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people[1].parquet")
    assert open_source(str(tmp_path / "people[1].parquet")).rows == 4


def test_a_directory_that_links_to_itself_is_read_once(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    (tmp_path / "again").symlink_to(tmp_path)
    assert open_source(str(tmp_path)).rows == 4


def test_format_is_seen_in_the_content_when_the_name_does_not_tell(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people")
    assert open_source(str(tmp_path / "people")).format == "parquet"
    assert open_source(csv_file(tmp_path / "text", "a,b\n1,2\n")).format == "csv"
    (tmp_path / "image").write_bytes(b"\x89PNG\x00\x00")
    with pytest.raises(InputError, match=r"image: neither Parquet nor CSV"):
        open_source(str(tmp_path / "image"))


def test_hive_directories_are_refused_not_read_without_their_column(tmp_path):
    (tmp_path / "day=1").mkdir()
    pq.write_table(PEOPLE, tmp_path / "day=1" / "a.parquet")
    with pytest.raises(InputError, match="day=1: directories named column=value"):
        open_source(str(tmp_path))
    assert open_source(str(tmp_path / "day=1")).rows == 4
