"""Words of a scene for what Kafka itself does: quorums, topics, refills, ids, refused readings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from core.views import ClusterView, Doubt, PartitionView, VoterView
from tests.unit.handlers.scenery import NODES, Scenery

Change = Callable[[ClusterView], ClusterView]


def _view(name: str, change: Change | None) -> Callable[[Scenery], None]:
    """Every reading from here on shows a change; None: not any more."""

    def do(scene: Scenery) -> None:
        scene.kafka_changes.pop(name, None)
        if change is not None:
            scene.kafka_changes[name] = change

    return do


def _quorum(voters: int, lost: int) -> Change:
    """So many voters, of which the first have not fetched for long."""
    told = tuple(VoterView(n, 900.0 if n < lost else 0.1) for n in range(voters))
    without = lost * 2 >= voters
    leader = None if without else voters - 1
    return lambda view: replace(view, voters=told, quorum_leader=leader, stale=without)


def _denied(view: ClusterView) -> ClusterView:
    return replace(view, doubts=(Doubt("Kafka refuses DescribeLogDirs.", refused=True),))


def _minimum(value: int) -> Change:
    def change(view: ClusterView) -> ClusterView:
        return replace(view, partitions=tuple(replace(p, min_isr=value) for p in view.partitions))

    return change


def _with_topic(name: str, replicas: tuple[int, ...], min_isr: int) -> Change:
    def change(view: ClusterView) -> ClusterView:
        isr = tuple(b for b in replicas if b in view.brokers - view.fenced)
        made = PartitionView(name, 0, isr[0] if isr else None, replicas, isr, min_isr)
        return replace(view, partitions=(*view.partitions, made))

    return change


def _moved(of: int) -> Change:
    """Somebody moves all partitions off a broker."""

    def change(view: ClusterView) -> ClusterView:
        kept = tuple(
            replace(
                p,
                replicas=tuple(b for b in p.replicas if b != of),
                isr=tuple(b for b in p.isr if b != of),
                leader=p.leader if p.leader != of else next((b for b in p.isr if b != of), None),
            )
            for p in view.partitions
        )
        return replace(view, partitions=kept)

    return change


def _of_broker(name: str, change: Callable[[int], Change] | None) -> Callable[..., None]:
    def do(scene: Scenery, zone: str) -> None:
        made = None if change is None else change(NODES[zone])
        _view(f"{name} {zone}", made)(scene)

    return do


def _another_id(scene: Scenery, zone: str) -> None:
    """The pool makes a pod of another id in its place; the old one is unregistered."""
    cluster, node_id = scene.station.cluster, NODES[zone]
    pod = cluster.pods.pop(node_id)
    other = node_id + 5
    name = pod.name.replace(f"-{node_id}", f"-{other}")
    cluster.pods[other] = replace(pod, name=name, node_id=other)
    scene.out.discard(node_id)
    scene.kafka_changes[f"another id {zone}"] = lambda view: replace(
        _moved(node_id)(view),
        brokers=(view.brokers - {node_id}) | {other},
        fenced=view.fenced - {node_id},
    )


def _slow(scene: Scenery, zone: str, *, over: bool) -> None:
    """Its log directory is empty: it is registered, and refills for as long as is said."""
    node_id = NODES[zone]
    scene.doing.append(zone)
    (scene.failed_disks.discard if over else scene.failed_disks.add)(node_id)


def _pod_gone(scene: Scenery, zone: str) -> None:
    """The operator is away, or its pool was scaled in: nobody makes the pod again."""
    cluster, node_id = scene.station.cluster, NODES[zone]
    scene.doing.append(zone)
    pod = cluster.pods.pop(node_id)
    scene.out.add(node_id)
    scene.missing_pods[node_id] = pod


def _pod_made(scene: Scenery, zone: str) -> None:
    node_id = NODES[zone]
    pod = scene.missing_pods.pop(node_id)
    scene.station.cluster.pods[node_id] = replace(pod, node_name=None, ready=False)


def _refuse_groups(words: str) -> Callable[[Scenery], None]:
    def do(scene: Scenery) -> None:
        scene.station.cluster.group_refuses = words

    return do


def _held(scene: Scenery, zone: str, *, held: bool) -> None:
    """The volume's attachment stays, whoever stops."""
    name = scene.station.cluster.instances[scene.instance(zone)].private_dns_name
    if held:
        scene.stuck[name] = (f"pvc-{NODES[zone]}",)
    else:
        scene.stuck.pop(name, None)


PLAIN: Mapping[str, Callable[[Scenery], None]] = {
    "one of three controllers lost": _view("quorum", _quorum(3, 1)),
    "two of five controllers lost": _view("quorum", _quorum(5, 2)),
    "three of five controllers lost": _view("quorum", _quorum(5, 3)),
    "controllers well": _view("quorum", None),
    "reading denied": _view("denied", _denied),
    "reading allowed": _view("denied", None),
    "minimum three": _view("minimum", _minimum(3)),
    "minimum one": _view("minimum", _minimum(1)),
    "minimum as before": _view("minimum", None),
    "group refuses": _refuse_groups("ResourceContention: there is a scaling activity."),
    "group does as asked": _refuse_groups(""),
}
OF_ZONE: Mapping[str, Callable[[Scenery, str], None]] = {
    "single replica": _of_broker("single", lambda b: _with_topic("single", (b,), 1)),
    "two replicas": _of_broker("two", lambda b: _with_topic("two", (b, b % 30 + 10), 2)),
    "two replicas of minimum one": _of_broker(
        "two1", lambda b: _with_topic("two", (b, b % 30 + 10), 1)
    ),
    "topics deleted": _of_broker("two", None),
    "moved off": _of_broker("moved", _moved),
    "moved back": _of_broker("moved", None),
    "another id": _another_id,
    "empty log dir": lambda scene, zone: _slow(scene, zone, over=False),
    "refilled": lambda scene, zone: _slow(scene, zone, over=True),
    "pod gone": _pod_gone,
    "pod made": _pod_made,
    "volume sticks": lambda scene, zone: _held(scene, zone, held=True),
    "volume lets go": lambda scene, zone: _held(scene, zone, held=False),
}
