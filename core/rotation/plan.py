"""Plans a rotation before it starts: which nodes, order, time, bytes, what blocks, what is lost.

Nodes are named by hand or outdated: not what their group would launch today. In place, a node keeps
its instance and gets a new root volume where that is enough and the machine's owner would not undo
it. What is not known speaks against it; EC2 is asked before the broker leaves
(core.incidents.in_place). Times and bytes are core.rotation.estimate's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.ground.errors import InvalidInput
from core.ground.window import clock
from core.ground.words import id_list, span
from core.incidents.observation import NodeView, PodView, Policy
from core.rotation.estimate import (
    ASSUMED_REPLICATION_BYTES_PER_S,
    BOOT_SECONDS,
    SWAP_SECONDS,
    MoveEstimate,
    RunObservation,
    away_seconds,
    together,
)
from core.rotation.parallel import batch_numbers, heavy_parties, machines_come_ahead, partings
from core.rotation.preconditions import (
    departure_order,
    objections,
    unavailable,
    unkeepable,
    wait_of,
)
from core.rotation.run_record import NodeTurn, Options, Run
from core.views import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNode:
    """One node of a plan, in its place."""

    node_id: int
    role: str
    zone: str
    instance_id: str
    why: str
    seconds: float
    alone_seconds: float  # the same where its machine is not made ready before its turn
    resync_bytes: float | None  # None: not known, or nothing to copy
    batch: int  # those of one batch go together
    # Between which times it takes, by what the last run's nodes of the role took; None: too few.
    interval_seconds: tuple[float, float] | None = None
    objections: tuple[str, ...] = ()
    image_id: str | None = None  # of its new root volume, where its instance stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A rotation before it begins."""

    nodes: tuple[PlannedNode, ...]
    stops_together: bool  # those of one batch, at the same time
    unavailable: tuple[str, ...]  # what nobody can keep, a sentence per partition
    topics: tuple[str, ...]  # whose partitions those are
    too_long: tuple[str, ...] = ()  # for which no maintenance window is ever open long enough
    notes: tuple[str, ...] = ()
    # What replication brings in, and the run that measured it; None: it is assumed.
    replication_bytes_per_s: float = ASSUMED_REPLICATION_BYTES_PER_S
    replication_measured_in: str | None = None

    @property
    def seconds(self) -> float:
        """Return how long it takes, batches one after another."""
        return self._total_seconds([node.seconds for node in self.nodes])

    @property
    def interval_seconds(self) -> tuple[float, float] | None:
        """Return between which times it takes; None where a role was measured too seldom."""
        known = [node.interval_seconds for node in self.nodes if node.interval_seconds]
        if not known or len(known) < len(self.nodes):
            return None
        return self._total_seconds([i[0] for i in known]), self._total_seconds(
            [i[1] for i in known]
        )

    def _total_seconds(self, takes: Iterable[float]) -> float:
        batches = [(node.batch, node.image_id) for node in self.nodes]
        return _seconds_of_batches(batches, takes, at_once=self.stops_together)


def _seconds_of_batches(
    batches: Iterable[tuple[int, str | None]], takes: Iterable[float], *, at_once: bool
) -> float:
    """Return how long moves take, batch after batch; of each its batch and its new root volume."""
    parties: dict[tuple[int, float], list[float]] = {}
    for (batch, image_id), seconds in zip(batches, takes, strict=True):
        parties.setdefault((batch, away_seconds(image_id)), []).append(seconds)
    return sum(
        together(each, at_once=at_once, apart_seconds=apart) for (_, apart), each in parties.items()
    )


