"""The Java that Spark and Hadoop run on."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Spark 4.2 and Hadoop 3.5 run on these. The oldest comes first: it is the one that Debian 12 has,
# and so the one that CI installs.
_VERSIONS = (17, 21, 25)
# Spark asks for it on its command line; the stripped Java of a wheel or an image may lack it.
_MODULE = "jdk.incubator.vector"


@cache
def java_home() -> str | None:
    """A JAVA_HOME that Spark supports: that of the environment, or the oldest one installed."""
    given = os.environ.get("JAVA_HOME")
    if given and _version(Path(given)) in _VERSIONS:
        return given
    found = {_version(home): home for home in _installed()}
    return next((str(found[version]) for version in _VERSIONS if version in found), None)


def _installed() -> Iterator[Path]:
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
    if program := shutil.which("java"):
        yield Path(program).resolve().parents[1]


def _version(home: Path) -> int | None:
    """The feature release of the Java in a folder; None for no Java, or a stripped one."""
    release = home / "release"
    if not release.is_file() or not (home / "bin" / "java").exists():
        return None
    text = release.read_text()
    number = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    return int(number[1]) if number and _MODULE in text else None
