"""Reads nodes, Karpenter's pools and images that ECR has no more, and changes nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError

from cli.aws import pages
from cli.survey.listing import (
    annotations_of,
    custom,
    going,
    is_condition,
    is_ready,
    items,
    labels,
    name_of,
    reason_of,
    status_of,
)
from core.ground.errors import one_line
from core.ground.placement import NODE_NAME, VOLUME_SLOTS, allocatable_of, taints_of
from core.ground.quantities import quantity
from core.ground.selectors import requirements
from core.model.kafka import Pod
from core.model.nodes import (
    EBS_DRIVERS,
    Node,
    NodeBudget,
    NodeClass,
    NodePool,
    VolumeSlots,
)
from infra.eks.api import Api, Object

# Before NodePools there were Provisioners.
POOL_LABELS = ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")
# Karpenter's and EKS's label, and what people put on groups of their own.
SPOT = {
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "node.kubernetes.io/lifecycle": "spot",
    "lifecycle": "Ec2Spot",
}
# Taints by which Karpenter, Cluster Autoscaler and the termination handler mark a node they empty.
LEAVING = {
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    # Somebody has said that it does not run: its volumes are given to other nodes.
    "node.kubernetes.io/out-of-service",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "aws-node-termination-handler/rebalance-recommendation",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/spot-itn",
}
# The kubelet's conditions, then those of EKS's node monitoring agent.
AILING = {
    **dict.fromkeys(("DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable"), True),
    **dict.fromkeys(
        ("ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady"), False
    ),
}
# What NodePools start nodes by: Karpenter's, and Auto Mode's.
CLASSES = (
    ("karpenter.k8s.aws", "ec2nodeclasses", "EC2NodeClass"),
    ("eks.amazonaws.com", "nodeclasses", "NodeClass"),
)
# As in use1-az4, which is the same zone in every account; groups and subnets go by names.
ZONE_ID = re.compile(r"[a-z0-9-]+-az[0-9]+")
STORAGE = "/apis/storage.k8s.io/v1"
SINCE_FORCEFUL = "karpenter.sh/v1"


def nodes(api: Api, wanted: Iterable[Pod]) -> tuple[dict[str, Node], str | None, dict[str, Node]]:
    """Return the nodes that hold the pods, the region they say they are in, and the idle ones.

    Idle is a node of the labels that a pod asks for, where none of them is.
    """
    pods = tuple(wanted)
    names = {pod.node for pod in pods if pod.node}
    choosy = [pod.wants for pod in pods if pod.wants.labels or pod.wants.terms]
    found, idle = {}, {}
    regions: set[str] = set()
    for item in items(api, "/api/v1", "nodes"):
        name = item["metadata"]["name"]
        if any(wants.fits({**labels(item), NODE_NAME: name}) for wants in choosy):
            idle[name] = _node(item)
        if name in names:
            found[item["metadata"]["name"]] = _node(item)
            if region := labels(item).get("topology.kubernetes.io/region"):
                regions.add(str(region))
    return found, min(regions, default=None), {n: i for n, i in idle.items() if n not in names}


def slots(api: Api, names: Collection[str]) -> dict[str, VolumeSlots]:
    """Return the slots for EBS's volumes of some nodes, by what Kubernetes has attached."""
    held: dict[str, list[Object]] = {}
    for item in items(api, STORAGE, "volumeattachments"):
        if item["spec"]["attacher"] in EBS_DRIVERS:
            held.setdefault(item["spec"]["nodeName"], []).append(item)
    return {
        (name := name_of(item)): VolumeSlots(
            count=allocatable_of({}, driver)[VOLUME_SLOTS],
            attached=len(mine := held.get(name, [])),
            errors=tuple(error for each in mine for error in _attachment_errors(each)),
        )
        for item in items(api, STORAGE, "csinodes")
        for driver in item["spec"].get("drivers") or ()
        if driver["name"] in EBS_DRIVERS and name_of(item) in names
    }


