"""``python -m mondrian_ops``."""

from __future__ import annotations

import sys

from mondrian_ops.cli import main

if __name__ == "__main__":
    sys.exit(main())
