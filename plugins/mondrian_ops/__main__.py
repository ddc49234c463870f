"""``python -m mondrian_ops``."""

from __future__ import annotations

import sys

from mondrian_ops import cli


def main() -> int:
    """Run one command in a process of its own."""
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
