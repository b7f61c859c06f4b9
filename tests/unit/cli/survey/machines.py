"""What the machines below other people's Kafka belong to: groups, node groups, node pools."""

from typing import Any

from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.worlds import NTH, ZONES, World, cleaner


def own_groups(world: World) -> World:
    """Give every node a group per zone and role with hooks, and a termination handler that hears.

    Drain Cleaner leaves the answer to the budget, which the handler understands.
    """
    for each in world.kinds["nodes"]:
        _, zone, instance = each["spec"]["providerID"].rsplit("/", 2)
        name = f"asg-of-{each['metadata']['name']}"
        world.member_of[instance] = name
        world.groups[name] = group(name, [zone])
        world.hooks[name] = [hook()]
    world.kinds["deployments"] = [
        each for each in world.kinds["deployments"] if "drain-cleaner" not in str(each)
    ]
    world.kinds["validatingwebhookconfigurations"] = []
    world.kinds["services"] = []
    cleaner(world, STRIMZI_DENY_EVICTION="false")
    world.only("poddisruptionbudgets")["spec"]["minAvailable"] = 6
    image = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6"
    world.add("deployments", workload("nth", "ops", image, **NTH))
    return world


def group(name: str, zones: list[str], **more: Any) -> Item:
    return {
        "AutoScalingGroupName": name,
        "MaxSize": 2,
        "DesiredCapacity": 1,
        "AvailabilityZones": zones,
        "VPCZoneIdentifier": ",".join(f"subnet-{zone[-1]}" for zone in zones),
        "HealthCheckType": "EC2",
        "LaunchTemplate": {"LaunchTemplateId": "lt-0a1b", "Version": "7"},
        "InstanceLifecyclePolicy": {"RetentionTriggers": {"TerminateHookAbandon": "retain"}},
        "Tags": [],
        **more,
    }


def hook(**more: Any) -> Item:
    return {
        "LifecycleHookName": "hold",
        "HeartbeatTimeout": 1800,
        "DefaultResult": "ABANDON",
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        **more,
    }


def provisioned(world: World, *, auto: bool = False, **spec: Any) -> World:
    """Give every node to a NodePool of Karpenter's or Auto Mode's."""
    for each in world.kinds["nodes"]:
        each["metadata"]["labels"]["karpenter.sh/nodepool"] = "kafka"
        if auto:
            each["metadata"]["labels"]["eks.amazonaws.com/compute-type"] = "auto"
    if not auto:
        world.add("deployments", karpenter())
    template = {"expireAfter": "Never", **spec.pop("template", {})}
    disruption = {"consolidationPolicy": "WhenEmpty", **spec.pop("disruption", {})}
    item = {"apiVersion": f"karpenter.sh/{world.versions['karpenter.sh']}"}
    spec = {"template": {"spec": template}, "disruption": disruption, **spec}
    world.add("nodepools", item | {"metadata": meta("kafka"), "spec": spec})
    return world


def karpenter(**env: str) -> Item:
    """Return Karpenter's controller, which hears of interruptions unless told otherwise."""
    given = {"CLUSTER_NAME": "shop", "INTERRUPTION_QUEUE": "shop", **env}
    return workload(
        "karpenter", "kube-system", "public.ecr.aws/karpenter/controller:1.8.1", **given
    )


def managed(world: World, *, zones: tuple[str, ...] = ZONES, **group_of_eks: Any) -> World:
    """Give the nodes of each zone to a managed node group, or all of them to one."""
    for each in world.kinds["nodes"]:
        _, zone, instance = each["spec"]["providerID"].rsplit("/", 2)
        name = f"eks-{zone}" if len(zones) > 1 else "eks-workers"
        spanned = [zone] if len(zones) > 1 else list(ZONES)
        world.member_of[instance] = name
        wanted = 2 if len(zones) > 1 else len(world.kinds["nodes"])
        tags = [
            {"Key": "eks:nodegroup-name", "Value": name.removeprefix("eks-")},
            {"Key": "eks:cluster-name", "Value": "shop"},
        ]
        world.groups[name] = group(name, spanned, DesiredCapacity=wanted, MaxSize=wanted, Tags=tags)
        said = {"updateConfig": {"maxUnavailable": 1}, **group_of_eks}
        world.node_groups[name.removeprefix("eks-")] = said
    return world
