"""Decides which machine is sick but not dead, and when it leaves for that.

EKS repairs what it manages itself; brokers stand on groups of their own, which nobody repairs.
Three watch a node: the node monitoring agent by its conditions, the kubelet by Ready, EC2 by its
checks. Two of them are believed within minutes. One alone must last as long as EKS itself waits,
and a node that is sick in its first hour is a person's: the next one may be born with the same.
One machine leaves at a time, and none where more than a share of a zone or of the cluster is sick:
that is a zone's incident, or an image's, and no departure mends it. handlers.sweep asks each
minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.incidents.inventory import StatusView
from core.incidents.observation import NodeView

AGENT, KUBELET, EC2 = "node monitoring agent", "kubelet", "EC2"
# EKS's own repair waits 30 minutes for the agent's conditions and for Ready. EC2 moves an instance
# whose host fails to another one by itself, within minutes.
ALONE_SECONDS: Mapping[str, float] = {AGENT: 1800.0, KUBELET: 1800.0, EC2: 600.0}
# EC2 reports every reboot as a failed check, and a node that reboots is not Ready.
TOGETHER_SECONDS = 120.0
YOUNG_SECONDS = 3600.0
# aws/eks-node-monitoring-agent#215: one line of a log at boot makes a condition False for days.
BOOT_SECONDS = 600.0
# More sick machines than this part of a zone, or of the cluster, have one cause. One is one.
MOST_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that is wrong with a machine, by one of those who watch it."""

    source: str
    what: str
    since: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class Patient:
    """A node of Kafka's with signs that have lasted, on an instance that runs."""

    node: NodeView
    signs: tuple[Sign, ...]

    @property
    def key(self) -> str:
        """Name this sickness: another sign, or the same one anew, is another."""
        return ",".join(f"{s.what}@{s.since:.0f}" for s in self.signs)

    @property
    def what(self) -> str:
        return "; ".join(f"{s.source}: {s.what}" for s in self.signs)

    @property
    def sentence(self) -> str:
        return f"{self.node.name} is sick: {self.what}"


@dataclass(frozen=True, slots=True)
class Departure:
    """A machine that is to leave for what is wrong with it."""

    patient: Patient


@dataclass(frozen=True, slots=True)
class Recovery:
    """A machine whose departure is no longer asked for."""

    instance_id: str


@dataclass(frozen=True, slots=True)
class Concern:
    """Something about machines that a person decides; told once a day for each key."""

    key: str
    reason: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ward:
    """What one run of the sweep has seen of the cluster's machines."""

    now: float  # epoch seconds
    nodes: Sequence[NodeView]  # Kafka's
    running: Collection[str]  # instances that EC2 runs
    statuses: Mapping[str, StatusView]  # of those that were asked about
    leaving: Collection[str] = ()  # instances with an open incident for another reason
    treated: Collection[str] = ()  # instances that leave for this one
    zones_in_trouble: Collection[str] = ()  # names of zones with an open incident of their own


def findings(ward: Ward) -> Iterator[Departure | Recovery | Concern]:
    """Yield who is well again, else who is to leave, the clearest case first, or whom to call.

    Of the departures one is to be begun; the next has its turn when that one is over.
    """
    nodes = [n for n in ward.nodes if n.zone and n.instance_id in ward.running]
    sick = [p for n in nodes if n.instance_id not in ward.leaving if (p := _patient(n, ward))]
    if ward.treated:
        yield from _recoveries(nodes, ward)
        return
    common = _common_cause(sick, [n for n in nodes if n.instance_id not in ward.leaving])
    if common is not None:
        yield common
        return
    for patient in sorted(sick, key=_clearest):
        if patient.node.zone in ward.zones_in_trouble:
            continue  # It bears the zone's incident out, which pages and freezes.
        doubt = _doubt(patient)
        if not _lasts(patient.signs, ward.now):
            continue
        if doubt is None:
            yield Departure(patient)
        else:
            key = f"sick:{patient.node.instance_id}:{patient.key}"
            yield Concern(key, doubt, page="sick")


def signs_of(node: NodeView, status: StatusView | None) -> tuple[Sign, ...]:
    """Return everything that is wrong with a node, however short it has been so."""
    found = [Sign(AGENT, f"{what}=False", since) for what, since in sorted(node.sick.items())]
    if not node.ready and node.unready_since is not None:
        found.append(Sign(KUBELET, "not Ready", node.unready_since))
    checks = {} if status is None else status.impaired
    found += [Sign(EC2, f"{check} check", since) for check, since in sorted(checks.items())]
    return tuple(found)


def _patient(node: NodeView, ward: Ward) -> Patient | None:
    found = signs_of(node, ward.statuses.get(node.instance_id or ""))
    lasting = tuple(s for s in found if ward.now - s.since >= TOGETHER_SECONDS)
    return Patient(node, lasting) if lasting else None


def _recoveries(nodes: Sequence[NodeView], ward: Ward) -> Iterator[Recovery]:
    """Yield those whom every one of the three calls well; EC2's silence proves nothing."""
    for node in nodes:
        status = ward.statuses.get(node.instance_id or "")
        if node.instance_id not in ward.treated or status is None or not node.ready:
            continue
        if not signs_of(node, status):
            yield Recovery(node.instance_id or "")


def _common_cause(sick: Sequence[Patient], nodes: Sequence[NodeView]) -> Concern | None:
    """Recognise a trouble that more machines have than one departure mends."""
    standing = Counter(n.zone for n in nodes)
    for zone, count in sorted(Counter(p.node.zone for p in sick).items(), key=str):
        if _too_many(count, standing[zone]):
            return _concern(f"{count} of {standing[zone]} of zone {zone}", sick)
    if _too_many(len(sick), len(nodes)):
        return _concern(f"{len(sick)} of {len(nodes)} of the cluster", sick)
    return None


def _too_many(count: int, standing: int) -> bool:
    return count > 1 and count > standing * MOST_SHARE


def _concern(whose: str, sick: Sequence[Patient]) -> Concern:
    named = sorted(p.node.instance_id or "" for p in sick)
    told = "; ".join(p.sentence for p in sick[:3])
    reason = (
        f"{whose} of Kafka's machines are sick at once, which no departure mends: none is "
        f"replaced, and a person decides. {told}."
    )
    return Concern(f"sick_together:{','.join(named)}", reason, page="sick")


def _clearest(patient: Patient) -> tuple[int, float, str]:
    sources = len({s.source for s in patient.signs})
    return (-sources, min(s.since for s in patient.signs), patient.node.name)


def _lasts(signs: Sequence[Sign], now: float) -> bool:
    """Say whether two who watch agree, or one has said so for as long as one alone must."""
    return len({s.source for s in signs}) > 1 or any(
        now - s.since >= ALONE_SECONDS[s.source] for s in signs
    )


def _doubt(patient: Patient) -> str | None:
    """Say why a person is asked before a machine is replaced; None: nothing speaks against it."""
    born = patient.node.created_at
    first = min(s.since for s in patient.signs)
    if born is None:
        return None
    if first - born < BOOT_SECONDS and {s.source for s in patient.signs} == {AGENT}:
        return (
            f"{patient.sentence}, from its first minutes on, and neither EC2 nor its kubelet bears "
            f"that out. The agent may never have looked again: restart its pod on the node, and "
            f"replace the node if it says the same."
        )
    if first - born < YOUNG_SECONDS:
        return (
            f"{patient.sentence}, within an hour of its birth. It is not replaced: look for what "
            f"another machine of the same template would have, too."
        )
    return None
