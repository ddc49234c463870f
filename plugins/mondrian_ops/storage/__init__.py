"""The one place that knows paths and formats: sources, working files, releases, hierarchy files.

What needs numpy or pyarrow, or few tasks need, is imported with the first use of one of its names:
a task that removes working files starts without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_ops.late_names import late_names
from mondrian_ops.storage.access_policy import (
    AccessPolicy,
    check_location,
    current_policy,
    may_write,
    use_policy,
)
from mondrian_ops.storage.files import list_directory, names_in, read_file, write_file
from mondrian_ops.storage.locations import (
    filesystem,
    is_local,
    joined,
    local_path,
    resolved,
    shown,
    use_home,
)
from mondrian_ops.storage.manifest import digest_of, digest_of_parts
from mondrian_ops.storage.policies import (
    check_columns,
    check_job,
    check_source,
    note_arrivals,
    output_rules,
    policies_of,
    required,
    use_policies,
)
from mondrian_ops.storage.store_access import look_up_with, options_of, s3_endpoint, use_options
from mondrian_ops.storage.workdir import (
    FREQUENCIES,
    ROWS,
    Owner,
    WorkDir,
    is_work_path,
    may_publish,
    output_of,
    work_path,
)

if TYPE_CHECKING:
    from mondrian_ops.storage.discovery import data_file
    from mondrian_ops.storage.gathered_rows import GatheredRows
    from mondrian_ops.storage.hierarchies import find_hierarchy, read_hierarchy, shipped
    from mondrian_ops.storage.jobs import load_job, read_job, with_connections
    from mondrian_ops.storage.opening import open_source
    from mondrian_ops.storage.parquet_files import index_columns, without_index
    from mondrian_ops.storage.release import (
        ReleaseFile,
        check_output,
        current_token,
        publication_lock,
        publish,
        published,
        read_release,
        report_of,
        write_part,
    )
    from mondrian_ops.storage.scattered_rows import FragmentWriter, read_fragment
    from mondrian_ops.storage.source import Source, Split
    from mondrian_ops.storage.sweeping import sweep
    from mondrian_ops.storage.typed_columns import in_types

__all__ = [
    "FREQUENCIES",
    "ROWS",
    "AccessPolicy",
    "FragmentWriter",
    "GatheredRows",
    "Owner",
    "ReleaseFile",
    "Source",
    "Split",
    "WorkDir",
    "check_columns",
    "check_job",
    "check_location",
    "check_output",
    "check_source",
    "current_policy",
    "current_token",
    "data_file",
    "digest_of",
    "digest_of_parts",
    "filesystem",
    "find_hierarchy",
    "in_types",
    "index_columns",
    "is_local",
    "is_work_path",
    "joined",
    "list_directory",
    "load_job",
    "local_path",
    "look_up_with",
    "may_publish",
    "may_write",
    "names_in",
    "note_arrivals",
    "open_source",
    "options_of",
    "output_of",
    "output_rules",
    "policies_of",
    "publication_lock",
    "publish",
    "published",
    "read_file",
    "read_fragment",
    "read_hierarchy",
    "read_job",
    "read_release",
    "report_of",
    "required",
    "resolved",
    "s3_endpoint",
    "shipped",
    "shown",
    "sweep",
    "use_home",
    "use_options",
    "use_policies",
    "use_policy",
    "with_connections",
    "without_index",
    "work_path",
    "write_file",
    "write_part",
]

if not TYPE_CHECKING:  # mypy would take any name for one of the package
    __getattr__ = late_names(
        __name__,
        {
            "discovery": ("data_file",),
            "gathered_rows": ("GatheredRows",),
            "hierarchies": ("find_hierarchy", "read_hierarchy", "shipped"),
            "jobs": ("load_job", "read_job", "with_connections"),
            "opening": ("open_source",),
            "parquet_files": ("index_columns", "without_index"),
            "release": (
                "ReleaseFile",
                "check_output",
                "current_token",
                "publication_lock",
                "publish",
                "published",
                "read_release",
                "report_of",
                "write_part",
            ),
            "scattered_rows": ("FragmentWriter", "read_fragment"),
            "source": ("Source", "Split"),
            "sweeping": ("sweep",),
            "typed_columns": ("in_types",),
        },
    )
