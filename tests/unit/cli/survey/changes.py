"""Changes of a healthy cluster: dangers that hide, what only looks like one, what runs beside."""

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.unit.cli.survey import machines
from tests.unit.cli.survey.machines import hook
from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.others import every, kafka_spec
from tests.unit.cli.survey.platforms import template
from tests.unit.cli.survey.worlds import RULE, Change, World, at

# What pods of one Kafka have in common.
ALIKE = {"matchLabels": {"strimzi.io/cluster": "orders"}}
# What EventBridge needs of a queue's policy.
SENDS = {"Effect": "Allow", "Action": "sqs:SendMessage"}
EVENTS = {**SENDS, "Principal": {"Service": "events.amazonaws.com"}, "Resource": "*"}
TOPICS = {**SENDS, "Principal": {"Service": "sns.amazonaws.com"}, "Resource": "*"}


def both(*changes: Change) -> Change:
    return lambda world: [change(world) for change in changes]


def first(kind: str, change: Callable[[Item], object]) -> Change:
    return lambda world: change(world.kinds[kind][0])


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


def rule(**detail: Any) -> Change:
    return lambda world: world.rules.__setitem__(0, {**RULE, "detail": detail})


def members(**said: Any) -> Change:
    """Say something of the instance of the first group."""

    def made(world: World) -> None:
        name = min(world.groups)
        instance = next(i for i, group in world.member_of.items() if group == name)
        world.groups[name]["Instances"] = [{"InstanceId": instance, **said}]

    return made


def group_of(**said: Any) -> Change:
    return lambda world: world.groups[min(world.groups)].update(said)


def hooks(*given: Item) -> Change:
    return lambda world: world.hooks.__setitem__(min(world.groups), list(given))


def brief(**more: Any) -> Item:
    """Return a hook that somebody has for half a minute of his own."""
    return machines.hook(**{"LifecycleHookName": "ship-logs", "HeartbeatTimeout": 30, **more})


def topic(name: str, replicas: int | None = None, **config: Any) -> Change:
    item = {
        "metadata": meta(name, "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "spec": {"config": config, **({"replicas": replicas} if replicas else {})},
    }
    return lambda world: world.add("kafkatopics", item)


def scratch(world: World) -> None:
    """JBOD: a claim, and a second log directory that ends with the pod."""
    for each in world.kinds["pods"]:
        each["spec"]["volumes"].append({"name": "data-1", "emptyDir": {}})


def temporary(world: World) -> None:
    """What Strimzi gives every pod."""
    for each in world.kinds["pods"]:
        each["spec"]["volumes"].append({"name": "strimzi-tmp", "emptyDir": {"medium": "Memory"}})


def of_driver(driver: str, *, key: str = "topology.kubernetes.io/zone") -> Change:
    term = {"key": key, "operator": "In", "values": ["x"]}
    near = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}

    def made(world: World) -> None:
        every(world, "persistentvolumes", csi={"driver": driver}, nodeAffinity=near)

    return made


def deleted(kind: str) -> Change:
    return first(kind, lambda item: item["metadata"].update(deletionTimestamp="2026-11-01"))


def one_voter_short(world: World) -> None:
    world.kinds["pods"] = [
        p for p in world.kinds["pods"] if p["metadata"]["name"][-7:] != "votes-2"
    ]


def cron_job(image: str, **spec: Any) -> Change:
    job = workload("it", "ops", image)["spec"]["template"]
    item = {
        "metadata": meta("it", "ops"),
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": job}}, **spec},
    }
    return lambda world: world.add("cronjobs", item)


def deployment(image: str, **more: Any) -> Change:
    return lambda world: world.add("deployments", {**workload("it", "ops", image), **more})


def owned(image: str, api_version: str) -> Change:
    owner = {"apiVersion": api_version, "kind": "It", "name": "it", "uid": "0", "controller": True}

    def made(world: World) -> None:
        item = world.add("statefulsets", workload("it", "legacy", image))
        item["metadata"]["ownerReferences"] = [owner]

    return made


def without(image: str) -> Change:
    def made(world: World) -> None:
        world.kinds["deployments"] = [d for d in world.kinds["deployments"] if image not in str(d)]

    return made


