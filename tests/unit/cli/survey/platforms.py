"""Changes by which a healthy cluster becomes one of those that companies really run."""

from typing import Any

from tests.unit.cli.survey.machines import provisioned
from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.worlds import NTH, Change, World, at, bare

NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "kafka"}
FOREIGN_KEY = "arn:aws:kms:eu-north-1:999988887777:key/0a1b"


def each_group(**said: Any) -> Change:
    return at("groups.*", **said)


def template(**said: Any) -> Change:
    return lambda world: world.template is not None and world.template.update(said)


without_template = at("template", None)


def mixed(*, overrides: list[Item], **distribution: Any) -> Change:
    """Let every group choose among types of machines, as a mixed instances policy does."""
    named = {"LaunchTemplateId": "lt-0a1b", "Version": "7"}
    policy = {
        "LaunchTemplate": {"LaunchTemplateSpecification": named, "Overrides": overrides},
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100, **distribution},
    }

    def made(world: World) -> None:
        for group in world.groups.values():
            del group["LaunchTemplate"]
            group["MixedInstancesPolicy"] = policy

    return made


def weighted(world: World) -> None:
    """Count machines of 8 vCPUs as four, so that a group of one wants four."""
    types = [{"InstanceType": "r7g.2xlarge", "WeightedCapacity": "4"}]
    mixed(overrides=types)(world)
    for name, group in world.groups.items():
        group |= {"DesiredCapacity": 4, "MaxSize": 8}
        held = [machine for machine, of in world.member_of.items() if of == name]
        group["Instances"] = [_member(machine) for machine in held]


def by_vcpus(world: World) -> None:
    weighted(world)
    each_group(DesiredCapacityType="vcpu", MixedInstancesPolicy={})(world)


def _member(machine: str) -> Item:
    return {"InstanceId": machine, "LifecycleState": "InService", "HealthStatus": "Healthy"}


def by_configuration(**said: Any) -> Change:
    """Let every group start machines as before there were launch templates."""

    def made(world: World) -> None:
        for group in world.groups.values():
            del group["LaunchTemplate"]
            group["LaunchConfigurationName"] = "kafka-2019"
        world.launch_configurations = [{"LaunchConfigurationName": "kafka-2019", **said}]

    return made


def crowded(world: World) -> None:
    """One group of three brokers in zone a, beside the others' groups."""
    name = min(world.groups)
    brokers = [machine for machine in sorted(world.instances) if "mains" in machine]
    for machine in brokers:
        world.member_of[machine] = name
    world.groups[name] |= {
        "DesiredCapacity": 3,
        "MaxSize": 4,
        "AvailabilityZones": ["eu-north-1a", "eu-north-1b", "eu-north-1c"],
        "SuspendedProcesses": [{"ProcessName": "AZRebalance"}],
        "VPCZoneIdentifier": "subnet-a,subnet-b,subnet-c",
        "Instances": [_member(machine) for machine in brokers],
    }


def machines(**said: Any) -> Change:
    return at("instances.*", **said)


def metadata_handler(*, host_network: bool) -> Change:
    """Exchange the termination handler for one that asks the metadata of its own machine."""

    def made(world: World) -> None:
        world.kinds["deployments"] = [
            each for each in world.kinds["deployments"] if each["metadata"]["name"] != "nth"
        ]
        image = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6"
        item = workload("nth", "ops", image, **{**NTH, "ENABLE_SQS_TERMINATION_DRAINING": "false"})
        item["spec"]["template"]["spec"]["hostNetwork"] = host_network
        world.add("daemonsets", item)

    return made


