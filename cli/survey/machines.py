"""Reads nodes, Karpenter's pools, images that ECR has no more, and the pods of Kafkas."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError

from cli.aws import pages
from cli.survey.tools import (
    annotations_of,
    controller_of,
    custom,
    going,
    is_condition,
    is_ready,
    items,
    labels,
    name_of,
    reason_of,
    status_of,
    variable,
)
from core.ground.errors import one_line
from core.ground.placement import (
    HOST,
    NODE_NAME,
    REQUIRED,
    VOLUME_SLOTS,
    allocatable_of,
    heap,
    is_selected,
    needs_of,
    placement_of,
    quantity,
    requirements,
    taints_of,
)
from core.incidents.observation import ignores_disruption
from core.model.kafka import Pod
from core.model.nodes import EBS_DRIVERS, Node, NodeBudget, NodeClass, NodePool, VolumeSlots
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
                written=str(each.get("nodes", "10%")), reasons=frozenset(each.get("reasons") or ())
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


ZONES = ("topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone")
# Pods of Strimzi's Kafkas; of these its name label tells Kafka from ZooKeeper and the operators.
# The component label came with node pools, and is not on older pods.
PODS = "strimzi.io/kind=Kafka"
NAME = re.compile(r".+-kafka")
# What Strimzi calls the log directories of a pod, one or several of them (JBOD).
DATA = re.compile(r"data(-\d+)?")
# A shell's word for waiting; and a command that does nothing else.
SLEEP = re.compile(r"\bsleep (\d+)")
SLEPT = re.compile(r"((/bin/)?(ba)?sh -c )?(/bin/)?sleep \d+")
# What a container may have beside what it is given, at Pod Security's level `baseline`.
CAPABILITIES = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}
# What the VPC resource controller adds to pods that a SecurityGroupPolicy selects.
OWN_INTERFACE = "vpc.amazonaws.com/pod-eni"
# Containers of service meshes; as init containers that restart they end after Kafka's.
PROXIES = ("istio-proxy", "linkerd-proxy")
PROBES = {"tcpSocket": "port", "exec": "command", "httpGet": "http", "grpc": "grpc"}
# It asks for a Java process, and has its answer during log recovery too.
STRIMZIS_LIVENESS = ["/opt/kafka/kafka_liveness.sh"]
DEFAULT_SCHEDULER = (None, "default-scheduler")
CONTAINER, HEAP_OPTIONS = "kafka", "KAFKA_HEAP_OPTS"


def pods(api: Api, namespace: str | None) -> tuple[Pod, ...]:
    return tuple(
        strimzis_pod(item)
        for item in items(api, "/api/v1", "pods", namespace, labelSelector=PODS)
        if NAME.fullmatch(labels(item).get("strimzi.io/name", "")) and not has_ended(item)
    )


def has_ended(pod: Object) -> bool:
    """Say whether a pod has ended for good, such as one that the kubelet evicted."""
    return status_of(pod).get("phase") in {"Succeeded", "Failed"}


def strimzis_pod(item: Object) -> Pod:
    """Return a pod that says by its labels what it is."""
    labelled = labels(item)
    main: Object = next((c for c in item["spec"]["containers"] if c.get("name") == CONTAINER), {})
    return pod_of(
        item,
        main,
        kafka=labelled.get("strimzi.io/cluster", ""),
        # Without the label it is a broker, as before there were roles.
        broker=labelled.get("strimzi.io/broker-role", "true") == "true",
        controller=labelled.get("strimzi.io/controller-role") == "true",
    )


def pod_of(item: Object, main: Object, *, kafka: str, broker: bool, controller: bool) -> Pod:
    """Return a pod of a Kafka, of which `main` is Kafka's own container."""
    metadata, spec, labelled = item["metadata"], item["spec"], labels(item)
    claims = (each.get("persistentVolumeClaim") for each in spec.get("volumes") or ())
    status = status_of(item)
    slept, odd = _pre_stop(main)
    return Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        kafka=kafka,
        broker=broker,
        controller=controller,
        node=spec.get("nodeName"),
        ready=is_ready(item),
        leaving=going(item),
        owner=controller_of(item),
        grace_seconds=int(spec.get("terminationGracePeriodSeconds", 30)),
        image=str(main.get("image") or ""),
        labels=labelled,
        annotations=annotations_of(item),
        readiness_gates=frozenset(g["conditionType"] for g in spec.get("readinessGates") or ()),
        claims=tuple(str(claim["claimName"]) for claim in claims if claim),
        scratch=tuple(
            str(each["name"])
            for each in spec.get("volumes") or ()
            if "emptyDir" in each and DATA.fullmatch(str(each["name"]))
        ),
        alone_on_its_node=_forbids_neighbours(spec, labelled) or _holds_port(spec, main),
        ignores_disruption=ignores_disruption(item),
        wants=placement_of(spec),
        requests=needs_of(item).requests,
        quality=status.get("qosClass"),
        heap_bytes=heap(variable(main, HEAP_OPTIONS)),
        memory_bytes=quantity(((main.get("resources") or {}).get("limits") or {}).get("memory")),
        out_of_memory=any(
            ((each.get("lastState") or {}).get("terminated") or {}).get("reason") == "OOMKilled"
            for each in status.get("containerStatuses") or ()
        ),
        priority=int(spec.get("priority") or 0),
        scheduler=None if (by := spec.get("schedulerName")) in DEFAULT_SCHEDULER else by,
        unrestricted=tuple(sorted(set(_restricted_violations(spec)))),
        unlawful=tuple(sorted(set(_unlawful(spec)))),
        own_interface=any(
            OWN_INTERFACE in ((each.get("resources") or {}).get("limits") or {})
            for each in spec["containers"]
        ),
        proxies=tuple(
            str(each["name"]) for each in spec["containers"] if each.get("name") in PROXIES
        ),
        native_proxy=any(each.get("name") in PROXIES for each in spec.get("initContainers") or ()),
        outside_meshes=_is_outside_meshes(labelled, annotations_of(item)),
        readiness=_asked_by(main.get("readinessProbe")),
        **_liveness(main),
        pre_stop_seconds=slept,
        pre_stop_odd=odd,
    )


