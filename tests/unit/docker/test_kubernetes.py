"""The examples for Kubernetes, as far as no cluster is needed for them.

tests/servers/test_arbitrary_user.py runs a job under what they ask for.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.configuration import retrieve_configuration_description

from mondrian_ops.hooks.settings import CONFIG
from mondrian_ops.job.sections import Partitioning

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PHASES = ("partition", "anonymize_fragment", "wrap_up")
PODS: dict[str, Any] = {
    phase: yaml.safe_load((EXAMPLES / "kubernetes" / f"{phase}.yaml").read_text())
    for phase in PHASES
}
VALUES = yaml.safe_load((EXAMPLES / "helm" / "values.yaml").read_text())


def base(phase: str) -> dict[str, Any]:
    (container,) = PODS[phase]["spec"]["containers"]
    assert container["name"] == "base"  # where Airflow runs the task
    return dict(container)


@pytest.mark.parametrize("phase", PHASES)
def test_a_pod_writes_to_its_volumes_only_and_has_no_rights(phase: str) -> None:
    spec = PODS[phase]["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"]
    assert base(phase)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounted = {mount["name"] for mount in base(phase)["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["volumes"]}


@pytest.mark.parametrize("phase", PHASES)
def test_a_pod_knows_settings_that_exist_and_no_home(phase: str) -> None:
    known = {**retrieve_configuration_description(), **CONFIG}
    for variable in base(phase)["env"]:
        assert variable["name"] != "HOME"
        if variable["name"].startswith("AIRFLOW__"):
            section, option = re.fullmatch(r"AIRFLOW__(\w+?)__(\w+)", variable["name"]).groups()
            assert option.lower() in known[section.lower()]["options"]


def test_pods_differ_by_what_their_phase_needs() -> None:
    resources = {phase: base(phase)["resources"] for phase in PHASES}
    gigabytes = {}
    for phase, asked in resources.items():
        requested = {name: asked["limits"][name] for name in ("cpu", "memory")}
        assert asked["requests"] == requested  # the quota is what threads follow
        gigabytes[phase] = int(asked["limits"]["memory"].removesuffix("Gi")) * 2**30 / 1e9
    # By docs/deploy.md, and 0.3 GB for Airflow's own process in each.
    assert gigabytes["partition"] > 1.1 + 0.3
    assert gigabytes["anonymize_fragment"] > 0.15 + 125e-9 * Partitioning().max_rows + 0.3
    assert gigabytes["wrap_up"] > 2.2 + 0.3
    alike = [{**base(phase), "resources": None} for phase in PHASES]
    assert alike[0] == alike[1] == alike[2]


def test_the_chart_s_pods_are_confined_as_those_are() -> None:
    spec = PODS["partition"]["spec"]
    confined = VALUES["securityContexts"]
    assert confined["containers"] == base("partition")["securityContext"]
    assert confined["pod"].items() <= spec["securityContext"].items()
    assert (VALUES["uid"], VALUES["gid"]) == (
        spec["securityContext"]["runAsUser"],
        spec["securityContext"]["runAsGroup"],
    )
    assert VALUES["volumes"] == spec["volumes"]
    assert VALUES["volumeMounts"] == base("partition")["volumeMounts"]
    assert VALUES["config"]["mondrian_ops"].keys() <= CONFIG["mondrian_ops"]["options"].keys()