def plan(
    turns: Iterable[NodeTurn],
    seen: RunObservation,
    options: Options,
    policy: Policy,
    *,
    earlier: Run | None = None,
    appended: Mapping[int, float] | None = None,
    notes: Iterable[str] = (),
) -> Plan:
    """Return the plan of a run over these nodes, started now.

    `appended` is what is appended to each broker's replicas, in bytes a second.
    """
    leader = None if seen.kafka is None else seen.kafka.quorum_leader
    ordered = departure_order(turns, seen.pods, leader)
    lost = (
        []
        if seen.kafka is None
        else [partition for turn in ordered for partition in unkeepable(turn.node_id, seen.kafka)]
    )
    batches = batch_numbers(ordered, seen.kafka, options, policy)
    estimate = MoveEstimate(policy, earlier, appended or {})
    ordered = tuple(replace(turn, expected_seconds=estimate.seconds(turn)) for turn in ordered)
    in_turn = _mark_ahead(ordered, batches, options, policy)
    waits = (wait_of(turn, seen.now, options, policy) for turn in ordered)
    nodes = tuple(
        PlannedNode(
            node_id=turn.node_id,
            role=turn.role,
            zone=turn.zone,
            instance_id=turn.instance_id,
            why=turn.why,
            seconds=estimate.seconds(ready),
            alone_seconds=turn.expected_seconds or 0.0,
            resync_bytes=estimate.resync_bytes(turn),
            batch=batch,
            interval_seconds=estimate.interval(ready),
            objections=tuple(objections(turn, seen, options, policy)),
            image_id=turn.image_id,
        )
        for turn, ready, batch in zip(ordered, in_turn, batches, strict=True)
    )
    return Plan(
        nodes=nodes,
        stops_together=policy.stops_together,
        unavailable=tuple(dict.fromkeys(unavailable(partition) for partition in lost)),
        topics=tuple(sorted({partition.topic for partition in lost})),
        too_long=tuple(wait.sentence for wait in waits if wait is not None and wait.until is None),
        notes=(
            *notes,
            *_ways(ordered, options, estimate),
            *(partings(ordered, batches, seen.kafka, policy) if options.at_once != 1 else ()),
            *heavy_parties(ordered, batches, seen),
            *_ahead(nodes, policy),
            *_faster(ordered, seen, options, policy, estimate),
            *estimate.notes(),
            *_hours(seen, options, policy),
            *_left_over(seen.kafka),
        ),
        replication_bytes_per_s=estimate.replication_bytes_per_s,
        replication_measured_in=None if estimate.pace is None else estimate.pace.run_id,
    )


def _mark_ahead(
    ordered: Sequence[NodeTurn], batches: Sequence[int], options: Options, policy: Policy
) -> list[NodeTurn]:
    """Return turns as they would come up: whoever is behind the first finds its machine ready."""
    ready = machines_come_ahead(options, policy)
    return [
        replace(turn, ahead=ready and batch != batches[0] and turn.image_id is None)
        for turn, batch in zip(ordered, batches, strict=True)
    ]


def _ahead(nodes: Sequence[PlannedNode], policy: Policy) -> Iterator[str]:
    """Say what it saves that machines are made ready ahead of their nodes' turns."""
    batches = [(node.batch, node.image_id) for node in nodes]
    now, alone = (
        _seconds_of_batches(batches, takes, at_once=policy.stops_together)
        for takes in ([n.seconds for n in nodes], [n.alone_seconds for n in nodes])
    )
    if now < alone:
        yield (
            f"Each next machine boots while the node before comes back; one after the other it "
            f"would take about {span(alone)} instead of {span(now)}."
        )


def _faster(
    ordered: Sequence[NodeTurn],
    seen: RunObservation,
    options: Options,
    policy: Policy,
    estimate: MoveEstimate,
) -> Iterator[str]:
    """Say how long it would take with whole zones at once, where that is quicker."""
    if options.at_once is None or policy.drain_route in {"direct", "asked"} or seen.kafka is None:
        return
    (now, parties), (then, fewer) = (
        _time_and_parties(
            ordered, batch_numbers(ordered, seen.kafka, each, policy), each, policy, estimate
        )
        for each in (options, replace(options, at_once=None))
    )
    if then < now:
        yield (
            f"With --at-once zone it would take about {span(then)} instead of {span(now)}: {fewer} "
            f"sets instead of {parties}."
        )


def _time_and_parties(
    ordered: Sequence[NodeTurn],
    batches: Sequence[int],
    options: Options,
    policy: Policy,
    estimate: MoveEstimate,
) -> tuple[float, int]:
    """Return how long turns take in these batches, and how many parties there are."""
    takes = map(estimate.seconds, _mark_ahead(ordered, batches, options, policy))
    placed = [(batch, turn.image_id) for batch, turn in zip(batches, ordered, strict=True)]
    return _seconds_of_batches(placed, takes, at_once=policy.stops_together), len(set(placed))


