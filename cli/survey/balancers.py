"""Reads who sends clients to Kafka's pods, and the controllers a broker needs to come back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from cli.survey.tools import (
    KNOWN_IMAGES,
    custom,
    down,
    flag,
    items,
    labels,
    name_of,
    one,
    running,
    setting,
    title_of,
    variable,
)
from core.checks.balancing import AUTO_MODE_LABEL, GATE_LABEL
from core.checks.facts import UNSET, TargetGroup
from core.ground.errors import StillwaterError
from core.model.workloads import (
    Balanced,
    BalancerController,
    Essential,
    IngressController,
    NodeProvisioner,
    SizeScaler,
    VolumeController,
)
from infra.eks.api import Api, Object

GATE_LABELS = (GATE_LABEL, AUTO_MODE_LABEL)
AUTO_MODE = "eks.amazonaws.com"
STRIMZI = "strimzi.io/cluster"
GROUPS = ("elbv2.k8s.aws", AUTO_MODE)


def balancer_controllers(found: Iterable[Object]) -> tuple[BalancerController, ...]:
    return tuple(
        BalancerController(
            title=title_of(item),
            version=str(container["image"]).partition("@")[0].rpartition("/")[2].partition(":")[2],
            limits_backoff=flag(container, "targetgroupbinding-max-exponential-backoff-delay")
            is not None,
            down=down(item),
        )
        for item, container in running(found, r"aws-load-balancer-controller")
    )


def read_balanced(api: Api, namespace: str | None) -> tuple[Balanced, ...]:
    """Return what binds targets to Services, and Services whose load balancer nobody binds."""
    found = [
        _binding(api, group, item)
        for group in GROUPS
        for item in custom(api, group, "targetgroupbindings", namespace)
    ]
    return (*(each for each, _ in found), *_unbound(api, namespace, {s for _, s in found}))


def _binding(api: Api, group: str, item: Object) -> tuple[Balanced, tuple[str, str]]:
    where, name = item["metadata"]["namespace"], item["spec"]["serviceRef"]["name"]
    service = one(api, f"/api/v1/namespaces/{where}/services/{name}") or {}
    made = Balanced(
        namespace=where,
        name=item["metadata"]["name"],
        selector=service.get("spec", {}).get("selector") or {},
        by_node=item["spec"].get("targetType") == "instance",
        of_auto_mode=group == AUTO_MODE,
        target_group=item["spec"].get("targetGroupARN") or item["spec"].get("targetGroupName"),
    )
    return made, (where, name)


def _unbound(api: Api, namespace: str | None, bound: set[tuple[str, str]]) -> Iterator[Balanced]:
    """Return Services of nodes' ports, by a load balancer or without, that nothing binds to pods.

    One of a class that is not AWS's is somebody else's, of whom nothing is known.
    """
    for item in items(api, "/api/v1", "services", namespace):
        spec, where = item.get("spec") or {}, str(item["metadata"].get("namespace"))
        name = name_of(item)
        if spec.get("type") not in {"LoadBalancer", "NodePort"} or (where, name) in bound:
            continue
        if not spec.get("loadBalancerClass"):
            selector = spec.get("selector") or {}
            yield Balanced(
                namespace=where,
                name=name,
                selector=selector,
                by_node=True,
                kind="Service",
                # Its brokers tell clients the address of their own node.
                own_port=spec["type"] == "NodePort" and STRIMZI in labels(item),
            )


def gated_namespaces(api: Api) -> dict[str, frozenset[str]]:
    found = {
        name_of(item): frozenset(key for key in GATE_LABELS if labels(item).get(key) == "enabled")
        for item in items(api, "/api/v1", "namespaces")
    }
    return {name: given for name, given in found.items() if given}


# Arguments that name a ConfigMap of ports: 9094 -> shop-kafka/orders-kafka-external:9094.
STREAMS = ("tcp-services-configmap", "configmap-tcp-services")
OWN_NAMESPACE = "$(POD_NAMESPACE)"


def ingress_controllers(api: Api, found: Iterable[Object]) -> tuple[IngressController, ...]:
    workloads = [*found]
    return tuple(
        IngressController(
            title=title_of(item),
            replicas=_pod_count(item),
            down=down(item),
            passes_tls=flag(container, argument) == "true" if argument else None,
            streams=_streams(api, item, container),
        )
        for image, argument in KNOWN_IMAGES["ingress_controllers"].items()
        for item, container in running(workloads, re.compile(image))
    )


def _streams(api: Api, item: Object, container: Object) -> frozenset[tuple[str, str]]:
    """Return the Services that a controller sends TCP ports to, by the ConfigMap it names."""
    named = next((given for each in STREAMS if (given := flag(container, each))), "")
    where, _, name = named.replace(OWN_NAMESPACE, item["metadata"]["namespace"]).partition("/")
    found = one(api, f"/api/v1/namespaces/{where}/configmaps/{name}") if name else None
    ports = ((found or {}).get("data") or {}).values()
    return frozenset(
        (space, service)
        for each in ports
        for space, _, service in (str(each).partition(":")[0].partition("/"),)
        if service
    )


def _pod_count(item: Object) -> int:
    """Return how many pods a workload has; a DaemonSet has one per node."""
    status, spec = item.get("status") or {}, item["spec"]
    return int(status.get("desiredNumberScheduled", spec.get("replicas", 1)))


def size_scalers(api: Api, namespace: str | None) -> tuple[SizeScaler, ...]:
    """Return autoscalers of pods with their targets: KEDA's make such ones too."""
    return tuple(
        SizeScaler(
            title=f"HorizontalPodAutoscaler {title_of(item)}",
            namespace=str(item["metadata"]["namespace"]),
            kind=str(item["spec"]["scaleTargetRef"]["kind"]),
            target=str(item["spec"]["scaleTargetRef"]["name"]),
            least=int(item["spec"].get("minReplicas", 1)),
            most=int(item["spec"]["maxReplicas"]),
        )
        for item in items(api, "/apis/autoscaling/v2", "horizontalpodautoscalers", namespace)
    )


