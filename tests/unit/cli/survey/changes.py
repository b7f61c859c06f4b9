"""Changes by which a healthy cluster becomes one of those that companies really run."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.others import every
from tests.unit.cli.survey.worlds import Change, World, at, more

HANDLER = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
KEY = "arn:aws:kms:eu-north-1:111122223333:key/0a1b"
# What pods of one Kafka have in common.
ALIKE = {"matchLabels": {"strimzi.io/cluster": "orders"}}


def both(*changes: Change) -> Change:
    return lambda world: [change(world) for change in changes]


def container_of(image: str, change: Callable[[Item], object]) -> Change:
    def made(world: World) -> None:
        for kind in ("deployments", "daemonsets"):
            for each in world.kinds.get(kind, ()):
                for container in each["spec"]["template"]["spec"]["containers"]:
                    if image in container["image"]:
                        change(container)

    return made


def handler(**env: str) -> Change:
    added = [{"name": key, "value": value} for key, value in env.items()]
    return container_of("termination-handler", lambda c: c["env"].extend(added))


each_group, group_of = partial(at, "groups.*"), partial(at, "groups.first")
instance, machines = partial(at, "instances.first"), partial(at, "instances.*")
template, without_template = partial(at, "template"), at("template", None)
nodes_labelled = partial(at, "nodes.*.metadata.labels")
# The machine of the first group is gone, which wants one all the same.
short = at("groups.first.Instances", [])


def added(kind: str, item: Item) -> Change:
    return lambda world: world.add(kind, copy.deepcopy(item))


def of_driver(driver: str, *, key: str = "topology.kubernetes.io/zone") -> Change:
    term = {"key": key, "operator": "In", "values": ["x"]}
    near = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    return at("persistentvolumes.*.spec", csi={"driver": driver}, nodeAffinity=near)


def deleted(kind: str) -> Change:
    return at(f"{kind}.0.metadata", deletionTimestamp="2026-11-01")


def deployment(image: str, **more: Any) -> Change:
    return added("deployments", {**workload("it", "ops", image), **more})


def without(image: str) -> Change:
    def made(world: World) -> None:
        world.kinds["deployments"] = [d for d in world.kinds["deployments"] if image not in str(d)]

    return made


def drains_by(image: str) -> Change:
    return both(without("termination-handler"), deployment(image))


def refreshing(status: str) -> Change:
    return lambda world: world.refreshes.update({min(world.groups): [{"Status": status}]})


def by_configuration(**said: Any) -> Change:
    """Let every group start machines as before there were launch templates."""

    def made(world: World) -> None:
        for group in world.groups.values():
            del group["LaunchTemplate"]
            group["LaunchConfigurationName"] = "kafka-2019"
        world.launch_configurations = [{"LaunchConfigurationName": "kafka-2019", **said}]

    return made


def pod_set(**said: Any) -> Change:
    item = {
        "metadata": meta("orders-mains", "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "spec": {"pods": []},
        **said,
    }
    return added("strimzipodsets", item)


def webhook(group: str, resource: str, *operations: str, **more: Any) -> Change:
    """Ask somebody whose Service is gone."""
    rule = {"apiGroups": [group], "resources": [resource], "operations": list(operations)}
    kind = more.pop("kind", VALIDATING)
    scope = more.pop("scope", None)
    hook = {
        "name": "it.example.io",
        "rules": [rule | ({"scope": scope} if scope else {})],
        "clientConfig": {"service": {"namespace": "ops", "name": "gone"}},
        **more,
    }
    return added(kind, {"metadata": meta("it"), "webhooks": [hook]})


def apart(key: str) -> Change:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"podAntiAffinity": {required: [{"topologyKey": key, "labelSelector": ALIKE}]}}
    return lambda world: every(world, "pods", affinity=affinity)


def policy(
    resource: str,
    *operations: str,
    actions: tuple[str, ...] = ("Deny",),
    warning: str = "",
    **more: Any,
) -> Change:
    """Bind a ValidatingAdmissionPolicy."""
    rule = {"apiGroups": [""], "resources": [resource], "operations": list(operations)}
    matching = {"resourceRules": [rule], **more}
    checked = {"expressionWarnings": [{"fieldRef": "it", "warning": warning}]} if warning else {}

    spec = {"matchConstraints": matching}
    item = {"metadata": meta("it"), "spec": spec, "status": {"typeChecking": checked}}
    bound = {"policyName": "it", "validationActions": list(actions)}
    return both(
        added("validatingadmissionpolicies", item),
        added("validatingadmissionpolicybindings", {"metadata": meta("it"), "spec": bound}),
    )


# Ways to AWS.
def no_default_route(*letters: str) -> Change:
    return lambda world: [world.routes[letter].pop() for letter in letters or "abc"]


def endpoint(service: str, **more: Any) -> Item:
    usual = {
        "VpcId": "vpc-1",
        "ServiceName": f"com.amazonaws.eu-north-1.{service}",
        "State": "available",
        "VpcEndpointType": "Interface",
    }
    gateway = {"VpcEndpointType": "Gateway", "RouteTableIds": ["rtb-a", "rtb-b", "rtb-c"]}
    return usual | (gateway if service == "s3" else {}) | more


def endpoints(*services: str, **more: Any) -> Change:
    return lambda world: world.endpoints.extend(endpoint(each, **more) for each in services)


def nat_gone(world: World) -> None:
    del world.nats["nat-c"]


def routed_to(**target: str) -> Change:
    return at("routes.*.-1", {"DestinationCidrBlock": "0.0.0.0/0", "State": "active", **target})


def template_keyed(*users: str, grants: tuple[str, ...] = (), **said: Any) -> Change:
    disks = [{"Ebs": {"KmsKeyId": KEY, "Encrypted": True}}]

    allowed = {"Effect": "Allow", "Principal": {"AWS": list(users)}, "Action": "kms:*"}
    return both(
        template(BlockDeviceMappings=disks),
        lambda world: world.key.update(said),
        more("key_policy.Statement", allowed),
        more("grants", *({"GranteePrincipal": each} for each in grants)),
    )


def role(name: str | None, *, mode: str, known: tuple[str, ...] = (), mapped: str = "") -> Change:
    """Let templates name an instance profile, and the cluster know some roles."""

    profile = {"Arn": "arn:aws:iam::1:instance-profile/eks/nodes"}
    roles = f"- rolearn: arn:aws:iam::1:role/{mapped}\n" if mapped else ""
    return both(
        template(IamInstanceProfile=profile),
        at("roles", {"nodes": name} if name else {}),
        at("entries", list(known)),
        at("around.cluster", accessConfig={"authenticationMode": mode}),
        added("configmaps", {"metadata": meta("aws-auth"), "data": {"mapRoles": roles}}),
    )


def of_ecr(refused: str = "", *, cached: str = "", account: str = "111122223333") -> Change:
    """Let all pods run an image of ECR's, whose registry may refuse it."""
    image = f"{account}.dkr.ecr.eu-north-1.amazonaws.com/strimzi/kafka:1.2.0-kafka-4.3.1"

    return both(
        at("pods.*.spec.containers.0.image", image),
        at("registries", {account: refused} if refused else {}),
        at("cached", [cached] if cached else []),
    )
