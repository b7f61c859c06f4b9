"""Checkov and kube-score on what the program provisions, parliament on what it permits.

Every finding has a reason, or it is fixed. AWS resources are handed over as a Terraform
plan; Kubernetes objects, those of charts included, as the files an administrator would apply.
Several shapes of cluster are looked at as one, so that a reason is used by whichever needs it.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.integration.lint import linters, reasons
from tests.integration.lint.rendered import KUBERNETES, objects
from tests.integration.lint.terraform_plan import plan
from tests.unit.infra.programs import run_layers
from tests.unit.infra.recording import Recorded
from tests.unit.infra.variants import VARIANTS

pytestmark = [pytest.mark.integration, pytest.mark.lint]

SHOWN = ("certificates", "karpenter with everything")
POLICIES = ("policy",)
# What the repository itself is built and checked with; `make check` has two linters more for it.
BUILT: Mapping[str, Path] = {
    "dockerfile": linters.REPOSITORY / "Dockerfile",
    "github_actions": linters.REPOSITORY / ".github" / "workflows" / "nightly.yaml",
}
LINTERS = ("terraform_plan", "kubernetes", "kube_score", "parliament", *BUILT)


@pytest.fixture(scope="module", autouse=True)
def installed() -> Path:
    return linters.python()


@pytest.fixture(scope="module")
def programs() -> Mapping[str, dict[str, Recorded]]:
    return {name: run_layers(VARIANTS[name]) for name in SHOWN}


@pytest.fixture(scope="module")
def findings(
    programs: Mapping[str, dict[str, Recorded]], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, set[reasons.Finding]]:
    """Everything that fails, by linter."""
    home = tmp_path_factory.mktemp("linted")
    manifests = home / "objects"
    manifests.mkdir()
    looked_at = list(BUILT.items())
    for number, layers in enumerate(programs.values()):
        planned = home / f"plan-{number}.json"
        planned.write_text(json.dumps(plan(layers)))
        looked_at.append(("terraform_plan", planned))
        _write(layers, manifests)
    looked_at.append(("kubernetes", manifests))
    found: dict[str, set[reasons.Finding]] = {framework: set() for framework, _ in looked_at}
    # Each is a process of its own, which takes seconds to start.
    with ThreadPoolExecutor() as pool:
        for framework, failed in pool.map(lambda each: (each[0], _failed(*each)), looked_at):
            found[framework] |= failed
    found["kube_score"] = set(linters.kube_score(sorted(manifests.iterdir()), KUBERNETES))
    found["parliament"] = _judged(programs, home)
    return found


def _failed(framework: str, path: Path) -> set[reasons.Finding]:
    return {(each["check_id"], each["resource"]) for each in linters.checkov(path, framework)}


def _write(layers: Mapping[str, Recorded], home: Path) -> None:
    for each in objects(layers):
        metadata = {"namespace": each.namespace, **each.manifest["metadata"]}
        name = f"{each.source}-{each.name}.yaml".replace("/", "-").replace(":", "-")
        (home / name).write_text(yaml.safe_dump({**each.manifest, "metadata": metadata}))


def policies(programs: Mapping[str, dict[str, Recorded]]) -> dict[str, str]:
    """Return every policy document but those of trust, by cluster and resource."""
    return {
        f"{cluster}/{resource.name}": resource.inputs[key]
        for cluster, layers in programs.items()
        for layer in layers.values()
        for resource in layer.resources
        for key in POLICIES
        if resource.type.startswith("aws:") and isinstance(resource.inputs.get(key), str)
    }


def _judged(programs: Mapping[str, dict[str, Recorded]], home: Path) -> set[reasons.Finding]:
    judged = linters.parliament(policies(programs), home)
    found = set()
    for name, answer in judged.items():
        policy = name.partition("/")[2]
        found |= {(f["issue"], f"{policy}/{f['sid']}") for f in answer["findings"]}
        found |= {("WILDCARD", f"{policy}/{action}") for action in answer["wildcards"]}
    return found


@pytest.mark.parametrize("linter", LINTERS)
def test_every_finding_has_a_reason_and_every_reason_a_finding(
    linter: str, findings: Mapping[str, set[reasons.Finding]]
) -> None:
    open_ = reasons.unexplained_findings(linter, findings[linter])
    assert not open_, f"Fix it in infra/, or say why not in {reasons.FILE.name}: {open_}"
    idle = reasons.unused_reasons(linter, findings[linter])
    assert not idle, f"Nothing needs these any more; take them out of {reasons.FILE.name}: {idle}"


def test_a_reason_is_a_sentence() -> None:
    for linter in LINTERS:
        for check, patterns in reasons.of(linter).items():
            for pattern, reason in patterns.items():
                assert len(reason) > 20, (check, pattern)
                assert reason.strip().endswith("."), (check, pattern)


def test_every_aws_resource_is_handed_over(programs: Mapping[str, dict[str, Recorded]]) -> None:
    for layers in programs.values():
        ours = [r for each in layers.values() for r in each.resources if r.type.startswith("aws:")]
        planned = plan(layers)["planned_values"]["root_module"]["resources"]
        assert len({each["address"] for each in planned}) == len(ours) > 150


@pytest.mark.long
def test_what_is_wrong_is_found(
    programs: Mapping[str, dict[str, Recorded]], tmp_path: Path
) -> None:
    broken = plan(programs["certificates"])
    for resource in broken["planned_values"]["root_module"]["resources"]:
        if resource["type"] == "aws_launch_template":
            resource["values"]["metadata_options"][0]["http_tokens"] = "optional"
        if resource["type"] == "aws_eks_cluster":
            resource["values"].pop("encryption_config")
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(broken))
    failed = {check for check, _ in _failed("terraform_plan", path)}
    assert {"CKV_AWS_79", "CKV_AWS_58"} <= failed


def test_a_policy_that_asks_for_too_much_is_found(tmp_path: Path) -> None:
    statement = {
        "Sid": "Everything",
        "Effect": "Allow",
        "Action": ["sqs:SendMessage", "s3:GetObjekt"],
        "Resource": ["*"],
    }
    document = {"Version": "2012-10-17", "Statement": [statement]}
    judged = linters.parliament({"x": json.dumps(document)}, tmp_path)["x"]
    assert "UNKNOWN_ACTION" in {f["issue"] for f in judged["findings"]}
    assert judged["wildcards"] == {"sqs:SendMessage": ["queue*"]}