def _attachment_errors(item: Object) -> Iterator[str]:
    volume = (item["spec"].get("source") or {}).get("persistentVolumeName")
    for key in ("attachError", "detachError"):
        if error := status_of(item).get(key):
            yield f"{volume}: {one_line(str(error.get('message') or 'no reason is given'))}"


def _node(item: Object) -> Node:
    marked = labels(item)
    # aws:///eu-north-1a/i-0123
    place, _, instance = str(item["spec"].get("providerID") or "").rpartition("/")
    ours = instance.startswith("i-")
    return Node(
        name=item["metadata"]["name"],
        zone=_zone(marked, place.rpartition("/")[2] if ours else ""),
        instance_id=instance if ours else None,
        node_pool=next((marked[key] for key in POOL_LABELS if key in marked), None),
        auto_mode=marked.get("eks.amazonaws.com/compute-type") == "auto",
        ready=is_ready(item),
        leaving=_leaving(item),
        ailments=tuple(sorted(k for k, ill in AILING.items() if is_condition(item, k, true=ill))),
        spot=any(marked.get(key) == value for key, value in SPOT.items()),
        labels=marked,
        annotations=annotations_of(item),
        taints=taints_of(item),
        allocatable=allocatable_of(item, None),
        version=_version(item),
        os_image=str((status_of(item).get("nodeInfo") or {}).get("osImage") or ""),
    )


def _zone(marked: Mapping[str, str], provided: str) -> str | None:
    """Return a node's zone: by its label, unless that is a zone's id, else as EC2 named it."""
    label = marked.get("topology.kubernetes.io/zone")
    if provided and isinstance(label, str) and ZONE_ID.fullmatch(label):
        return provided
    return label or provided or None


def _version(item: Object) -> str | None:
    """Return the major and minor version of a node's kubelet: v1.34."""
    written = (status_of(item).get("nodeInfo") or {}).get("kubeletVersion")
    return ".".join(str(written).split(".")[:2]) if written else None


def _leaving(item: Object) -> bool:
    """Say whether somebody has begun to empty a node, or left it so."""
    taints = {each.get("key") for each in item["spec"].get("taints") or ()}
    return bool(
        item["spec"].get("unschedulable")
        or item["metadata"].get("deletionTimestamp")
        or taints & LEAVING
    )


def node_pools(api: Api, nodes: Mapping[str, Node] | None = None) -> dict[str, NodePool]:
    """Return NodePools; of how many nodes one has, its status says most, else those with Kafka."""
    found = custom(api, "karpenter.sh", "nodepools", None)
    seen = Counter(node.node_pool for node in (nodes or {}).values())
    return {(name := name_of(i)): _node_pool(i, seen[name]) for i in found}


def _node_pool(item: Object, seen: int) -> NodePool:
    said = _node_count(item)
    held = seen if said is None else said
    disruption, template = item["spec"].get("disruption") or {}, item["spec"]["template"]["spec"]
    # Where it stands depends on the version; without it the resource's own default holds.
    expires = template.get("expireAfter") or disruption.get("expireAfter") or "720h"
    budgets = disruption.get("budgets", [{"nodes": "10%"}])
    grace, named = template.get("terminationGracePeriod"), template.get("nodeClassRef") or {}
    return NodePool(
        name=name_of(item),
        expire_after=None if expires == "Never" else str(expires),
        grace=None if grace is None else str(grace),
        consolidation=(
            "Never"
            if disruption.get("consolidateAfter") == "Never"
            else str(disruption.get("consolidationPolicy", "WhenEmptyOrUnderutilized"))
        ),
        budgets=tuple(
            NodeBudget(
                written=str(each.get("nodes", "10%")),
                reasons=frozenset(each.get("reasons") or ()),
            )
            for each in budgets
            # One with a schedule does not hold at every hour.
            if not each.get("schedule")
        ),
        forceful=item.get("apiVersion", SINCE_FORCEFUL) == SINCE_FORCEFUL,
        leaving=going(item),
        stuck=_launch_trouble(item),
        replicas=item["spec"].get("replicas"),
        nodes=held,
        requirements=requirements(template.get("requirements")),
        node_class=f"{named['kind']} {named.get('name')}" if named.get("kind") else None,
    )