def drains_by(image: str) -> Change:
    return lambda world: (without("termination-handler")(world), deployment(image)(world))


def cleaner_status(**status: Any) -> Change:
    def made(world: World) -> None:
        for each in world.kinds["deployments"]:
            if "drain-cleaner" in str(each["metadata"]["name"]):
                each["status"] = status

    return made


def unanswered(world: World) -> None:
    """Drain Cleaner scaled to none: its webhook and Service are there, and pass what they get."""
    for each in world.kinds["deployments"]:
        if "drain-cleaner" in str(each["metadata"]["name"]):
            each["spec"]["replicas"] = 0
    world.kinds["answering"] = []


def webhook_for(namespace: str) -> Change:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}

    def made(world: World) -> None:
        named = {"kubernetes.io/metadata.name": "shop-kafka"}
        world.only("namespaces")["metadata"]["labels"] = named
        (webhook,) = world.only("validatingwebhookconfigurations")["webhooks"]
        webhook["namespaceSelector"] = selector

    return made


def policy_engine(*, service: bool) -> Change:
    """Kyverno for everything, subresources too."""

    def made(world: World) -> None:
        if service:
            world.add("services", {"metadata": meta("kyverno", "ops"), "spec": {}})
        webhook = {
            "name": "validate.kyverno.svc",
            "failurePolicy": "Fail",
            "rules": [{"resources": ["*/*"], "operations": ["*"]}],
            "clientConfig": {"service": {"namespace": "ops", "name": "kyverno"}},
        }
        item = {"metadata": meta("kyverno"), "webhooks": [webhook]}
        world.add("validatingwebhookconfigurations", item)

    return made


def namespace_from(source: Item) -> Change:
    given = [{"name": "STRIMZI_NAMESPACE", "valueFrom": source}]
    return container_of("strimzi/operator", lambda c: c.update(env=given))


def refreshing(status: str) -> Change:
    return lambda world: world.refreshes.update({min(world.groups): [{"Status": status}]})


def scheduled(code: str, description: str = "soon") -> Change:
    at = datetime(2026, 12, 1, 4, 30, tzinfo=UTC)
    event = {"Code": code, "Description": description, "NotBefore": at}
    return lambda world: world.events.update({min(world.instances): [event]})


def racked(key: str) -> Change:
    return lambda world: kafka_spec(world).update(rack={"topologyKey": key})


def apart(key: str) -> Change:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"podAntiAffinity": {required: [{"topologyKey": key, "labelSelector": ALIKE}]}}
    return lambda world: every(world, "pods", affinity=affinity)


def spread(key: str) -> Change:
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    strict = [{**rule, "labelSelector": ALIKE}]
    return lambda world: every(world, "pods", affinity={}, topologySpreadConstraints=strict)


SHARES = {"OnDemandBaseCapacity": 2, "OnDemandPercentageAboveBaseCapacity": 0}
on_demand_base = at("groups.*.MixedInstancesPolicy", {"InstancesDistribution": SHARES})


def queue(**said: Any) -> Change:
    return lambda world: world.queue_attributes.update(said)


NODE = "node-of-orders-mains-0"
# What a VPC without a way to the internet has, for nodes and for the roles of pods.
PRIVATE = ("ec2", "ecr.api", "ecr.dkr", "s3", "sts")


def operator(image: str, **env: str) -> Change:
    return at("deployments.0", workload("strimzi-cluster-operator", "ops", image, **env))


def served(**versions: str) -> Change:
    """Serve Strimzi's resources (`kafka`) and its pod sets (`core`) in one version alone."""
    return lambda world: world.versions.update(
        {f"{group}.strimzi.io": version for group, version in versions.items()}
    )


def kubernetes(version: str) -> Change:
    return both(
        at("around.cluster.version", version), at("around.versions.0.clusterVersion", version)
    )


def image_of_one(image: str) -> Change:
    return at("pods.0.spec.containers.0.image", image)


