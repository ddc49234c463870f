"""The one place that knows paths and formats: sources, working files, releases, hierarchy files.

Local files for now. A further file system joins in :mod:`mondrian_ops.storage.locations`.
"""

from mondrian_ops.storage.files import read_file, write_file
from mondrian_ops.storage.hierarchies import find_hierarchy, read_hierarchy
from mondrian_ops.storage.jobs import load_job, read_job
from mondrian_ops.storage.locations import local_path
from mondrian_ops.storage.release import (
    check_output,
    publish,
    published,
    read_release,
    write_part,
)
from mondrian_ops.storage.source import Source, Split, open_source
from mondrian_ops.storage.workdir import FragmentWriter, WorkDir, read_fragment, work_path

__all__ = [
    "FragmentWriter",
    "Source",
    "Split",
    "WorkDir",
    "check_output",
    "find_hierarchy",
    "load_job",
    "local_path",
    "open_source",
    "publish",
    "published",
    "read_file",
    "read_fragment",
    "read_hierarchy",
    "read_job",
    "read_release",
    "work_path",
    "write_file",
    "write_part",
]
