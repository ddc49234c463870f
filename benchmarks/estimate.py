"""What ten billion rows would take on a cluster, from what a row was measured to cost.

Nothing of it was measured at that size. That the work of a row costs the same there is what the
growth to a billion rows shows; that it divides among cores is an assumption, as are the speeds of
disks and network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.tables import Table, duration, gib

ROWS = 10**10


@dataclass(frozen=True)
class Costs:
    """What a row was measured to cost in a run of ``rows`` rows, the start of tasks left out.

    CPU seconds of a row in ``partition`` (profile, count and scatter), ``anonymize_fragment`` and
    ``wrap_up``. ``…_start_mib``: of a task of that phase before it has rows; beside that
    ``anonymize_bytes`` per row of a fragment. ``wrap_up_mib``: its peak, which does not grow.
    Bytes of a row in the source, in the working files, in the release, and in the file of classes
    that ``wrap_up`` writes and reads.
    """

    rows: int
    partition_s: float
    anonymize_s: float
    wrap_up_s: float
    partition_start_mib: float
    anonymize_start_mib: float
    wrap_up_mib: float
    anonymize_bytes: float
    source_bytes: float
    scattered_bytes: float
    published_bytes: float
    spilled_bytes: float


@dataclass(frozen=True)
class Cluster:
    """Machines alike, each a worker of Spark and a node of HDFS.

    ``disk_mb_s`` and ``network_mb_s``: of a machine, either way.
    """

    machines: int
    cores: int
    memory_gib: int
    disk_mb_s: float
    network_mb_s: float
    replicas: int
    max_rows: int

    @property
    def all_cores(self) -> int:
        return self.machines * self.cores

    def disk_s(self, written_or_read: float) -> float:
        """Seconds in which all disks take so many bytes."""
        return written_or_read / (self.machines * self.disk_mb_s * 1e6)

    def network_s(self, sent: float) -> float:
        """Seconds in which all machines send each other so many bytes."""
        return sent / (self.machines * self.network_mb_s * 1e6)


CLUSTER = Cluster(
    machines=20, cores=16, memory_gib=64, disk_mb_s=400.0, network_mb_s=1000.0, replicas=3,
    max_rows=4_000_000,
)  # fmt: skip


@dataclass(frozen=True)
class Phase:
    """A step, over how many cores it spreads, and seconds: of them, of disks and of the network.

    They are added up: that reading and computing overlap is not counted on. ``mib``: of its
    largest process.
    """

    name: str
    over: int
    cpu_s: float
    disk_s: float
    network_s: float
    mib: float

    @property
    def seconds(self) -> float:
        return self.cpu_s + self.disk_s + self.network_s


def phases(costs: Costs, cluster: Cluster, rows: int = ROWS) -> list[Phase]:
    """The steps with Spark, `shape: application`; the check as well is spread over the cluster."""
    fragments = -(-rows // round(0.8 * cluster.max_rows))
    waves = math.ceil(fragments / cluster.all_cores) / (fragments / cluster.all_cores)
    source, moved = rows * costs.source_bytes, rows * costs.scattered_bytes
    published, classes = rows * costs.published_bytes, rows * costs.spilled_bytes
    spread = cluster.all_cores
    apart = 1 - 1 / cluster.machines  # what a shuffle sends to another machine
    of_fragment = costs.anonymize_start_mib + costs.anonymize_bytes * cluster.max_rows / 2**20
    return [
        # Read to profile, to count and, with `application`, once more to route.
        Phase("profile, count and route", spread, rows * costs.partition_s / spread,
              cluster.disk_s(3 * source + moved), cluster.network_s(apart * moved),
              costs.partition_start_mib),
        Phase(f"anonymize {fragments:,} fragments", spread,
              rows * costs.anonymize_s / spread * waves,
              cluster.disk_s(moved + cluster.replicas * published),
              cluster.network_s((cluster.replicas - 1) * published), of_fragment),
        # A class goes to the task that has its bucket, through files as large as the local spill.
        Phase("check", spread, rows * costs.wrap_up_s / spread,
              cluster.disk_s(published + 2 * classes), cluster.network_s(apart * classes),
              costs.wrap_up_mib),
    ]  # fmt: skip


def estimated(costs: Costs, cluster: Cluster, rows: int = ROWS) -> Table:
    """The table of the estimate."""
    steps = phases(costs, cluster, rows)
    lines = [_line(each, cluster) for each in steps]
    whole = sum(each.seconds for each in steps)
    lines.append(("in all", "", "", "", "", duration(whole), ""))
    return Table(
        f"An estimate: {rows:,} rows on {cluster.machines} machines",
        ("", "tasks or cores at once", "CPU", "disks", "network", "takes", "largest process"),
        lines,
        note=f"Extrapolated from what a row cost at {costs.rows:,} rows, nothing of it measured. "
        f"{cluster.machines} machines of {cluster.cores} cores like those measured on, "
        f"{cluster.memory_gib} GiB, {cluster.disk_mb_s:g} MB/s of disk and "
        f"{cluster.network_mb_s:g} MB/s of network each, HDFS with {cluster.replicas} replicas. "
        f"Spark, `shape: application`, `max_rows: {cluster.max_rows:,}`; one release. CPU, disks "
        "and network are added up, as if nothing overlapped; Spark's own work, stragglers and the "
        "plan of the sample (one task; `sample: 0.0001`) are not in it. Per row: "
        f"{1e6 * costs.partition_s:.2f} + {1e6 * costs.anonymize_s:.2f} + "
        f"{1e6 * costs.wrap_up_s:.2f} µs of CPU; {costs.source_bytes:.1f} bytes in the "
        f"source, {costs.scattered_bytes:.1f} shuffled, {costs.published_bytes:.1f} published, "
        f"{costs.spilled_bytes:.1f} of classes.",
    )


def _line(phase: Phase, cluster: Cluster) -> tuple[str, ...]:
    held = gib(phase.mib)
    if phase.mib > 1024 * cluster.memory_gib:
        held += ", more than a machine has"
    return (
        phase.name, f"{phase.over:,}", duration(phase.cpu_s), duration(phase.disk_s),
        duration(phase.network_s), duration(phase.seconds), held,
    )  # fmt: skip