def neighbour(*, grace: int = 30, owner: str | None = "ReplicaSet", **more: Any) -> Change:
    """Put a pod of somebody else beside the first broker."""
    owners = [{"kind": owner, "name": "it", "controller": True}] if owner else []
    item = {
        "metadata": meta(
            "web-0",
            "shop",
            labels={"app": "web", **more.pop("labels", {})},
            ownerReferences=owners,
            annotations=more.pop("annotations", {}),
        ),
        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": grace, "containers": []},
        "status": more,
    }
    return lambda world: world.add("neighbours", item)


def their_budget(name: str = "web", *, expected: int, desired: int, allowed: int) -> Change:
    item = {
        "metadata": meta(name, "shop"),
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {
            "observedGeneration": 1,
            "expectedPods": expected,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
        },
    }
    return lambda world: world.add("poddisruptionbudgets", item)


def webhook(group: str, resource: str, *operations: str, **more: Any) -> Change:
    """Ask somebody whose Service is gone."""
    rule = {"apiGroups": [group], "resources": [resource], "operations": list(operations)}
    kind = more.pop("kind", "validatingwebhookconfigurations")
    scope = more.pop("scope", None)
    hook = {
        "name": "it.example.io",
        "rules": [rule | ({"scope": scope} if scope else {})],
        "clientConfig": {"service": {"namespace": "ops", "name": "gone"}},
        **more,
    }
    item = {"metadata": meta("it"), "webhooks": [hook]}
    return lambda world: world.add(kind, item)


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

    def made(world: World) -> None:
        world.add(
            "validatingadmissionpolicies",
            {
                "metadata": meta("it"),
                "spec": {"matchConstraints": matching},
                "status": {"typeChecking": checked},
            },
        )
        bound = {"policyName": "it", "validationActions": list(actions)}
        world.add("validatingadmissionpolicybindings", {"metadata": meta("it"), "spec": bound})

    return made


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


blackhole = at("routes.b.-1.State", "blackhole")


def nat_gone(world: World) -> None:
    del world.nats["nat-c"]


# As people save: all zones by the NAT gateway of the first.
one_nat = at("routes.*.-1.NatGatewayId", "nat-a")


def routed_to(**target: str) -> Change:
    return at("routes.*.-1", {"DestinationCidrBlock": "0.0.0.0/0", "State": "active", **target})


# Keys and what templates name.
KEY = "arn:aws:kms:eu-north-1:111122223333:key/0a1b"


def keyed(key: str = KEY, **said: Any) -> Change:
    """Encrypt the first broker's disk under a key of which something is said."""

    disks = {"vol-data-orders-mains-0": {"KmsKeyId": key}}
    return both(at("around.disks", **disks), lambda world: world.key.update(said))


def template_keyed(*users: str, grants: tuple[str, ...] = (), **said: Any) -> Change:
    disks = [{"Ebs": {"KmsKeyId": KEY, "Encrypted": True}}]

    def made(world: World) -> None:
        template(BlockDeviceMappings=disks)(world)
        world.key.update(said)
        allowed = {"Effect": "Allow", "Principal": {"AWS": list(users)}, "Action": "kms:*"}
        world.key_policy["Statement"].append(allowed)
        world.grants += [{"GranteePrincipal": each} for each in grants]

    return made


def vanished(name: str, **named: Any) -> Change:
    """Let a template name something that is gone."""

    def made(world: World) -> None:
        template(**named)(world)
        world.vanished.add(name)

    return made


def role(name: str | None, *, mode: str, known: tuple[str, ...] = (), mapped: str = "") -> Change:
    """Let templates name an instance profile, and the cluster know some roles."""

    def made(world: World) -> None:
        template(IamInstanceProfile={"Arn": "arn:aws:iam::1:instance-profile/eks/nodes"})(world)
        world.roles = {"nodes": name} if name else {}
        world.entries = list(known)
        world.around.cluster["accessConfig"] = {"authenticationMode": mode}
        roles = f"- rolearn: arn:aws:iam::1:role/{mapped}\n" if mapped else ""
        world.add("configmaps", {"metadata": meta("aws-auth"), "data": {"mapRoles": roles}})

    return made


def launching(**more: Any) -> Change:
    usual = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}
    return lambda world: world.hooks[min(world.groups)].append(hook(**usual, **more))


