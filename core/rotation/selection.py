"""Which nodes a rotation is about: those named by hand, or those that are outdated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from core.errors import InvalidInput
from core.incidents.observation import NodeView, PodView
from core.rotation.observation import RunObservation
from core.rotation.outdated import Launched, why_unknown
from core.rotation.run_record import NodeTurn
from core.views import id_list

BY_HAND = "asked for by hand"
NO_PODS = (
    "Kubernetes lists no pod of this Kafka's, so there is nobody to rotate; see to its node pools "
    "and the operator first."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a person named; with nothing named, what is outdated is meant."""

    everything: bool = False
    node_ids: tuple[int, ...] = ()
    pools: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()

    @property
    def by_hand(self) -> bool:
        return self.everything or bool(self.node_ids or self.pools or self.zones)

    def takes(self, node_id: int, pool: str, zone: str) -> bool:
        """Say whether a node is meant: every kind of name that is given must fit."""
        if not self.by_hand:
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
        if not selection.takes(pod.node_id, pool, zone) and (selection.by_hand or why is None):
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
    return f"runs on {node.name}, which is no instance of EC2's"


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
        yield f"{whose} {id_list(ids)} may be outdated, which nobody can tell: {why}."


def _unknown(seen: RunObservation, selection: Selection) -> Iterable[str]:
    ids = {pod.node_id for pod in seen.pods}
    for node_id in sorted(set(selection.node_ids) - ids):
        yield f"There is no Kafka node {node_id}; there are {sorted(ids)}."
    pools = {node.pool for node in seen.nodes if node.pool}
    for pool in sorted(set(selection.pools) - pools):
        yield f"There is no node of a pool {pool}; there are {', '.join(sorted(pools))}."
    zones = {node.zone for node in seen.nodes if node.zone}
    for zone in sorted(set(selection.zones) - zones):
        yield f"There is no node in a zone {zone}; there are {', '.join(sorted(zones))}."
