"""The three phases as plain functions; the command line, the operators and Spark call these.

`partition` profiles the dataset, plans the fragments on a sample and makes sure that each satisfies
the criteria; `anonymize_fragment` turns one fragment into one part of the release; `wrap_up` checks
the release as written, measures it and publishes it, or refuses. `check` and `publish` are its two
steps, for a release that waits for an approval between them. The phases share private working
files, and pass small dicts. `specialize_part` and `recode` follow a `partition` that leaves the
recoding to tasks of its own.
"""

from mondrian_ops.late_names import late_names

__getattr__ = late_names(__name__)
