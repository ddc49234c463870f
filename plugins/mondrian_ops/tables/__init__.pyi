from mondrian_ops.tables.discovery import data_file as data_file
from mondrian_ops.tables.gathered_rows import GatheredRows as GatheredRows
from mondrian_ops.tables.opening import open_source as open_source
from mondrian_ops.tables.parquet_files import index_columns as index_columns
from mondrian_ops.tables.parquet_files import without_index as without_index
from mondrian_ops.tables.source import Source as Source
from mondrian_ops.tables.source import Split as Split
from mondrian_ops.tables.typed_columns import in_types as in_types