GONE = "TargetGroupNotFound"
NETWORK = {"TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC"}
BY_BALANCER = "use_load_balancer_configuration"
CROSS_ZONE = "load_balancing.cross_zone.enabled"


def target_groups(client: Any, wanted: Iterable[str]) -> dict[str, TargetGroup]:
    """Return target groups by what their bindings call them; one that is gone is left out."""
    found = {called: _group(client, called) for called in sorted(wanted)}
    return {called: group for called, group in found.items() if group is not None}


def _group(client: Any, called: str) -> TargetGroup | None:
    key = "TargetGroupArns" if called.startswith("arn:") else "Names"
    try:
        # One by one: naming one that is gone would refuse the whole call.
        described = client.describe_target_groups(**{key: [called]})["TargetGroups"]
    except ClientError as error:
        if error.response["Error"]["Code"].startswith(GONE):
            return None
        raise
    if not described:
        return None
    group = target_group(client, described[0])
    return replace(group, cross_zone=_cross_zone(client, group))


def target_group(client: Any, item: Mapping[str, Any]) -> TargetGroup:
    """Return a target group, with its attributes as written."""
    answer = client.describe_target_group_attributes(TargetGroupArn=item["TargetGroupArn"])
    said = attributes(answer)
    return TargetGroup(
        name=str(item["TargetGroupName"]),
        balancers=tuple(str(arn) for arn in item.get("LoadBalancerArns") or ()),
        deregistration_seconds=int(said.get("deregistration_delay.timeout_seconds", "300")),
        connection_termination=said.get(
            "deregistration_delay.connection_termination.enabled", UNSET
        ),
        ends_unhealthy=said.get(
            "target_health_state.unhealthy.connection_termination.enabled", "true"
        )
        == "true",
        preserves_client_ip=said.get("preserve_client_ip.enabled") == "true",
        cross_zone=said.get(CROSS_ZONE, UNSET),
        dns_failover=said.get(
            "target_group_health.dns_failover.minimum_healthy_targets.count", UNSET
        ),
        network=item.get("Protocol") in NETWORK,
    )


def attributes(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that Elastic Load Balancing answers of one of its things."""
    return {pair["Key"]: pair["Value"] for pair in answer["Attributes"]}


def _cross_zone(client: Any, group: TargetGroup) -> str:
    """Return whether a group sends to all zones; where it leaves that, all its balancers must."""
    if group.cross_zone not in {UNSET, BY_BALANCER}:
        return group.cross_zone
    answers = (
        client.describe_load_balancer_attributes(LoadBalancerArn=arn) for arn in group.balancers
    )
    return str(all(attributes(each).get(CROSS_ZONE) == "true" for each in answers)).lower()


# Karpenter's own image, and the one of its first provider for AWS.
KARPENTER = re.compile(r"karpenter(-aws|/controller|-controller)?([:@]|$)")
# The VPC CNI's word for giving pods addresses of the subnets that ENIConfigs name.
CUSTOM_NETWORKING = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
# And for taking them by blocks of 16.
PREFIXES = "ENABLE_PREFIX_DELEGATION"


def node_provisioners(found: Iterable[Object]) -> tuple[NodeProvisioner, ...]:
    return tuple(
        NodeProvisioner(
            title=title_of(item),
            queue=_interruptions(item, container),
            down=down(item),
            repairs="NodeRepair=true" in variable(container, "FEATURE_GATES"),
        )
        for item, container in running(found, KARPENTER)
    )


def essentials(found: Iterable[Object]) -> tuple[Essential, ...]:
    return tuple(
        Essential(
            title=title_of(item),
            what=what,
            down=down(item),
            elsewhere=variable(container, CUSTOM_NETWORKING).lower() == "true",
            by_prefix=variable(container, PREFIXES).lower() == "true",
        )
        for image, what in KNOWN_IMAGES["essentials"].items()
        for item, container in running(found, rf"(^|/){image}([:@]|$)")
    )


def _interruptions(item: Object, container: Object) -> str | None:
    """Return the queue of a Karpenter; raise where its settings are not in its environment."""
    # It cannot run without: before 0.33 a ConfigMap had all of its settings.
    if not setting(container, "CLUSTER_NAME", ""):
        raise StillwaterError(f"the settings of {title_of(item)} are in another object")
    return setting(container, "INTERRUPTION_QUEUE", "") or None


def volume_controllers(found: Iterable[Object]) -> tuple[VolumeController, ...]:
    """Return installations of the part of EBS's driver that attaches: its provisioner is beside."""
    return tuple(
        VolumeController(title=title_of(item), down=down(item))
        for item, container in running(found, r"aws-ebs-csi-driver")
        # The part on every node only mounts.
        if (container.get("args") or [""])[0] != "node"
    )
