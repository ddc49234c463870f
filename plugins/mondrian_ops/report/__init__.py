"""The report of a release: one frozen value, shown as JSON, as a page and as text.

Each module is imported when one of its names is first used, so that the command line and most
tasks start without Jinja2.
"""

from mondrian_ops.late_names import late_names

__getattr__ = late_names(__name__)
