"""The components from a program in YAML, through the real engine and YAML's own language host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.engine.layers import Layers
from cli.engine.progress import LayerFailed
from local import environment
from local.twin import Twin

REPOSITORY = Path(__file__).resolve().parents[2]
GROUPS = ("kafka-us-east-1a", "kafka-us-east-1b")
BUCKET = f"shop-orders-billing-{environment.ACCOUNT}"


def example(component: str) -> dict[str, Any]:
    """Return the program below a component's heading in its how-to."""
    text = (REPOSITORY / "docs" / "how-to" / "components.md").read_text()
    found = re.search(rf"^## {component}$.*?^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{component} has no example"
    return dict(yaml.safe_load(found.group(1)))


@pytest.fixture
def shop(twin: Twin, tmp_path: Path) -> Iterator[Any]:
    """Writes a project around a program, with the package of this checkout; takes it away."""

    def write(program: dict[str, Any]) -> Layers:
        # The host keeps the schema beside the package: not in the repository, then.
        linked = tmp_path / "components"
        if not linked.exists():
            linked.symlink_to(REPOSITORY / "components")
        components = {"name": "stillwater", "path": str(linked)}
        project = {"name": "shop", "runtime": "yaml", "plugins": {"providers": [components]}}
        (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(project | program))
        config = {"aws:region": environment.REGION}
        return Layers("test", twin.environment(), tmp_path, layers=("shop",), config=config)

    yield write
    write({}).destroy()


@pytest.fixture
def groups(twin: Twin) -> None:
    """The groups of the example, which are somebody else's."""
    scaling, ec2 = twin.aws("autoscaling"), twin.aws("ec2")
    data = {"ImageId": ec2.describe_images()["Images"][0]["ImageId"], "InstanceType": "m7g.large"}
    ec2.create_launch_template(LaunchTemplateName="kafka", LaunchTemplateData=data)
    for group in GROUPS:
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=group,
            LaunchTemplate={"LaunchTemplateName": "kafka"},
            MinSize=0,
            MaxSize=2,
            AvailabilityZones=[group.removeprefix("kafka-")],
        )


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


def test_hooks_come_up_once_and_go(twin: Twin, groups: None, shop: Any) -> None:
    def hooks(group: str) -> list[str]:
        found = twin.aws("autoscaling").describe_lifecycle_hooks(AutoScalingGroupName=group)
        return sorted(each["LifecycleHookName"] for each in found["LifecycleHooks"])

    shop(example("Hooks")).up()
    assert [hooks(group) for group in GROUPS] == [["drain", "gate"]] * 2
    (again,) = shop(example("Hooks")).up()
    assert again.changed == 0
    shop({}).destroy()
    assert [hooks(group) for group in GROUPS] == [[], []]


def test_a_mistake_is_one_sentence(shop: Any) -> None:
    program = example("Hooks")
    program["resources"]["hooks"]["properties"]["heartbeatTimeoutSeconds"] = 5
    with pytest.raises(LayerFailed) as failure:
        shop(program).up()
    said = "\n".join(failure.value.problems)
    assert "it must be a whole number from 30 to 7200." in said
    assert "Traceback" not in said