def node_classes(api: Api) -> dict[str, NodeClass]:
    """Return the classes that say where and of what NodePools start nodes."""
    return {
        each.title: each
        for group, kind, title in CLASSES
        for each in (_node_class(title, item) for item in custom(api, group, kind, None))
    }


def _node_class(kind: str, item: Object) -> NodeClass:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    terms = (str(each.get("alias") or "") for each in spec.get("amiSelectorTerms") or ())
    options = spec.get("metadataOptions") or {}
    return NodeClass(
        title=f"{kind} {item['metadata']['name']}",
        subnets={str(each["id"]): str(each["zone"]) for each in status.get("subnets") or ()},
        not_ready=_unready(item),
        newest_image=next((each for each in terms if each.endswith("@latest")), None),
        metadata_open=options.get("httpTokens") == "optional"
        and options.get("httpEndpoint", "enabled") == "enabled",
    )


def _unready(item: Object) -> str | None:
    """Return why an object of Karpenter's says that it is not ready."""
    return reason_of(item, "Ready") if is_condition(item, "Ready", true=False) else None


def _node_count(item: Object) -> int | None:
    """Return how many nodes a pool has, as far as its status says."""
    status = status_of(item)
    said = status.get("nodes", (status.get("resources") or {}).get("nodes"))
    return None if said is None else int(said)


def _launch_trouble(item: Object) -> str | None:
    """Return why a pool starts no node."""
    status = status_of(item)
    if why := _unready(item):
        return f"it is not ready ({why})"
    used, held = status.get("resources") or {}, _node_count(item)
    for resource, written in (item["spec"].get("limits") or {}).items():
        most, now = quantity(written), quantity(used.get(resource)) or Decimal(0)
        if resource == "nodes":
            now = Decimal(held or 0)
        # A node more takes as much as one of those it has; a limit of 0 stops a pool.
        if most is not None and (now >= most or now + (now / held if held else 0) > most):
            taken = used.get(resource, held)
            return f"its limit of {resource} is {written}, of which {taken} is used"
    return None


# As in 111122223333.dkr.ecr.eu-north-1.amazonaws.com/strimzi/kafka:1.2.0-kafka-4.3.1.
IMAGE = re.compile(
    r"(\d{12})\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/"
    r"([^:@]+)(?::([^@]+))?(?:@(.+))?"
)
GONE = ("ImageNotFoundException", "RepositoryNotFoundException")
DENIED = "AccessDeniedException"


def lost_images(
    ecr: Any, images: Iterable[str], region: str | None, account: str | None
) -> frozenset[str]:
    """Return images of ECR's in a region that are not there, and that it fetches from nowhere."""
    named = {image: found for image in images if (found := IMAGE.fullmatch(image))}
    return frozenset(
        image
        for image, found in named.items()
        if found[2] == region and _is_lost(ecr, found, account)
    )


def _is_lost(ecr: Any, found: re.Match[str], account: str | None) -> bool:
    registry, name, tag, digest = found.group(1, 3, 4, 5)
    wanted = {"imageDigest": digest} if digest else {"imageTag": tag or "latest"}
    try:
        ecr.describe_images(registryId=registry, repositoryName=name, imageIds=[wanted])
    except ClientError as error:
        code = error.response["Error"]["Code"]
        # Another account shows its images to whoever may pull them, and not always their list.
        if code == DENIED and registry != account:
            return False
        if code not in GONE:
            raise
        return not _is_fetched(ecr, registry, name)
    return False


def _is_fetched(ecr: Any, registry: str, name: str) -> bool:
    """Say whether ECR fetches an image anew from another registry (a pull through cache)."""
    rules = pages(
        ecr, "describe_pull_through_cache_rules", "pullThroughCacheRules", registryId=registry
    )
    prefixes = [str(each["ecrRepositoryPrefix"]) for each in rules]
    return any(name.startswith(f"{prefix}/") or prefix == "ROOT" for prefix in prefixes)
