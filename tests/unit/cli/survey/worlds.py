"""Clusters of other people as their API server and AWS answer: healthy, to be made theirs."""

import copy
from collections.abc import Callable
from typing import Any

from infra.eks.api import Api, ApiError
from tests.unit.cli.survey.around import TARGET_GROUP, Around, AwsAnswers
from tests.unit.cli.survey.manifests import Item, meta, service_of, storage_class, workload

ZONES = ("eu-north-1a", "eu-north-1b", "eu-north-1c")
QUEUE_URL = "https://sqs.eu-north-1.amazonaws.com/111122223333/Drains"
QUEUE_POLICY = {
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
            "Action": "sqs:SendMessage",
            "Resource": "*",
        }
    ]
}
RULE = {"source": ["aws.autoscaling"], "detail-type": ["EC2 Instance-terminate Lifecycle Action"]}
PREFERRED = {
    "kafka.strimzi.io": "v1",
    "core.strimzi.io": "v1",
    "karpenter.sh": "v1",
    "elbv2.k8s.aws": "v1beta1",
    "kafka.banzaicloud.io": "v1beta1",
    "admissionregistration.k8s.io": "v1",
}
ANSWERING: Item = {
    "metadata": {"name": "it"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
NTH = {
    "ENABLE_SQS_TERMINATION_DRAINING": "true",
    "QUEUE_URL": QUEUE_URL,
    "NODE_TERMINATION_GRACE_PERIOD": "1200",
    "CHECK_TAG_BEFORE_DRAINING": "false",
}


class World(AwsAnswers, Api):
    """An API server and an AWS account that hold what somebody else made."""

    def __init__(self) -> None:
        Api.__init__(self, "https://unused.example", None)
        AwsAnswers.__init__(self)
        self.kinds: dict[str, list[Item]] = {}
        self.versions = dict(PREFERRED)
        self.groups: dict[str, Item] = {}
        self.hooks: dict[str, list[Item]] = {}
        self.policies: dict[str, list[Item]] = {}
        self.actions: dict[str, list[Item]] = {}
        self.instances: dict[str, Item] = {}
        self.member_of: dict[str, str] = {}
        self.node_groups: dict[str, Item] = {}
        self.rules: list[Item] = [RULE]
        # What AWS has scheduled, by instance.
        self.events: dict[str, list[Item]] = {}
        self.refreshes: dict[str, list[Item]] = {}
        self.kept_seconds = 3600
        # Of the rules' target, beside its ARN.
        self.target: Item = {}
        # Also of the queue; a policy as what it says.
        self.queue_attributes: Item = {"Policy": QUEUE_POLICY}
        self.refused: set[str] = set()
        # By instance, what EC2 checks of it.
        self.impaired: dict[str, Item] = {}
        # Kinds that are served in one version alone.
        self.only_in: dict[str, str] = {}
        self.around = Around()
        self.template: Item | None = {"MetadataOptions": {"HttpTokens": "required"}}
        self.launch_configurations: list[Item] = []
        self.modifications: list[Item] = []
        self.activities: list[Item] = []
        # Whoever stands behind a Service, in whichever namespace.
        self.answering = [ANSWERING]
        # Pods of Kafkas that are not Strimzi's.
        self.beside: list[Item] = []

    def add(self, kind: str, item: Item) -> Item:
        self.kinds.setdefault(kind, []).append(item)
        return item

    def only(self, kind: str) -> Item:
        (item,) = self.kinds[kind]
        return item

    def _request(self, method: str, path: str, *given: Any, **named: Any) -> Item:
        assert method == "GET"
        kind = path.rpartition("/")[2]
        if kind in self.refused:
            raise ApiError(403, "Forbidden", f"GET {path} was refused (403)")
        parts = path.strip("/").split("/")
        if parts[0] == "apis" and len(parts) == 2:
            if parts[1] not in self.versions:
                raise ApiError(404, "NotFound", f"GET {path} was refused (404)")
            names = [self.versions[parts[1]], *self.only_in.values()]
            served = [{"groupVersion": f"{parts[1]}/{name}", "version": name} for name in names]
            return {"preferredVersion": served[0], "versions": served}
        if self.only_in.get(kind, path.split("/")[3]) != path.split("/")[3]:
            raise ApiError(404, "NotFound", f"GET {path} was refused (404)")
        if len(parts) >= 2 and parts[-2] in {"services", "configmaps"}:
            for each in self.kinds.get(parts[-2], ()):
                if each["metadata"]["name"] == kind:
                    return each
            raise ApiError(404, "NotFound", f"GET {path} was refused (404)")
        found = self._pods(given) if kind == "pods" else self.kinds.get(kind, [])
        if "namespaces" in parts[:-1] and found is not self.answering:
            where = parts[parts.index("namespaces") + 1]
            found = [each for each in found if each["metadata"].get("namespace") == where]
        return {"items": found, "metadata": {}}

    def _pods(self, given: Any) -> list[Item]:
        """Return pods of a selector: Strimzi's, or others'; without one all there are."""
        selector = str((given[1] if len(given) > 1 else {}).get("labelSelector") or "")
        mine = self.kinds.get("pods", [])
        if not selector:
            return [*mine, *self.beside, *self.kinds.get("neighbours", ())]
        return mine if "strimzi.io" in selector else self._chosen(selector)

    def _chosen(self, selector: str) -> list[Item]:
        """Return pods of Kafkas that are not Strimzi's, or whoever answers behind a Service."""
        mine = [pod for pod in self.beside if chosen_by(pod, selector.split(","))]
        if mine or selector.startswith("kafka_cr="):
            return mine
        return self.kinds.get("answering", self.answering)


Change = Callable[[World], object]


def at(path: str, value: Any = None, **said: Any) -> Change:
    """Let a value stand at a path of the world or of what its API server has: `pods.*.spec.x`.

    Without a value, more is said of whatever stands there. `first` is a mapping's smallest key.
    """

    def made(world: World) -> None:
        steps = path.split(".")
        for place in _places(_root(world, path), steps if said else steps[:-1]):
            if said:
                place.update(copy.deepcopy(said))
            else:
                place[_key(place, steps[-1])] = copy.deepcopy(value)

    return made


def more(path: str, *items: Any) -> Change:
    """Let more stand in every list at such a path."""

    def made(world: World) -> None:
        for place in _places(_root(world, path), path.split(".")):
            place.extend(copy.deepcopy(items))

    return made


def _root(world: World, path: str) -> Item:
    return vars(world) if path.partition(".")[0] in vars(world) else world.kinds


def _places(whole: Any, path: list[str]) -> list[Any]:
    found = [whole]
    for step in path:
        if step == "*":
            held = (place if isinstance(place, list) else place.values() for place in found)
            found = [each for place in held for each in place]
        else:
            found = [place[_key(place, step)] for place in found]
        found = [each if isinstance(each, dict | list) else vars(each) for each in found]
    return found


def _key(place: Any, step: str) -> Any:
    return int(step) if isinstance(place, list) else min(place) if step == "first" else step


def chosen_by(pod: Item, pairs: list[str]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(f"{pair}" in {f"{k}={v}" for k, v in labels.items()} for pair in pairs)


def bare(*, version: str = "v1") -> World:
    """Return a Kafka of three brokers and three controllers, on nodes that nobody owns yet."""
    world = World()
    world.versions["kafka.strimzi.io"] = version
    world.add("kafkas", kafka("orders", "shop-kafka"))
    for name, role in (("mains", "broker"), ("votes", "controller")):
        pool(world, "orders", "shop-kafka", name, roles=(role,))
    world.add("namespaces", {"metadata": meta("shop-kafka")})
    world.add("storageclasses", storage_class("fast"))
    budget(world, "orders", "shop-kafka", minAvailable=5)
    world.add(
        "deployments", workload("strimzi-cluster-operator", "ops", "quay.io/strimzi/operator:1.2.0")
    )
    # Strimzi's own per Kafka, which run its operator's image and its Kafka's.
    for part, image in (("entity-operator", "operator:1.2.0"), ("kafka-exporter", "kafka:4.3.1")):
        beside = workload(f"orders-{part}", "shop-kafka", f"quay.io/strimzi/{image}")
        labels = {"strimzi.io/cluster": "orders", "strimzi.io/name": f"orders-{part}"}
        beside["metadata"]["labels"] = {"strimzi.io/kind": "Kafka", **labels}
        world.add("deployments", beside)
    driver = "public.ecr.aws/eks/aws-ebs-csi-driver:v1.50"
    world.add("deployments", workload("ebs-csi-controller", "kube-system", driver))
    cleaner(world)
    return world


def kafka(name: str, namespace: str, **spec: Any) -> Item:
    return {
        "metadata": meta(name, namespace),
        "spec": {
            "kafka": {
                "rack": {"topologyKey": "topology.kubernetes.io/zone"},
                "listeners": [{"name": "tls", "port": 9093, "authentication": {"type": "tls"}}],
                "config": {"default.replication.factor": 3, "min.insync.replicas": 2},
                **spec,
            }
        },
    }


def pool(world: World, cluster: str, namespace: str, name: str, *, roles: tuple[str, ...]) -> None:
    """Add a node pool of three with its pods, claims and volumes, each on a node of its own."""
    labels = {"strimzi.io/cluster": cluster}
    spec = {"replicas": 3, "roles": list(roles)}
    world.add("kafkanodepools", {"metadata": meta(name, namespace, labels=labels), "spec": spec})
    for index, zone in enumerate(ZONES):
        pod = f"{cluster}-{name}-{index}"
        node(world, f"node-of-{pod}", zone, f"i-{pod}")
        world.add("pods", kafka_pod(pod, cluster, namespace, roles))
        claim(world, f"data-{pod}", namespace)


def kafka_pod(name: str, cluster: str, namespace: str, roles: tuple[str, ...]) -> Item:
    labels = {
        "strimzi.io/kind": "Kafka",
        "strimzi.io/cluster": cluster,
        "strimzi.io/name": f"{cluster}-kafka",
        **{f"strimzi.io/{r}-role": str(r in roles).lower() for r in ("broker", "controller")},
    }
    owner = {"apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet", "name": cluster}
    owner |= {"uid": "0", "controller": True}
    container = {
        "name": "kafka",
        "image": "quay.io/strimzi/kafka:1.2.0-kafka-4.3.1",
        "resources": {"requests": {"memory": "8Gi"}, "limits": {"memory": "8Gi"}},
    }
    alike = {"strimzi.io/cluster": cluster, "strimzi.io/name": f"{cluster}-kafka"}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": alike}}
    return {
        "metadata": meta(name, namespace, labels=labels, annotations={}, ownerReferences=[owner]),
        "spec": {
            "containers": [container],
            "nodeName": f"node-of-{name}",
            "terminationGracePeriodSeconds": 330,
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
            },
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def node(world: World, name: str, zone: str, instance: str) -> None:
    labels = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "eu-north-1"}
    provider = f"aws:///{zone}/{instance}"
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"providerID": provider}
    world.add("nodes", {"metadata": meta(name, labels=labels), "spec": spec, "status": ready})
    world.instances[instance] = {
        "InstanceId": instance,
        "Tags": [],
        "InstanceType": "r7g.large",
        "CpuOptions": {"CoreCount": 2, "ThreadsPerCore": 1},
        "SubnetId": f"subnet-{zone[-1]}",
        "PrivateDnsName": f"{name}.eu-north-1.compute.internal",
    }
    driver = {
        "name": "ebs.csi.aws.com",
        "nodeID": instance,
        "topologyKeys": ["topology.ebs.csi.aws.com/zone"],
        "allocatable": {"count": 25},
    }
    world.add("csinodes", {"metadata": meta(name), "spec": {"drivers": [driver]}})


def claim(world: World, name: str, namespace: str) -> None:
    alike = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    volume = {
        "persistentVolumeReclaimPolicy": "Retain",
        "capacity": {"storage": "500Gi"},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{name}"},
        **alike,
    }
    world.add("persistentvolumes", {"metadata": meta(f"pv-{name}"), "spec": volume})
    asked = {"resources": {"requests": {"storage": "500Gi"}}, "volumeName": f"pv-{name}", **alike}
    world.add("persistentvolumeclaims", {"metadata": meta(name, namespace), "spec": asked})


def budget(world: World, cluster: str, namespace: str, **spec: Any) -> Item:
    selector = {"matchLabels": {"strimzi.io/name": f"{cluster}-kafka"}}
    item = {"metadata": meta(f"{cluster}-kafka", namespace), "spec": {"selector": selector, **spec}}
    return world.add("poddisruptionbudgets", item)


def cleaner(world: World, **env: str) -> None:
    """Install Drain Cleaner with its webhook and Service; alone it denies."""
    image = "quay.io/strimzi/drain-cleaner:1.6.0"
    world.add("deployments", workload("strimzi-drain-cleaner", "ops", image, **env))
    service = {"namespace": "ops", "name": "strimzi-drain-cleaner"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"]}
    rule |= {"resources": ["pods/eviction"], "operations": ["CREATE"]}
    webhook = {
        "name": "drain-cleaner.strimzi.io",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "rules": [rule],
        "clientConfig": {"service": service},
    }
    world.add(
        "services", service_of("strimzi-drain-cleaner", "ops", {"app": "strimzi-drain-cleaner"})
    )
    item = {"metadata": meta("strimzi-drain-cleaner"), "webhooks": [webhook]}
    world.add("validatingwebhookconfigurations", item)


def bind(world: World, image: str, namespace: str, cluster: str) -> None:
    """Let a load balancer send clients to a Kafka's brokers, in a namespace with the label."""
    selector = {"strimzi.io/name": f"{cluster}-kafka", "strimzi.io/broker-role": "true"}
    world.add("services", service_of("boot", namespace, selector))
    spec = {
        "targetType": "ip",
        "targetGroupARN": TARGET_GROUP,
        "serviceRef": {"name": "boot", "port": 443},
    }
    world.add("targetgroupbindings", {"metadata": meta("boot", namespace), "spec": spec})
    world.add("deployments", workload("lbc", "kube-system", f"public.ecr.aws/eks/{image}"))
    for each in world.kinds["namespaces"]:
        if each["metadata"]["name"] == namespace:
            each["metadata"]["labels"] = {"elbv2.k8s.aws/pod-readiness-gate-inject": "enabled"}
