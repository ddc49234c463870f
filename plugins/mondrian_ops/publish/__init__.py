"""How a release appears: working files, parts, manifest, and one step that publishes them all.

One module for each store says what is atomic there. Imports stores, tables and, to check what it
wrote, verify. Public: the names in ``__init__.pyi``, each imported on first use.
"""

from mondrian_ops.late_names import late_names

__getattr__ = late_names(__name__)
