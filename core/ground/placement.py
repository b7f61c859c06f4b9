"""Judges whether the scheduler can place a pod on a node: taints, labels, neighbours, room.

Sources: the plugins of Kubernetes' scheduler (TaintToleration, NodeAffinity, InterPodAffinity,
NodeResourcesFit, NodeVolumeLimits) and how it adds up what a pod requests. Selectors and amounts
are read as Kubernetes and the JVM write them: 8Gi, 500m, 4e9; -Xmx6g.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One expression of a label selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Say whether labels meet it; one of an operator unknown here may mean anybody."""
        value = labels.get(self.key)
        if self.operator in {"Gt", "Lt"}:
            return value is not None and value.isdecimal() and self._compares(value)
        return {
            "In": value in self.values,
            "NotIn": value not in self.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }.get(self.operator, True)

    def _compares(self, value: str) -> bool:
        given, limit = int(value), int(next(iter(self.values)))
        return given > limit if self.operator == "Gt" else given < limit


def requirements(expressions: Iterable[Mapping[str, Any]] | None) -> tuple[Requirement, ...]:
    """Return expressions as Kubernetes writes them: of a selector, a node's labels or fields."""
    return tuple(
        Requirement(
            key=each["key"], operator=each["operator"], values=frozenset(each.get("values") or ())
        )
        for each in expressions or ()
    )


def selects(
    match_labels: Mapping[str, str], expressions: Iterable[Requirement], labels: Mapping[str, str]
) -> bool:
    """Say whether a label selector matches some labels.

    >>> selects({"app": "kafka"}, (), {"app": "kafka", "zone": "a"})
    True
    """
    return all(labels.get(key) == value for key, value in match_labels.items()) and all(
        each.met_by(labels) for each in expressions
    )


def is_selected(labels: Mapping[str, str], selector: Mapping[str, Any] | None) -> bool:
    """Say whether a selector as Kubernetes writes it takes some labels: none at all takes nobody.

    >>> is_selected({"app": "kafka"}, {}), is_selected({"app": "kafka"}, None)
    (True, False)
    """
    return selector is not None and selects(
        selector.get("matchLabels") or {}, requirements(selector.get("matchExpressions")), labels
    )


# As the API server takes it: 100Gi, 1e11, 107374182400000m.
QUANTITY = re.compile(r"\+?(\d+\.?\d*|\.\d+)(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?")
UNITS: dict[str, Decimal] = {
    **{f"{unit}i": Decimal(1024 ** (n + 1)) for n, unit in enumerate("KMGTPE")},
    **{unit: Decimal(1000 ** (n + 1)) for n, unit in enumerate("kMGTPE")},
    **{unit: Decimal(1000) ** -(n + 1) for n, unit in enumerate("mun")},
}
GIB_PER_TIB = 1024
HEAP = re.compile(r"-Xmx(\d+)([kKmMgGtT]?)")
JVM_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def quantity(written: object) -> Decimal | None:
    """Return an amount of Kubernetes', exactly, or None where it is none.

    >>> quantity("2Ki"), quantity("700m") == quantity("0.7"), quantity("100GiB")
    (Decimal('2048'), True, None)
    """
    found = QUANTITY.fullmatch(str(written))
    if found is None:
        return None
    amount, unit, exponent = found.groups()
    return Decimal(amount) * (UNITS[unit] if unit else Decimal(10) ** int(exponent or 0))


def heap(options: str) -> int | None:
    """Return the most bytes a JVM's options give its heap; the last one holds."""
    found = HEAP.findall(options)
    return int(found[-1][0]) * JVM_UNITS[found[-1][1].lower()] if found else None


