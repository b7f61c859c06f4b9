"""The components from a program in YAML, through the real engine and YAML's own language host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.engine.events import LayerFailed
from cli.engine.layers import Layers
from infra.eks.cluster import kubeconfig
from local import environment
from local.twin import Twin
from tests.components.examples import COMPONENTS, example
from tests.integration.waiting import until

BUCKET = f"shop-orders-billing-{environment.ACCOUNT}"


@pytest.fixture
def shop(twin: Twin, tmp_path: Path) -> Iterator[Any]:
    """Writes a project around a program, with the package of this checkout; takes it away."""

    reached: dict[str, str] = {}

    def write(program: dict[str, Any], cluster: str | None = None) -> Layers:
        if cluster is not None:
            # What takes a component away needs it as well.
            reached["kubernetes:kubeconfig"] = cluster
        # The host keeps the schema beside the package: not in the repository, then.
        linked = tmp_path / "components"
        if not linked.exists():
            linked.symlink_to(COMPONENTS)
        components = {"name": "stillwater", "path": str(linked)}
        project = {"name": "shop", "runtime": "yaml", "plugins": {"providers": [components]}}
        (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(project | program))
        config = {"aws:region": environment.REGION, **reached}
        return Layers("test", twin.environment(), tmp_path, layers=("shop",), config=config)

    yield write
    write({}).destroy()


def test_a_bill_export_comes_up_once_and_goes(twin: Twin, shop: Any) -> None:
    program = example("BillExport")
    program["resources"]["bill"]["properties"]["ephemeral"] = True
    (first,) = shop(program).up()
    assert first.outputs["bill"] == f"s3://{BUCKET}/export/shop-orders-bill"
    twin.aws("s3").head_bucket(Bucket=BUCKET)
    (again,) = shop(program).up()
    assert again.changed == 0
    shop({}).destroy()
    assert BUCKET not in {each["Name"] for each in twin.aws("s3").list_buckets()["Buckets"]}


def test_hooks_come_up_once_and_go(groups: Any, shop: Any) -> None:
    shop(example("Hooks")).up()
    assert groups() == [["drain", "gate"]] * 2
    (again,) = shop(example("Hooks")).up()
    assert again.changed == 0
    shop({}).destroy()
    assert groups() == [[], []]


def test_broker_nodes_come_up_once_and_go(twin: Twin, eks: Mapping[str, Any], shop: Any) -> None:
    program = example("BrokerNodes")
    nodes = program["resources"]["nodes"]["properties"]
    assert nodes.keys() >= eks.keys()
    nodes |= eks
    (first,) = shop(program).up()
    assert first.outputs["groups"] == {
        f"us-east-1{letter}": f"shop-orders-broker-{letter}" for letter in "ab"
    }
    scaling = twin.aws("autoscaling")

    def machines() -> list[str] | None:
        names = list(first.outputs["groups"].values())
        found = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)
        held = [m["InstanceId"] for g in found["AutoScalingGroups"] for m in g["Instances"]]
        return held if len(held) == len(names) else None

    instances = until(machines, "a machine in each zone")

    def joined() -> list[dict[str, Any]] | None:
        nodes = twin.api.get("/api/v1/nodes")["items"]
        ours = [n for n in nodes if n["spec"].get("providerID", "").endswith(tuple(instances))]
        return ours if len(ours) == len(instances) else None

    for node in until(joined, "a node for each machine"):
        assert node["metadata"]["labels"]["stillwater.dev/pool"] == "broker"
        assert {"key": "dedicated", "value": "kafka", "effect": "NoSchedule"} in [
            {key: taint.get(key) for key in ("key", "value", "effect")}
            for taint in node["spec"]["taints"]
        ]
    hooks = example("Hooks")["resources"]["hooks"]
    hooks["properties"]["scalingGroups"] = {"a": '${nodes.groupNames["us-east-1a"]}'}
    program["resources"]["hooks"] = hooks
    shop(program).up()
    (again,) = shop(program).up()
    assert again.changed == 0
    shop({}).destroy()
    assert machines() is None


def beside(eks: Mapping[str, Any], program: dict[str, Any]) -> str:
    """Put what is there into a program's one component; return how its cluster is reached."""
    (component,) = program["resources"].values()
    given = component["properties"]
    given |= {key: value for key, value in eks.items() if key in given}
    if "subnetIds" in given:
        given["subnetIds"] = list(eks["subnetIds"].values())
    endpoint, authority = eks["endpoint"], eks["certificateAuthority"]
    return kubeconfig("shop", environment.REGION, endpoint, authority)


def test_operations_watch_and_leave_nothing(
    twin: Twin, groups: None, eks: Mapping[str, Any], shop: Any
) -> None:
    program = example("Operations")
    cluster = beside(eks, program)
    twin.api.post("/api/v1/namespaces", {"metadata": {"name": "kafka"}})
    (first,) = shop(program, cluster).up()
    assert first.outputs["ledger"] == "shop-orders-incidents"
    functions = twin.aws("lambda").list_functions()["Functions"]
    assert "shop-orders-tick" in {each["FunctionName"] for each in functions}
    (again,) = shop(program).up()
    assert again.changed == 0

    gate = example("EvictionGate")
    beside(eks, gate)
    both = {"resources": program["resources"] | gate["resources"], "outputs": gate["outputs"]}
    operations = both["resources"]["operations"]["properties"]
    image = both["resources"]["gate"]["properties"]["image"]
    operations |= {"level": "gate", "gateImage": image, "gateElsewhere": True}
    both["resources"]["gate"]["properties"] |= {
        "ledgerTable": "${operations.ledgerTable}",
        "ticksQueueUrl": "${operations.ticksQueueUrl}",
    }
    (gated,) = shop(both).up()
    webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    asked = twin.api.get(f"{webhooks}/{gated.outputs['service']}")
    assert len(asked["webhooks"]) == 3
    (again,) = shop(both).up()
    assert again.changed == 0

    shop({}).destroy()
    assert twin.aws("lambda").list_functions()["Functions"] == []
    names = {each["metadata"]["name"] for each in twin.api.get(webhooks)["items"]}
    assert gated.outputs["service"] not in names


def test_a_report_comes_up_once_and_goes(twin: Twin, shop: Any) -> None:
    def roles() -> set[str]:
        found = {each["RoleName"] for each in twin.aws("iam").list_roles()["Roles"]}
        return found & {"shop-orders-report-job", "shop-orders-report-schedule"}

    program = example("Report")
    program["resources"]["bill"]["properties"]["ephemeral"] = True
    (first,) = shop(program).up()
    told = json.loads(first.outputs["job"])["JobDriver"]["SparkSubmit"]
    assert f"s3://{BUCKET}/export/shop-orders-bill" in told["EntryPointArguments"]
    assert told["EntryPoint"].startswith(f"s3://{BUCKET}/code/")
    assert len(roles()) == 2
    (again,) = shop(program).up()
    assert again.changed == 0
    shop({}).destroy()
    assert roles() == set()


def test_a_mistake_is_one_sentence(shop: Any) -> None:
    program = example("Hooks")
    program["resources"]["hooks"]["properties"]["heartbeatTimeoutSeconds"] = 5
    with pytest.raises(LayerFailed) as failure:
        shop(program).up()
    said = "\n".join(failure.value.problems)
    assert "it must be a whole number from 30 to 7200." in said
    assert "Traceback" not in said