def endpoint_of_api_server(*, private: bool) -> Change:
    given = {"endpointPrivateAccess": private}
    return lambda world: world.around.cluster.update(resourcesVpcConfig=given)


def of_ecr(refused: str = "", *, cached: str = "", account: str = "111122223333") -> Change:
    """Let all pods run an image of ECR's, whose registry may refuse it."""
    image = f"{account}.dkr.ecr.eu-north-1.amazonaws.com/strimzi/kafka:1.2.0-kafka-4.3.1"

    def made(world: World) -> None:
        for each in world.kinds["pods"]:
            each["spec"]["containers"][0]["image"] = image
        world.registries = {account: refused} if refused else {}
        world.cached = [cached] if cached else []

    return made


def checked_disk(status: str, name: str, said: str) -> Change:
    item = {
        "VolumeId": "vol-data-orders-mains-0",
        "VolumeStatus": {"Status": status, "Details": [{"Name": name, "Status": said}]},
    }
    return lambda world: world.checked.append(item)


def snapshots(count: int) -> Change:
    item = {"VolumeId": "vol-data-orders-mains-0", "State": "pending"}
    return lambda world: world.snapshots.extend([item] * count)


# Ways in.
def listener(kind: str, **more: Any) -> Change:
    made = {"name": "out", "port": 9094, "type": kind, "tls": True, **more}
    made.setdefault("authentication", {"type": "tls"})
    return lambda world: kafka_spec(world)["listeners"].append(made)


def proxy(image: str, *args: str, replicas: int = 2, **status: Any) -> Change:
    def made(world: World) -> None:
        item = world.add("deployments", workload("proxy", "edge", image, *args))
        item["spec"]["replicas"] = replicas
        item["status"] = status

    return made


def strimzis_service(kind: str) -> Change:
    item = {
        "metadata": meta("orders-mains-0", "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "spec": {"type": kind, "selector": {"strimzi.io/name": "orders-kafka"}, "ports": []},
    }
    return lambda world: world.add("services", item)


# Sizes, meshes, machines.
def scaler(kind: str, target: str, namespace: str, least: int = 3, most: int = 9) -> Change:
    item = {
        "metadata": meta("it", namespace),
        "spec": {
            "scaleTargetRef": {"kind": kind, "name": target},
            "minReplicas": least,
            "maxReplicas": most,
        },
    }
    return lambda world: world.add("horizontalpodautoscalers", item)


def meshed(**labels: str) -> Change:
    """Label Kafka's namespace (an _ for a -, two for a /), in a cluster with Istio's injector."""
    given = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}

    def made(world: World) -> None:
        world.only("namespaces")["metadata"].update(labels=given)
        world.add(
            "mutatingwebhookconfigurations", {"metadata": meta("istio-sidecar-injector-1-27")}
        )

    return made


without_injector = at("mutatingwebhookconfigurations", [])


def sidecar(*, native: bool = False) -> Change:
    proxied = {"name": "istio-proxy", "image": "istio/proxyv2:1.27.0"}

    def made(world: World) -> None:
        for each in world.kinds["pods"]:
            where = each["spec"].setdefault("initContainers" if native else "containers", [])
            where.append(copy.deepcopy(proxied))

    return made


def pods_labelled(**labels: str) -> Change:
    given = {key.replace("__", "/"): value for key, value in labels.items()}
    return at("pods.*.metadata.labels", **given)


def profile(namespace: str, **labels: str) -> Change:
    given = {key.replace("__", "/"): value for key, value in labels.items()}
    return lambda world: world.profiles.update(
        all=[{"namespace": namespace, **({"labels": given} if given else {})}]
    )


def tagged(**tags: str) -> Change:
    given = [{"Key": key.replace("_", " "), "Value": value} for key, value in tags.items()]
    return lambda world: [each.update(Tags=given) for each in world.instances.values()]


def system(image: str) -> Change:
    return at("nodes.*.status.nodeInfo", {"osImage": image})


CLAIMED = {"id": 0, "type": "persistent-claim", "deleteClaim": True}
deletes_claims = at("kafkanodepools.*.spec.storage", {"type": "jbod", "volumes": [CLAIMED]})