Json = Mapping[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST, NODE_NAME = "kubernetes.io/hostname", "metadata.name"
HARD = frozenset({"NoSchedule", "NoExecute"})
# What the kubelet reports, and the taint that Kubernetes makes of it.
CONDITION_TAINTS = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
KUBERNETES_OWN = "node.kubernetes.io/"
UNSCHEDULABLE = f"{KUBERNETES_OWN}unschedulable"
# Attachments of EBS volumes, counted by the EBS driver's CSINode beside what the kubelet counts.
VOLUME_SLOTS = "volume attachment slots"
NONE, UNLIMITED = Decimal(0), Decimal("Infinity")
_OF_THE_POD = ("cpu", "memory")
_GIB = 1024**3
Amounts = Mapping[str, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """What keeps pods off a node that do not tolerate it."""

    key: str
    value: str = ""
    effect: str

    def __str__(self) -> str:
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """What a pod bears of a node: a taint's key, value and effect; None: any."""

    key: str | None
    value: str | None = None
    effect: str | None = None

    def bears(self, key: str, value: str, effect: str) -> bool:
        return (
            self.key in {None, key}
            and self.value in {None, value}
            and self.effect in {None, effect}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """On which nodes the scheduler may put a pod: by labels, and by taints that it tolerates."""

    labels: Mapping[str, str] = field(default_factory=dict)
    # A node fits that meets every requirement of one of these; None: any node does.
    terms: tuple[tuple[Requirement, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()

    def fits(self, labels: Mapping[str, str]) -> bool:
        return selects(self.labels, (), labels) and (
            self.terms is None or any(selects({}, term, labels) for term in self.terms)
        )

    def names(self, key: str) -> bool:
        """Say whether every node that fits must have a label of certain values."""
        return key in self.labels or (
            bool(self.terms)
            and all(
                any(r.key == key and r.operator == "In" for r in term) for term in self.terms or ()
            )
        )

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        return any(each.bears(key, value, effect) for each in self.tolerations)


ANYWHERE = Placement()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNeeds:
    """A pod as the scheduler sees it."""

    title: str = "the pod"
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    wants: Placement = ANYWHERE
    requests: Amounts = field(default_factory=dict)  # of each resource; a pod is one of `pods`
    priority: int = 0
    shuns: tuple[Json, ...] = ()  # its required anti-affinity terms that are about a node

    def shuns_pod(self, other: PodNeeds) -> bool:
        """Say whether a rule of this pod forbids another one on its node."""
        return any(self._is_about(term, other) for term in self.shuns)

    def _is_about(self, term: Json, other: PodNeeds) -> bool:
        named = term.get("namespaces") or ()
        chosen = term.get("namespaceSelector")
        # A selector of namespaces goes by labels that are not read here: it may mean this one.
        near = other.namespace in (named or (self.namespace,)) or chosen is not None
        return near and is_selected(other.labels, term.get("labelSelector"))


NOT_SAID = PodNeeds()


def barrier(
    name: str, labels: Mapping[str, str], taints: Iterable[Taint], wants: Placement
) -> str | None:
    """Return why a pod may not be on a node whatever room it has, as a predicate of the node."""
    for taint in taints:
        if taint.effect in HARD and not wants.tolerates(taint.key, taint.value, taint.effect):
            return f"has taint {taint}, which the pod does not tolerate"
    for key, value in wants.labels.items():
        if labels.get(key) != value:
            return f"lacks label {key}={value}, which the pod's nodeSelector asks for"
    if not wants.fits({**labels, NODE_NAME: name}):
        return "meets no term of the pod's required node affinity"
    return None


def shortage(
    pod: PodNeeds, allocatable: Amounts, tenants: Iterable[PodNeeds], attached: int
) -> str | None:
    """Return what a node lacks for one pod more, as a predicate of the node.

    A pod that ends counts until it has ended. One of lower priority makes room by being preempted.
    """
    staying = [each for each in tenants if each.priority >= pod.priority]
    for other in staying:
        if pod.shuns_pod(other) or other.shuns_pod(pod):
            return f"runs {other.title}, which a required anti-affinity keeps apart from the pod"
    taken = {**_sum(other.requests for other in staying), VOLUME_SLOTS: Decimal(attached)}
    for resource, asked in pod.requests.items():
        free = max(allocatable.get(resource, NONE) - taken.get(resource, NONE), NONE)
        if asked > free:
            return (
                f"has {_amount(resource, free)} free, and the pod requests "
                f"{_amount(resource, asked)}"
            )
    return None


def _amount(resource: str, amount: Decimal) -> str:
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        return f"{float(amount) / _GIB:.1f} GiB of {resource}"
    return f"{float(amount):g} {resource}"


def needs_of(pod: Json) -> PodNeeds:
    """Read a pod as the API server shows it."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    namespace = str(metadata.get("namespace") or "")
    apart = ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(REQUIRED) or ()
    claims = ("persistentVolumeClaim", "ephemeral")
    slots = sum(any(kind in each for kind in claims) for each in spec.get("volumes") or ())
    return PodNeeds(
        title=f"{namespace}/{metadata['name']}",
        namespace=namespace,
        labels=metadata.get("labels") or {},
        wants=placement_of(spec),
        requests={
            **_requests(spec),
            "pods": Decimal(1),
            **({VOLUME_SLOTS: Decimal(slots)} if slots else {}),
        },
        priority=int(spec.get("priority") or 0),
        shuns=tuple(each for each in apart if each.get("topologyKey") == HOST),
    )


def placement_of(spec: Json) -> Placement:
    """Return on which nodes the scheduler may put a pod, by its own words."""
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    terms = None
    if affinity is not None:
        # Of fields there is the node's name alone; it counts as one label more. A term that asks
        # for nothing matches no node.
        found = (
            requirements(term.get("matchExpressions")) + requirements(term.get("matchFields"))
            for term in affinity.get("nodeSelectorTerms") or ()
        )
        terms = tuple(term for term in found if term)
    return Placement(
        labels=spec.get("nodeSelector") or {},
        terms=terms,
        tolerations=tuple(_toleration(each) for each in spec.get("tolerations") or ()),
    )


def _toleration(item: Json) -> Toleration:
    any_value = item.get("operator") == "Exists"
    return Toleration(
        key=item.get("key") or None,
        value=None if any_value else str(item.get("value") or ""),
        effect=item.get("effect") or None,
    )


def _requests(spec: Json) -> Amounts:
    """Add up a pod's requests: its containers run together, its init containers before them."""
    beside: Amounts = {}
    most: Amounts = {}
    for each in spec.get("initContainers") or ():
        with_it = _sum((beside, _asked(each)))
        if each.get("restartPolicy") == "Always":
            beside = with_it
        most = _larger(most, with_it)
    running = _sum((beside, *map(_asked, spec.get("containers") or ())))
    of_pod = {key: amount for key, amount in _asked(spec).items() if key in _OF_THE_POD}
    return _sum(({**_larger(most, running), **of_pod}, _amounts(spec.get("overhead"))))


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total: dict[str, Decimal] = {}
    for each in amounts:
        for key, amount in each.items():
            total[key] = total.get(key, NONE) + amount
    return total


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {key: max(one.get(key, NONE), other.get(key, NONE)) for key in {**one, **other}}


def _asked(item: Json) -> Amounts:
    return _amounts((item.get("resources") or {}).get("requests"))


def _amounts(written: Json | None) -> Amounts:
    """Return amounts; one that cannot be read is never met."""
    read = ((key, quantity(value)) for key, value in (written or {}).items())
    return {key: UNLIMITED if amount is None else amount for key, amount in read}


def allocatable_of(node: Json, ebs_driver: Json | None) -> Amounts:
    """Return what a node has for its pods; what it does not say, or nobody can read, it lacks.

    A driver whose CSINode tells no count of volumes has no limit, as for the scheduler.
    """
    status = node.get("status") or {}
    found = {k: a for k, v in (status.get("allocatable") or {}).items() if (a := quantity(v))}
    count = ((ebs_driver or {}).get("allocatable") or {}).get("count")
    slots = UNLIMITED if count is None else Decimal(count)
    return {**found, VOLUME_SLOTS: slots}


def taints_of(node: Json) -> tuple[Taint, ...]:
    """Return a node's taints, and those that its conditions are about to become, but a cordon."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    made = (
        Taint(key=key, effect="NoSchedule")
        for each in conditions
        if each.get("status") == "True" and (key := CONDITION_TAINTS.get(each.get("type", "")))
    )
    written = (
        Taint(key=each["key"], value=each.get("value") or "", effect=each.get("effect") or "")
        for each in (node.get("spec") or {}).get("taints") or ()
        if each["key"] != UNSCHEDULABLE
    )
    return tuple(dict.fromkeys((*written, *made)))