def _is_outside_meshes(labelled: Mapping[str, str], noted: Mapping[str, str]) -> bool:
    said = {**noted, **labelled}
    return (
        said.get("sidecar.istio.io/inject") == "false"
        or said.get("linkerd.io/inject") == "disabled"
    )


def _asked_by(probe: Object | None) -> str:
    return next(
        (word for key, word in PROBES.items() if (probe or {}).get(key) is not None), "none"
    )


def _liveness(container: Object) -> dict[str, Any]:
    """Return what ends a container that starts: its startup probe, or else its liveness probe."""
    probe = container.get("startupProbe") or container.get("livenessProbe")
    if not probe or probe.get("exec", {}).get("command") == STRIMZIS_LIVENESS:
        return {}
    threshold, period = int(probe.get("failureThreshold", 3)), int(probe.get("periodSeconds", 10))
    wait = int(probe.get("initialDelaySeconds", 0)) + period * threshold
    return {"liveness": _asked_by(probe), "liveness_seconds": wait}


def _pre_stop(container: Object) -> tuple[int, bool]:
    """Return how long a preStop hook sleeps, and whether it does anything else."""
    hook = (container.get("lifecycle") or {}).get("preStop") or {}
    if "sleep" in hook:
        return int((hook["sleep"] or {}).get("seconds") or 0), False
    written = " ".join(str(each) for each in (hook.get("exec") or {}).get("command") or ())
    found = [int(seconds) for seconds in SLEEP.findall(written)]
    only = bool(SLEPT.fullmatch(written.strip()))
    return sum(found), bool(hook) and not only


def _restricted_violations(spec: Object) -> Iterator[str]:
    """Yield what Pod Security's level `restricted` refuses of a pod, as far as Kafka's may have it.

    Source: Kubernetes' Pod Security Standards.
    """
    whole = spec.get("securityContext") or {}
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        own = container.get("securityContext") or {}
        if own.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        if "ALL" not in ((own.get("capabilities") or {}).get("drop") or ()):
            yield "capabilities"
        if not own.get("runAsNonRoot", whole.get("runAsNonRoot")):
            yield "runAsNonRoot"
        seccomp = own.get("seccompProfile") or whole.get("seccompProfile") or {}
        if seccomp.get("type") not in {"RuntimeDefault", "Localhost"}:
            yield "seccompProfile"


def _unlawful(spec: Object) -> Iterator[str]:
    """Yield what Pod Security's level `baseline` refuses of a pod, from the same source."""
    yield from (key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key))
    if any("hostPath" in volume for volume in spec.get("volumes") or ()):
        yield "hostPath"
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        own = container.get("securityContext") or {}
        if own.get("privileged"):
            yield "privileged"
        if any(port.get("hostPort") for port in container.get("ports") or ()):
            yield "hostPort"
        if set((own.get("capabilities") or {}).get("add") or ()) - CAPABILITIES:
            yield "capabilities"


def _forbids_neighbours(spec: Object, labelled: Mapping[str, str]) -> bool:
    """Say whether a rule forbids a second pod like this one on its node."""
    affinity = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    strict = (
        each
        for each in spec.get("topologySpreadConstraints") or ()
        if each.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        and int(each.get("maxSkew", 1)) == 1
    )
    # Two that may not share a zone share no node of it either; a spread over zones allows both.
    return any(
        each.get("topologyKey") in {HOST, *ZONES} and _itself(each, labelled)
        for each in affinity.get(REQUIRED) or ()
    ) or any(each.get("topologyKey") == HOST and _itself(each, labelled) for each in strict)


def _holds_port(spec: Object, main: Object) -> bool:
    """Say whether a pod takes a port of its machine's, which a second one like it cannot have."""
    ports = main.get("ports") or ()
    return any(each.get("hostPort") for each in ports) or bool(spec.get("hostNetwork") and ports)


def _itself(rule: Object, labelled: Mapping[str, str]) -> bool:
    """Say whether a rule is about pods like this one; without a selector it is about none."""
    return is_selected(labelled, rule.get("labelSelector"))
