"""A cluster on machines of Karpenter's: in no group, each with its NodeClaim."""

from dataclasses import replace

from core.incidents.observation import Condition, NodeClaim
from tests.unit.handlers.asking import Door
from tests.unit.handlers.fakes import OLD, FakeCluster, node_named
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.station import START

KARPENTER = "system:serviceaccount:kube-system:karpenter"
HOUR = 3600.0
INITIALIZED = {"Initialized": Condition(holds=True)}
HOMES = dict(zip((OLD, "i-0b", "i-0c"), ZONES.values(), strict=True))


def claim_of(instance_id: str = OLD, zone: str = "us-east-1a", **changes: object) -> NodeClaim:
    found = NodeClaim(
        name=f"broker-{instance_id}",
        uid=f"u-{instance_id}",
        instance_id=instance_id,
        node_name=node_named(instance_id),
        zone=zone,
        pool="broker",
        created_at=START - 1000 * HOUR,
        conditions=INITIALIZED,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def delete_claim(instance_id: str = OLD, zone: str = "us-east-1a", **changes: object) -> NodeClaim:
    return claim_of(instance_id, zone, deleted=True, deleted_at=START - 10, **changes)


def of_karpenter(door: Door) -> Door:
    """Give the three brokers' machines to Karpenter."""
    cluster = door.station.cluster
    cluster.groups.clear()
    _in_no_group(cluster)
    cluster.node_claims = tuple(claim_of(*home) for home in HOMES.items())
    return door


def end(door: Door, *claims: NodeClaim) -> None:
    """Karpenter ends the nodes of these claims; the others stay."""
    cluster = door.station.cluster
    named = {each.name for each in claims}
    kept = tuple(each for each in cluster.node_claims or () if each.name not in named)
    cluster.node_claims = (*kept, *claims)
    for each in claims:
        cluster.change_node(each.instance_id or "", schedulable=False)


def bring_node(door: Door, instance_id: str, zone: str = "us-east-1a") -> None:
    """Karpenter has launched a node in the place of another."""
    door.spare(instance_id, zone)
    cluster = door.station.cluster
    cluster.groups.clear()
    _in_no_group(cluster)
    cluster.node_claims = (*(cluster.node_claims or ()), claim_of(instance_id, zone))


def _in_no_group(cluster: FakeCluster) -> None:
    for id_, instance in cluster.instances.items():
        cluster.instances[id_] = replace(instance, group=None, tags={})