def _ways(ordered: Sequence[NodeTurn], options: Options, estimate: MoveEstimate) -> Iterator[str]:
    """Say who keeps its instance, and why others do not, each reason once."""
    if not options.in_place:
        return
    stay = [turn for turn in ordered if turn.image_id is not None]
    if stay:
        yield f"In place: {id_list([turn.node_id for turn in stay])}."
    if options.at_once != 1 and 0 < len(stay) < len(ordered):
        yield "Brokers that stay and brokers that get a new instance leave separately."
    if any(not estimate.knows(turn) for turn in stay):
        boot = SWAP_SECONDS + BOOT_SECONDS
        yield f"{boot:.0f} s are assumed for a boot from a new root volume; no run has measured it."
    reasons: dict[str, list[int]] = {}
    for turn in ordered:
        if turn.by_replacement:
            reasons.setdefault(turn.by_replacement, []).append(turn.node_id)
    for why, ids in reasons.items():
        yield f"By a new instance: {id_list(ids)}. {why}"


def _left_over(kafka: ClusterView | None) -> Iterator[str]:
    """Name what brokers that are gone have left, which stops nobody, and the command to end it."""
    if kafka is None or kafka.doubts:
        return
    for broker_id in sorted(kafka.idle_fenced):
        yield (
            f"Broker {broker_id} is fenced and holds nothing. Is it gone for good? "
            f"`kafka-cluster.sh unregister --id {broker_id}` takes it off the list."
        )
    for partition in kafka.abandoned:
        yield (
            f"Partition {partition.name} is only on brokers that were removed "
            f"({id_list(partition.replicas)}). `kafka-topics.sh --delete --topic "
            f"{partition.topic}` or a broker of that id with its volume ends it."
        )


def _hours(seen: RunObservation, options: Options, policy: Policy) -> Iterator[str]:
    """Say when the run may begin with nodes, where a maintenance window is set."""
    if policy.maintenance is None or options.any_time:
        return
    opens, closes = next(policy.maintenance.stretches(seen.now))
    moment = f"opens at {clock(opens)}" if opens > seen.now else f"is open until {clock(closes)}"
    yield (
        f"The maintenance window {moment}. A run begins with a node while it stays open for as "
        f"long as the node is expected to take; --any-time: whenever."
    )


def plan_to_document(found: Plan) -> dict[str, Any]:
    return {**asdict(found), "seconds": found.seconds, "interval_seconds": found.interval_seconds}


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What an instance was launched as, or would be; None is what is not known of it."""

    template_id: str | None = None
    template_version: str | None = None
    configuration: str | None = None  # a launch configuration's name
    image_id: str | None = None
    instance_type: str | None = None
    # What a launch template says beyond its image, by name; None: its version cannot be read.
    beyond_image: Mapping[str, str] | None = None
    # What an instance and the image of its root volume must have in common, by name.
    traits: Mapping[str, str] | None = None


# An image that a launch template names by a parameter of Systems Manager's.
_BY_PARAMETER = "resolve:"


@dataclass(frozen=True, slots=True)
class Launched:
    """An instance as it is, and as its group would launch it now."""

    present: Build
    wanted: Build
    # EKS or Karpenter replaces what differs from its template, and would call this drift.
    managed: bool = False


def why_outdated(launched: Launched, kubelet: str, server: str) -> str | None:
    """Say in what a node differs from a new one; None: a new one would be the same.

    A kubelet of another minor version than the control plane's is a reason of its own, unless a new
    instance would be of the very same image, and have that kubelet too (`stale_template`).
    """
    return ", ".join(_changes(launched, kubelet, server)) or None


def why_unknown(launched: Launched | None) -> str | None:
    """Say why nobody can tell whether a node differs from a new one; None: somebody can."""
    if launched is None:
        return "no group of this cluster has its instance, or says what it launches"
    image = launched.wanted.image_id
    if image is not None and image.startswith(_BY_PARAMETER):
        return f"its launch template names its image by a parameter ({image}), which was not read"
    return None


def _behind(kubelet: str, server: str) -> bool:
    return _minor(kubelet) is not None and _minor(kubelet) != _minor(server)


def _same_image(launched: Launched) -> bool:
    """Say whether a new instance is known to be of the same image; one unknown may be another."""
    present, wanted = launched.present.image_id, launched.wanted.image_id
    return present is not None and present == wanted


def _changes(launched: Launched, kubelet: str, server: str) -> Iterator[str]:
    present, wanted = launched.present, launched.wanted
    image = None if (wanted.image_id or "").startswith(_BY_PARAMETER) else wanted.image_id
    if _behind(kubelet, server) and not _same_image(launched):
        yield f"kubelet {kubelet} under Kubernetes {server}"
    pairs = (
        ("image", present.image_id, image),
        ("instance type", present.instance_type, wanted.instance_type),
    )
    for name, is_, would in pairs:
        if is_ is not None and would is not None and is_ != would:
            yield f"{name} {is_} instead of {would}"
    was_by, would_by = _launcher(present), _launcher(wanted)
    if would_by is not None and was_by != would_by:
        kind, name = was_by or ("no launch template or configuration", "")
        other = would_by[1] if would_by[0] == kind else " ".join(would_by)
        yield f"{kind} {name}".rstrip() + f" instead of {other}"
    # Versions of two templates say nothing about each other.
    was, new = present.template_version, wanted.template_version
    same = present.template_id == wanted.template_id
    if same and was is not None and new is not None and was != new and not _says_the_same(launched):
        yield f"launch template version {was} instead of {new}"


def _launcher(build: Build) -> tuple[str, str] | None:
    """Return what an instance is launched by, in words and by its name; None: nothing is named."""
    if build.configuration is not None:
        return "launch configuration", build.configuration
    return None if build.template_id is None else ("launch template", build.template_id)


def _says_the_same(launched: Launched) -> bool:
    """Say whether another version of a template would launch the very same: a root volume that was
    replaced in place has the image of the newer one."""
    was, new = launched.present.beyond_image, launched.wanted.beyond_image
    return was is not None and was == new and _same_image(launched)


def stale_template(
    launched: Mapping[str, Launched], kubelets: Mapping[str, str], server: str
) -> Iterator[str]:
    """Yield the instances that no rotation would bring to the control plane's version."""
    for instance_id, kubelet in sorted(kubelets.items()):
        found = launched.get(instance_id)
        if found is None or not _behind(kubelet, server):
            continue
        if _same_image(found):
            yield (
                f"Instance {instance_id} has kubelet {kubelet} under Kubernetes {server}. Its "
                "launch template still names the same image: give it a newer one first "
                "(`stillwater up`)."
            )


