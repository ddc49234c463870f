"""The one place that knows paths and formats: sources, working files, releases, hierarchy files.

What a location may be, and how a remote store is reached: :mod:`mondrian_ops.storage.locations` and
:mod:`mondrian_ops.storage.connections`.

A module is imported when a name of it is first used: a task needs some of them only, and one that
removes working files needs neither numpy nor pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_ops.late_names import late_names

if TYPE_CHECKING:
    from mondrian_ops.storage.allowed import (
        Allowed,
        check_given,
        check_job,
        limits,
        may_write,
        restrict_to,
        restricted_to,
    )
    from mondrian_ops.storage.archive import Archive
    from mondrian_ops.storage.connections import look_up_with, options_of, s3_endpoint, use_options
    from mondrian_ops.storage.digest import digest_of
    from mondrian_ops.storage.files import names_in, read_file, write_file
    from mondrian_ops.storage.hierarchies import find_hierarchy, read_hierarchy
    from mondrian_ops.storage.jobs import load_job, read_job
    from mondrian_ops.storage.ledger import Ledger, check_ledger
    from mondrian_ops.storage.locations import filesystem, is_local, joined, local_path, shown
    from mondrian_ops.storage.pandas_index import index_columns, without_index
    from mondrian_ops.storage.release import (
        check_output,
        publish,
        published,
        read_release,
        standing,
        unpublished,
        write_part,
    )
    from mondrian_ops.storage.seal import seal_of
    from mondrian_ops.storage.source import Source, Split, open_source
    from mondrian_ops.storage.workdir import (
        FREQUENCIES,
        FragmentWriter,
        WorkDir,
        is_work_path,
        may_publish,
        read_fragment,
        work_path,
    )

__all__ = [
    "FREQUENCIES",
    "Allowed",
    "Archive",
    "FragmentWriter",
    "Ledger",
    "Source",
    "Split",
    "WorkDir",
    "check_given",
    "check_job",
    "check_ledger",
    "check_output",
    "digest_of",
    "filesystem",
    "find_hierarchy",
    "index_columns",
    "is_local",
    "is_work_path",
    "joined",
    "limits",
    "load_job",
    "local_path",
    "look_up_with",
    "may_publish",
    "may_write",
    "names_in",
    "open_source",
    "options_of",
    "publish",
    "published",
    "read_file",
    "read_fragment",
    "read_hierarchy",
    "read_job",
    "read_release",
    "restrict_to",
    "restricted_to",
    "s3_endpoint",
    "seal_of",
    "shown",
    "standing",
    "unpublished",
    "use_options",
    "without_index",
    "work_path",
    "write_file",
    "write_part",
]

if not TYPE_CHECKING:  # else it would take any name for one
    __getattr__ = late_names(
        __name__,
        {
            "allowed": (
                "Allowed",
                "check_given",
                "check_job",
                "limits",
                "may_write",
                "restrict_to",
                "restricted_to",
            ),
            "archive": ("Archive",),
            "connections": ("look_up_with", "options_of", "s3_endpoint", "use_options"),
            "digest": ("digest_of",),
            "files": ("names_in", "read_file", "write_file"),
            "hierarchies": ("find_hierarchy", "read_hierarchy"),
            "jobs": ("load_job", "read_job"),
            "ledger": ("Ledger", "check_ledger"),
            "locations": ("filesystem", "is_local", "joined", "local_path", "shown"),
            "pandas_index": ("index_columns", "without_index"),
            "release": (
                "check_output",
                "publish",
                "published",
                "read_release",
                "standing",
                "unpublished",
                "write_part",
            ),
            "seal": ("seal_of",),
            "source": ("Source", "Split", "open_source"),
            "workdir": (
                "FREQUENCIES",
                "FragmentWriter",
                "WorkDir",
                "is_work_path",
                "may_publish",
                "read_fragment",
                "work_path",
            ),
        },
    )
