"""The components for programs in any language, through the real engine, from a Python program."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.engine.events import LayerFailed
from cli.engine.layers import Layers
from core.ground.naming import CLUSTER_TAG
from infra.package.host import schema
from local import environment
from local.twin import Twin
from tests.integration.nodes import make_subnets

pytestmark = [pytest.mark.integration, pytest.mark.long]
COMPONENTS = Path(__file__).resolve().parents[2] / "components"
GROUP = "their-kafka-parts"
PROGRAM = """
import json
import pulumi

config = pulumi.Config()


class Remote(pulumi.ComponentResource):
    def __init__(self, kind, name, outputs, **inputs):
        super().__init__(
            f"stillwater:index:{kind}", name, inputs | dict.fromkeys(outputs), None, remote=True
        )


OUTPUTS = {
    "Hooks": ["hookNames"],
    "BillExport": ["bucket", "exportName", "folder"],
    "BrokerNodes": ["groupNames", "instanceProfileArn"],
}
for kind, outputs in OUTPUTS.items():
    inputs = config.get_object(kind)
    if inputs is not None:
        made = Remote(kind, "shop", outputs, **inputs)
        for output in outputs:
            pulumi.export(output, getattr(made, output))
"""
HOOKS = {"scalingGroups": {"a": GROUP}, "cluster": "shop-orders", "heartbeatTimeoutSeconds": 900}


class Stack:
    """A project that takes the package from this checkout, and its one stack."""

    def __init__(self, twin: Twin, directory: Path) -> None:
        self.twin, self.directory = twin, directory
        settings = {
            "name": "parts",
            "runtime": "python",
            "main": "program",
            "packages": {"stillwater": str(COMPONENTS)},
        }
        (directory / "program").mkdir()
        (directory / "program" / "__main__.py").write_text(PROGRAM)
        (directory / "Pulumi.yaml").write_text(yaml.safe_dump(settings))

    def _layers(self, given: dict[str, Any]) -> Layers:
        config = {f"parts:{key}": json.dumps(value) for key, value in given.items()}
        config["aws:region"] = environment.REGION
        return Layers(
            "test", self.twin.environment(), self.directory, layers=("parts",), config=config
        )

    def up(self, **given: dict[str, Any]) -> Any:
        return self._layers(given).up()[0]

    def destroy(self) -> Any:
        return self._layers({}).destroy()[0]


@pytest.fixture
def stack(twin: Twin, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(twin, tmp_path)
    yield made
    made.destroy()


@pytest.fixture
def group(twin: Twin) -> Iterator[Any]:
    """A group that is somebody else's."""
    scaling, ec2 = twin.aws("autoscaling"), twin.aws("ec2")
    image = ec2.describe_images()["Images"][0]["ImageId"]
    data = {"ImageId": image, "InstanceType": "m7g.large"}
    ec2.create_launch_template(LaunchTemplateName=GROUP, LaunchTemplateData=data)
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=GROUP,
        LaunchTemplate={"LaunchTemplateName": GROUP},
        MinSize=0,
        MaxSize=2,
        DesiredCapacity=0,
        VPCZoneIdentifier=make_subnets(twin)["a"],
    )
    yield scaling
    scaling.delete_auto_scaling_group(AutoScalingGroupName=GROUP, ForceDelete=True)
    ec2.delete_launch_template(LaunchTemplateName=GROUP)


def hooks(scaling: Any) -> set[str]:
    found = scaling.describe_lifecycle_hooks(AutoScalingGroupName=GROUP)["LifecycleHooks"]
    return {each["LifecycleHookName"] for each in found}


def test_broker_nodes_come_up_once_and_go(twin: Twin, stack: Stack) -> None:
    subnets, ec2 = make_subnets(twin), twin.aws("ec2")
    vpc = ec2.describe_subnets(SubnetIds=[subnets["a"]])["Subnets"][0]["VpcId"]
    security_group = ec2.create_security_group(GroupName="shop", Description="shop", VpcId=vpc)
    nodes = {
        "cluster": "shop-orders",
        "eksCluster": "shop",
        "endpoint": "https://eks.example",
        "certificateAuthority": "Y2E=",
        "serviceCidr": "172.20.0.0/16",
        "subnetIds": {f"{environment.REGION}{letter}": subnets[letter] for letter in "ab"},
        "securityGroupIds": [security_group["GroupId"]],
        "instanceType": "m7g.large",
        "imageId": ec2.describe_images()["Images"][0]["ImageId"],
        "instanceProfileArn": f"arn:aws:iam::{environment.ACCOUNT}:instance-profile/theirs",
    }
    scaling = twin.aws("autoscaling")
    twin.aws("iam").create_instance_profile(InstanceProfileName="theirs")
    first = stack.up(BrokerNodes=nodes)
    names = list(first.outputs["groupNames"].values())
    assert names == ["shop-orders-broker-a", "shop-orders-broker-b"]
    found = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)["AutoScalingGroups"]
    assert {group["MaxSize"] for group in found} == {2}
    assert stack.up(BrokerNodes=nodes).changed == 0
    stack.destroy()
    assert not scaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)[
        "AutoScalingGroups"
    ]


def test_hooks_and_a_bill_export_come_up_once_and_go(group: Any, stack: Stack) -> None:
    bill = {"prefix": "shop", "ephemeral": True}
    first = stack.up(Hooks=HOOKS, BillExport=bill)
    assert first.outputs["hookNames"] == ["drain", "gate"]
    assert first.outputs["bucket"] == f"shop-billing-{environment.ACCOUNT}"
    assert first.outputs["folder"] == f"s3://{first.outputs['bucket']}/export/shop-bill"
    assert hooks(group) == {"drain", "gate"}
    tags = group.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
    assert [(t["Key"], t["Value"]) for t in tags["AutoScalingGroups"][0]["Tags"]] == [
        (CLUSTER_TAG, "shop-orders")
    ]
    assert first.outputs["exportName"] == "shop-bill"
    stack.twin.aws("s3").head_bucket(Bucket=first.outputs["bucket"])

    assert stack.up(Hooks=HOOKS, BillExport=bill).changed == 0
    stack.destroy()
    assert hooks(group) == set()


def test_a_mistake_is_one_sentence(stack: Stack) -> None:
    with pytest.raises(LayerFailed) as failure:
        stack.up(Hooks={**HOOKS, "heartbeatTimeoutSeconds": 5})
    said = "\n".join(failure.value.problems)
    assert "heartbeatTimeoutSeconds is 5; it must be a whole number from 30 to 7200." in said
    assert "Traceback" not in said
    assert "File " not in said


def interface(package: dict[str, Any]) -> dict[str, tuple[set[str], set[str], set[str]]]:
    return {
        token: (set(each["inputProperties"]), set(each["requiredInputs"]), set(each["properties"]))
        for token, each in package["resources"].items()
    }


def test_the_engine_reads_the_schema_that_is_checked_in(stack: Stack) -> None:
    answer = subprocess.run(
        ["pulumi", "package", "get-schema", str(COMPONENTS)],
        cwd=stack.directory,
        env=stack.twin.environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert interface(json.loads(answer.stdout)) == interface(schema())
