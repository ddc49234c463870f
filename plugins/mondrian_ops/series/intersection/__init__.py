"""``protect: intersection``: no night of a series tells more of the same people than another.

What forms the classes of a night (:mod:`forming`), what makes up rows, what is known of persons
(:mod:`night`), and what checks all that on the release (:mod:`check`). Imported only where a job
has it; of the rest of the package only ``series``, ``pipeline`` and ``spark_app`` import it.
"""
