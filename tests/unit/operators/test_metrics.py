"""Metrics, as the servers of StatsD and OpenTelemetry receive them from a task's process."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from http_server import http_server
from mondrian_ops.job.job import Job
from mondrian_ops.operators import metrics

# What a task does: the runner sets the backend up, the operator sends.
TASK = """
import sys
from types import SimpleNamespace
from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
from mondrian_ops.job.job import Job
from mondrian_ops.operators.metrics import count_release, send_figures

stats.initialize(
    factory=stats_utils.get_stats_factory(),
    export_legacy_names=conf.getboolean("metrics", "legacy_names_on"),
)
job = Job.from_dict(
    {"input": "in.csv", "output": sys.argv[1], "k": 5, "quasi_identifiers": ["age"]}
)
tags = {"dag_id": "nightly", "task_id": "anonymize.wrap_up"}
context = {"ti": SimpleNamespace(stats_tags=tags)}
report = {
    "metrics": {"GCP": 0.25, "NCP": 12.5, "LM": 0.5, "DP": 600},
    "risk": {"prosecutor_max": 0.2, "prosecutor_avg": 0.125},
    "rows": {"input": 100, "published": 98, "suppressed": 2},
    "achieved": {"k": 5, "l": 2},
    "equivalence_classes": 12,
    "timings_s": {"partition": 0.5, "anonymize": 2.0, "wrap_up": 0.25},
}
count_release(context, job, "published")
send_figures(context, job, report)
"""


@pytest.fixture
def sent_by_a_task(airflow_process):
    def send(output="s3://releases/people.v2/2025-06-01", **settings):
        named = {f"AIRFLOW__METRICS__{name.upper()}": value for name, value in settings.items()}
        airflow_process.run(TASK, output, **named)

    return send


@pytest.fixture
def statsd():
    """A StatsD server; all that it was sent, once the task is over."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        server.bind(("127.0.0.1", 0))
        server.setblocking(False)

        def received():
            lines = []
            while True:
                try:
                    lines += server.recv(65536).decode().splitlines()
                except BlockingIOError:
                    return dict(line.split(":", 1) for line in lines)

        yield server.getsockname()[1], received


def test_statsd_gets_each_figure_under_a_name_that_tells_the_dataset(statsd, sent_by_a_task):
    port, received = statsd
    sent_by_a_task(statsd_on="True", statsd_host="127.0.0.1", statsd_port=str(port))
    lines = received()
    release = "airflow.mondrian_ops.nightly.people__v2"
    assert lines[f"{release}.gcp"] == "0.25|g"
    assert lines[f"{release}.ncp"] == "12.5|g"
    assert lines[f"{release}.risk.prosecutor_max"] == "0.2|g"
    assert lines[f"{release}.rows.suppressed"] == "2|g"
    assert lines[f"{release}.achieved.k"] == "5|g"
    assert lines[f"{release}.equivalence_classes"] == "12|g"
    assert lines[f"{release}.duration.anonymize"] == "2000.000000|ms"
    assert lines[f"{release}.releases.published"] == "1|c"
    assert lines["airflow.mondrian_ops.gcp"] == "0.25|g"


def test_names_that_hold_tags_can_be_switched_off(statsd, sent_by_a_task):
    port, received = statsd
    sent_by_a_task(
        statsd_on="True",
        statsd_host="127.0.0.1",
        statsd_port=str(port),
        statsd_influxdb_enabled="True",
        legacy_names_on="False",
    )
    names = set(received())
    tags = "dag_id=nightly,task_id=anonymize.wrap_up,dataset=people.v2"
    assert f"airflow.mondrian_ops.gcp,{tags}" in names
    assert f"airflow.mondrian_ops.releases,{tags},state=published" in names
    assert not any(name.startswith("airflow.mondrian_ops.nightly") for name in names)


@pytest.fixture
def collector():
    """An OpenTelemetry collector; what was exported to it."""
    exported = []

    def answer(request):
        exported.append(ExportMetricsServiceRequest.FromString(request.body))
        return 200, ""

    with http_server(answer) as port:
        yield port, exported


def test_opentelemetry_gets_the_figures_with_tags(collector, sent_by_a_task):
    port, exported = collector
    sent_by_a_task(otel_on="True", otel_host="127.0.0.1", otel_port=str(port))
    points = {
        metric.name: metric.gauge.data_points[0]
        for request in exported
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.HasField("gauge")
    }
    point = points["airflow.mondrian_ops.gcp"]
    assert point.as_double == 0.25
    assert {each.key: each.value.string_value for each in point.attributes} == {
        "dag_id": "nightly",
        "task_id": "anonymize.wrap_up",
        "dataset": "people.v2",
    }
    assert points["airflow.mondrian_ops.risk.prosecutor_avg"].as_double == 0.125


@pytest.mark.parametrize(
    ("output", "dataset"),
    [
        ("/releases/people/2025-06-01", "people"),
        ("/releases/people/20250601/", "people"),
        ("out/people", "people"),
        ("out/visits/day=2025-06-01", "visits"),
        ("out/people-2025-06-01", "people"),
        ("out/2025-06-01_people", "people"),
        ("out/people/2025/06/01", "people"),
        ("customers/10000001", "10000001"),
        ("/2025-06-01", "_"),
        ("s3://bucket/Ärzte & Co", "_rzte___Co"),
    ],
)
def test_a_dataset_has_one_name_for_all_its_nights(output, dataset):
    job = Job.from_dict({"input": "i", "output": output, "k": 2, "quasi_identifiers": ["a"]})
    context = {"ti": SimpleNamespace(stats_tags={"dag_id": "d", "task_id": "t"})}
    assert metrics._tags(context, job)["dataset"] == dataset
