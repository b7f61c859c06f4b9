"""Reads the pods of Kafkas from an API server into core.model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cli.survey.listing import (
    annotations_of,
    controller_of,
    going,
    is_ready,
    items,
    labels,
    status_of,
    variable,
)
from core.ground.placement import HOST, REQUIRED, needs_of, placement_of
from core.ground.quantities import heap, quantity
from core.ground.selectors import is_selected
from core.incidents.observation import ignores_disruption
from core.model.kafka import Pod
from infra.eks.api import Api, Object

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
