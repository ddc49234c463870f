"""A job as in a pod: a user without name and home, on a file system that it cannot write to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from servers.needs import own_mounts

CHECKOUT = Path(__file__).resolve().parents[2]
PEOPLE = CHECKOUT / "include" / "examples" / "people.csv"
# Reading is allowed, as the interpreter may lie in the home of root; writing is not.
READS = "-all,+dac_read_search"
POD = f"""
set -e
for mount in $(awk '$5 !~ "^/(proc|sys|dev)" {{print $5}}' /proc/self/mountinfo); do
  mount -o remount,bind,ro "$mount"
done
mount -t tmpfs -o mode=1777 tmpfs /mnt
cd /mnt
exec setpriv --reuid 12345 --regid 0 --clear-groups --no-new-privs \\
  --inh-caps={READS} --ambient-caps={READS} --bounding-set={READS} \\
  env -i TMPDIR=/mnt AIRFLOW_HOME=/mnt/airflow PYTHONPATH="$PYTHONPATH" "$@"
"""
PROGRAM = f"""
import os, sys
from pathlib import Path
assert (os.getuid(), os.getgid()) == (12345, 0) and "HOME" not in os.environ
for place in ({str(CHECKOUT)!r}, "/tmp", "/var/tmp"):
    try:
        Path(place, "written").touch()
    except OSError:
        continue
    sys.exit(f"{{place}} can be written to")
from mondrian_ops import operators, task_groups
from mondrian_ops.__main__ import main
status = main(["run", sys.argv[1], "--quiet", "--set", "output=/mnt/out"])
assert Path("/mnt/out/_SUCCESS").exists() and Path("/mnt/out").stat().st_uid == 12345
sys.exit(status)
"""


@pytest.mark.mounts
@pytest.mark.root
def test_a_job_runs_as_any_user_on_a_tree_that_is_read_only(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(f"input: {PEOPLE}\noutput: out\nk: 5\nquasi_identifiers: [age]\n")
    done = subprocess.run(
        [*own_mounts(), "sh", "-c", POD, "sh", sys.executable, "-c", PROGRAM, str(job)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "plugins")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
