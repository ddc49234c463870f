"""Where bytes lie: files on a local disk, HDFS and S3, and who may read or write which of them.

Also the files that a job names beside its data: job files, hierarchy files, policies. Imports job
and data; knows no format of rows. Public: the names in ``__init__.pyi``, each imported on first
use, so that a task that removes files starts without pyarrow.
"""

from mondrian_ops.late_names import late_names

__getattr__ = late_names(__name__)
