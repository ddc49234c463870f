"""Build the wheels of every machine from this one, into dist/, and check them: `make wheels`.

Each is compiled by zig. What auditwheel (Linux) or macholib (macOS) finds in it has to be what its
name promises: no library but those of the system, no version of them that is too new. The wheel of
this machine then runs a job, installed where nothing of the checkout is.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

from macholib.mach_o import CPU_TYPE_NAMES
from macholib.MachO import MachO

from mondrian_ops.native.build import WHEELS

CHECKOUT = Path(__file__).resolve().parents[1]
DIST = CHECKOUT / "dist"
JOB = """\
input: {here}/include/examples/people.csv
output: {folder}/out
k: 5
quasi_identifiers: [age, "country=hierarchy:countries.csv"]
unlisted: drop
"""


def main() -> None:
    """Raises SystemExit where a wheel is not as it has to be."""
    digests = []
    for target, tag in WHEELS.items():
        wheel = built(target)
        if not wheel.name.endswith(f"-py3-none-{tag}.whl"):
            raise SystemExit(f"{wheel.name}: expected a wheel for {tag}")
        print(f"{wheel.relative_to(CHECKOUT)}: {checked(wheel, tag)}", flush=True)
        if target.startswith(f"{platform.machine()}-{platform.system().lower()}-"):
            run(wheel)
            print("  installed by itself, and a job with a hierarchy run", flush=True)
        digests.append(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n")
    (DIST / "SHA256SUMS").write_text("".join(digests))


def built(target: str) -> Path:
    """The wheel for one machine."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {**os.environ, "MONDRIAN_OPS_TARGET": target}
        called("-m", "hatchling", "build", "-t", "wheel", "-d", folder, env=settings)
        (wheel,) = Path(folder).glob("*.whl")
        DIST.mkdir(exist_ok=True)
        kept = DIST / wheel.name
        kept.write_bytes(wheel.read_bytes())
    return kept


def checked(wheel: Path, tag: str) -> str:
    """What the tool of its system says. Raises SystemExit where it needs more than the tag."""
    if tag.startswith("macosx"):
        return checked_macos(wheel)
    shown = called("-m", "auditwheel", "show", str(wheel))
    names = re.findall(r'"(manylinux_\d+_\d+_\w+)"', shown)
    allowed = tag.partition(".")[0]
    if allowed not in names[:1]:
        raise SystemExit(f"{wheel.name}: not {allowed}\n{shown}")
    return f"auditwheel: {allowed}"


def checked_macos(wheel: Path) -> str:
    """The same of a library for macOS 11 on ARM, whose kernel loads none without a signature."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".so"))
        (header,) = MachO(archive.extract(name, folder)).headers
    commands = {load.get_cmd_name(): command for load, command, _ in header.commands}
    libraries = [library for _, _, library in header.walkRelocatables()]
    minimum = commands["LC_BUILD_VERSION"].minos >> 16
    built_for = (CPU_TYPE_NAMES[header.header.cputype], minimum, libraries)
    system_only = ("ARM64", 11, ["/usr/lib/libSystem.B.dylib"])
    if built_for != system_only or "LC_CODE_SIGNATURE" not in commands:
        raise SystemExit(f"{wheel.name}: {built_for}, {', '.join(map(str, commands))}")
    return "macholib: ARM64, macOS 11, libSystem only, signed"


def run(wheel: Path) -> None:
    """Publish a release with an installed wheel, by a Python that sees no checkout (-S)."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        site = place / "site"
        called("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
        (place / "job.yaml").write_text(JOB.format(here=CHECKOUT, folder=folder))
        path = os.pathsep.join([str(site), sysconfig.get_path("purelib")])
        called("-S", "-m", "mondrian_ops", "run", str(place / "job.yaml"), "--quiet",
               env={**os.environ, "PYTHONPATH": path}, folder=folder)  # fmt: skip
        if not (place / "out" / "_SUCCESS").exists():
            raise SystemExit(f"{wheel.name}: published nothing")


def called(*words: str, env: dict[str, str] | None = None, folder: str | Path = CHECKOUT) -> str:
    """What this Python prints. Raises SystemExit, with all that it said, where it fails."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout)
    return done.stdout


if __name__ == "__main__":
    main()