def _minor(version: str) -> tuple[str, str] | None:
    """Return major and minor.

    >>> _minor("v1.36.1-eks-0a1b2c3")
    ('1', '36')
    """
    parts = version.lstrip("v").split(".")
    return (parts[0], parts[1].rstrip("+")) if len(parts) > 1 else None


# Of instances without virtualization EC2 replaces no root volume, but for Apple's.
METAL = ".metal"
ROOT_DEVICE, EBS = "root device", "ebs"


def choose_way(turn: NodeTurn, launched: Launched | None, seen: RunObservation) -> NodeTurn:
    """Return a turn with the image that its root volume is made of, or why that cannot be."""
    why = next(_against(turn, launched, seen), None)
    if why is not None or launched is None:
        return replace(turn, by_replacement=why or "Nothing is known of its instance.")
    return replace(turn, image_id=launched.wanted.image_id)


def _against(turn: NodeTurn, launched: Launched | None, seen: RunObservation) -> Iterator[str]:
    if seen.claim_of(turn.instance_id) is not None:
        yield "Karpenter owns its machine, and would replace one that differs from its NodeClaim."
    if launched is None:
        yield "Its instance belongs to no group of this cluster with a launch template."
        return
    if launched.managed:
        yield "EKS manages its node group, and would replace an instance that it did not update."
    present, wanted = launched.present, launched.wanted
    if present.image_id is None or wanted.image_id is None:
        yield "Its image, or the one that its group would launch, is not known."
    if present.template_id != wanted.template_id:
        yield "Its group has another launch template than the one that it was launched from."
    if present.instance_type != wanted.instance_type and wanted.instance_type is not None:
        yield f"Its instance type is {present.instance_type}, not {wanted.instance_type}."
    if METAL in (present.instance_type or METAL):
        yield "EC2 replaces root volumes of virtual machines only."
    yield from _template_objections(launched)
    yield from _image_objections(launched)


def _template_objections(launched: Launched) -> Iterator[str]:
    was, would = launched.present.beyond_image, launched.wanted.beyond_image
    if was is None or would is None:
        yield "The version of the launch template that it was launched from cannot be read."
        return
    changed = sorted(name for name in was.keys() | would.keys() if was.get(name) != would.get(name))
    if changed:
        yield f"Its launch template changes more than the image: {', '.join(changed)}."