def pod_set(**said: Any) -> Change:
    item = {
        "metadata": meta("orders-mains", "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "spec": {"pods": []},
        **said,
    }
    return lambda world: world.add("strimzipodsets", item)


def pod_set_marked(**marks: str) -> Change:
    labels = {"strimzi.io/cluster": "orders"}
    return pod_set(metadata=meta("orders-mains", "shop-kafka", labels=labels, **marks))


def rebalance(state: str) -> Change:
    item = {
        "metadata": meta("full", "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "status": {"conditions": [{"type": state, "status": "True"}]},
    }
    return lambda world: world.add("kafkarebalances", item)


def disk(**said: Any) -> Change:
    """Say something of the disk of the first broker."""
    return lambda world: world.around.disks.update({"vol-data-orders-mains-0": said})


def lost_disk(world: World) -> None:
    world.around.lost.add("vol-data-orders-mains-0")


def modification(state: str) -> Change:
    said = {"VolumeId": "vol-data-orders-mains-0", "ModificationState": state}
    return lambda world: world.modifications.append(said)


def network(image: str, *, down: bool = False, **env: str) -> Change:
    item = workload("net", "kube-system", image, **env)
    status = {"desiredNumberScheduled": 6, "numberAvailable": 0 if down else 6}
    return lambda world: world.add("daemonsets", {**item, "status": status})


def free(addresses: int) -> Change:
    return lambda world: world.around.subnets.update({"subnet-a": ("eu-north-1a", addresses)})


def tainted(key: str, effect: str = "NoExecute") -> Change:
    return at("nodes.0.spec.taints", [{"key": key, "effect": effect}])


def fargate(world: World) -> None:
    """Put every pod on a node of Fargate's, which no instance stands behind."""
    for each in world.kinds["nodes"]:
        zone = each["metadata"]["labels"]["topology.kubernetes.io/zone"]
        each["metadata"]["labels"]["eks.amazonaws.com/compute-type"] = "fargate"
        each["spec"]["providerID"] = f"aws:///{zone}/0a1b/fargate-ip-10-0-0-1"


def of_class(*, zones: str = "abc", ready: str = "True", **spec: Any) -> World:
    """Give all nodes to a NodePool of Karpenter's whose EC2NodeClass says where they start."""
    world = provisioned(bare(), template={"nodeClassRef": NODE_CLASS})
    world.versions["karpenter.k8s.aws"] = "v1"
    subnets = [{"id": f"subnet-{z}", "zone": f"eu-north-1{z}"} for z in zones]
    said = {"type": "Ready", "status": ready, "message": "no AMIs exist"}
    status = {"subnets": subnets, "conditions": [said]}
    usual = {"amiSelectorTerms": [{"alias": "bottlerocket@v1.50.0"}]}
    item = {"metadata": meta("kafka"), "spec": {**usual, **spec}, "status": status}
    world.add("ec2nodeclasses", item)
    return world


# The machine of the first group is gone, which wants one all the same.
short = at("groups.first.Instances", [])


def tried(*said: tuple[str, str]) -> Change:
    """Say what groups have tried, the newest first: a status and its message."""

    def made(world: World) -> None:
        short(world)
        world.activities = [
            {"StatusCode": code, "StatusMessage": message, "Cause": "At it."}
            for code, message in said
        ]

    return made


def pods_limited(**resources: str) -> Change:
    return at("pods.*.spec.containers.0.resources.limits", **resources)


def outside_webhook(
    policy: str, *resources: str, url: str = "https://admit.example.com/pods"
) -> Change:
    """Let somebody outside the cluster be asked about new pods, or about what is named."""
    webhook = {
        "name": "admit.example.com",
        "failurePolicy": policy,
        "rules": [
            {"apiGroups": [""], "resources": list(resources or ("pods",)), "operations": ["CREATE"]}
        ],
        "clientConfig": {"url": url},
    }
    item = {"metadata": meta("theirs"), "webhooks": [webhook]}
    return lambda world: world.add("validatingwebhookconfigurations", item)


def running(image: str) -> Change:
    return lambda world: world.add("deployments", workload("it", "tools", image))


def attached(machine: str, state: str = "attached") -> Change:
    """Say to which machine the disk of the first broker is attached."""
    return disk(Attachments=[{"InstanceId": machine, "State": state}])


def reconciled(generation: int, observed: int | None) -> Change:
    status = {} if observed is None else {"observedGeneration": observed}
    carried_out = at("kafkas.0.status", status)
    return lambda w: (at("kafkas.0.metadata.generation", generation)(w), carried_out(w))


def without_class(world: World) -> World:
    world.kinds["ec2nodeclasses"] = []
    return world


def in_tree_and_lost(world: World) -> None:
    """Name the disks as Kubernetes did before there were drivers; the first one is gone."""
    for each in world.kinds["persistentvolumes"]:
        name = each["spec"].pop("csi")["volumeHandle"]
        each["spec"]["awsElasticBlockStore"] = {"volumeID": f"aws://eu-north-1a/{name}"}
    lost_disk(world)
