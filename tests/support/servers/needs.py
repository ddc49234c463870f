"""What a test needs of the machine: skipped with the reason where it is missing.

A test says so by a marker (``@pytest.mark.hdfs``), a fixture by calling :func:`needs`. Where the
environment variable ``MONDRIAN_OPS_REQUIRE`` names the need (``hdfs,s3,java``, or ``all``), the
test fails instead: CI skips nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from servers.java import java_home

REQUIRED = "MONDRIAN_OPS_REQUIRE"


def needs(name: str) -> None:
    """Skip the test, or fail it if the need is required, where ``name`` is not there."""
    lacking = NEEDS[name]()
    if not lacking:
        return
    if name in required():
        pytest.fail(f"{name} is required by {REQUIRED}: {lacking}", pytrace=False)
    pytest.skip(f"needs {name}: {lacking}")


def required() -> set[str]:
    """The needs that must be met; raises KeyError for one that no test knows."""
    names = {name.strip() for name in os.environ.get(REQUIRED, "").split(",")} - {""}
    if names == {"all"}:
        return {*NEEDS}
    for name in names - NEEDS.keys():
        raise KeyError(f"{REQUIRED}: {name!r} is none of all, {', '.join(NEEDS)}")
    return names


def _java() -> str:
    return "" if java_home() else "no Java 17, 21 or 25; install one or set JAVA_HOME"


def _hdfs() -> str:
    if shutil.which("mvn"):  # which fetches Hadoop's own jars
        return _java()
    return "no `mvn` on the PATH; install Maven"


def _s3() -> str:
    return "" if find_spec("moto") else "no moto in this Python; install requirements-dev.txt"


def _gcs() -> str:
    if find_spec("gcp_storage_emulator"):
        return ""
    return "no gcp-storage-emulator in this Python; install requirements-dev.txt"


def _azure() -> str:
    if shutil.which("azurite-blob"):
        return ""
    return "no `azurite-blob` on the PATH; run `npm install --global azurite`"


def _redis() -> str:
    return "" if shutil.which("redis-server") else "no `redis-server` on the PATH"


def _postgres() -> str:
    if shutil.which("initdb") or any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return ""
    return "no `initdb` on the PATH nor in /usr/lib/postgresql; install PostgreSQL"


def _browser() -> str:
    if not find_spec("playwright"):
        return "no playwright in this Python; install requirements-dev.txt"
    return "" if shutil.which("chromium") else "no `chromium` on the PATH; install Chromium"


def _cc() -> str:
    return "" if shutil.which("cc") else "no `cc` on the PATH; install GCC"


def _zig() -> str:
    return "" if find_spec("ziglang") else "no ziglang in this Python; see requirements-build.txt"


def _asan() -> str:
    from sanitized import runtime  # which compiles something to find out

    return "" if runtime() else "the compiler brings no AddressSanitizer; install GCC"


def _mounts() -> str:
    done = subprocess.run([*own_mounts(), "true"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "this process may not have a mount namespace of its own"


def _root() -> str:
    return "" if os.geteuid() == 0 else "only root can become another user; run as root"


def own_mounts() -> list[str]:
    """A command that runs another with mounts of its own, as root there."""
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


NEEDS: dict[str, Callable[[], str]] = {
    "java": _java,
    "hdfs": _hdfs,
    "s3": _s3,
    "gcs": _gcs,
    "azure": _azure,
    "redis": _redis,
    "postgres": _postgres,
    "mounts": _mounts,
    "root": _root,
    "browser": _browser,
    "cc": _cc,
    "zig": _zig,
    "asan": _asan,
}
"""By name, what says why the need is not met; an empty text where it is."""