def _image_objections(launched: Launched) -> Iterator[str]:
    has, needs = launched.present.traits, launched.wanted.traits
    if has is None or needs is None:
        yield "EC2 tells nothing of its instance, or of the image."
        return
    if has.get(ROOT_DEVICE) != EBS or needs.get(ROOT_DEVICE) != EBS:
        yield "Its root volume, or the image's, is not an EBS volume."
    for name in sorted((has.keys() | needs.keys()) - {ROOT_DEVICE}):
        if has.get(name) != needs.get(name):
            yield (
                f"The {name} of the image is {needs.get(name) or 'not known'}, and of its instance "
                f"{has.get(name) or 'not known'}."
            )


BY_HAND = "asked for by hand"
NO_PODS = "Kubernetes lists no pod of this Kafka's; look at its node pools and the operator first."


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a person named; with nothing named, what is outdated is meant."""

    everything: bool = False
    node_ids: tuple[int, ...] = ()
    pools: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()

    @property
    def is_explicit(self) -> bool:
        return self.everything or bool(self.node_ids or self.pools or self.zones)

    def takes(self, node_id: int, pool: str, zone: str) -> bool:
        """Say whether a node is meant: every kind of name that is given must fit."""
        if not self.is_explicit:
            return False
        return (
            (not self.node_ids or node_id in self.node_ids)
            and (not self.pools or pool in self.pools)
            and (not self.zones or zone in self.zones)
        )


def turns_of(
    seen: RunObservation, selection: Selection, outdated: Mapping[int, str]
) -> tuple[NodeTurn, ...]:
    """Return a turn for each node that is meant; `outdated` says why, by node id.

    Raises InvalidInput where a name fits nothing, a pod that is meant has no instance, or there is
    no pod at all.
    """
    if not seen.pods:
        raise InvalidInput([NO_PODS])
    found, problems = [], []
    for pod in sorted(seen.pods, key=lambda pod: pod.node_id):
        node = seen.node_of(pod.node_id)
        pool, zone = (node.pool or "", node.zone or "") if node else ("", "")
        why = outdated.get(pod.node_id)
        if not selection.takes(pod.node_id, pool, zone) and (selection.is_explicit or why is None):
            continue
        if node is None or node.instance_id is None:
            problems.append(f"Pod {pod.name} {_nowhere(pod, node)}; see to it before a rotation.")
            continue
        found.append(
            NodeTurn(
                node_id=pod.node_id,
                pod=pod.name,
                role=pod.role or "broker",
                pool=pool,
                zone=zone,
                instance_id=node.instance_id,
                why=why or BY_HAND,
            )
        )
    problems += _unknown(seen, selection)
    if problems:
        raise InvalidInput(problems)
    return tuple(found)


def _nowhere(pod: PodView, node: NodeView | None) -> str:
    """Say why no instance is known that a pod runs on."""
    if pod.node_name is None:
        return f"runs on no node ({pod.trouble or 'it starts'})"
    if node is None:
        return f"runs on {pod.node_name}, which Kubernetes does not list"
    return f"runs on {node.name}, which is not an instance of EC2's"


def unjudged_nodes(seen: RunObservation, launched: Mapping[str, Launched]) -> Iterator[str]:
    """Yield of which nodes nobody can tell whether they are outdated, a sentence per reason.

    Of its own machines Karpenter says it.
    """
    reasons: dict[str, list[int]] = {}
    for pod in sorted(seen.pods, key=lambda pod: pod.node_id):
        node = seen.node_of(pod.node_id)
        instance_id = (None if node is None else node.instance_id) or ""
        if seen.claim_of(instance_id) is not None:
            continue
        placed = node is not None and node.instance_id is not None
        why = why_unknown(launched.get(instance_id)) if placed else f"its pod {_nowhere(pod, node)}"
        if why is not None:
            reasons.setdefault(why, []).append(pod.node_id)
    for why, ids in reasons.items():
        whose = "Node" if len(ids) == 1 else "Nodes"
        yield f"{whose} {id_list(ids)} may be outdated, which is unknown: {why}."


def _unknown(seen: RunObservation, selection: Selection) -> Iterable[str]:
    ids = {pod.node_id for pod in seen.pods}
    for node_id in sorted(set(selection.node_ids) - ids):
        yield f"The cluster lacks Kafka node {node_id}; there are {sorted(ids)}."
    pools = {node.pool for node in seen.nodes if node.pool}
    for pool in sorted(set(selection.pools) - pools):
        yield f"The cluster lacks a pool {pool}; there are {', '.join(sorted(pools))}."
    zones = {node.zone for node in seen.nodes if node.zone}
    for zone in sorted(set(selection.zones) - zones):
        yield f"The cluster lacks nodes in a zone {zone}; there are {', '.join(sorted(zones))}."
