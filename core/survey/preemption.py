"""Judges who may push a broker off its node: pods of a higher priority that fit there.

Source: Kubernetes' scheduler. For a pod that finds no room it deletes pods of lower priority; it
asks no webhook, and no budget keeps it from that where nothing else makes room.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed, every_kafka, node_of, pods_of
from core.survey.finding import Finding, Weight, listing
from core.survey.kafka_facts import Pod, Rival
from core.unknown import of

# What people may give a class of their own; above are Kubernetes' own, which every cluster runs.
MOST_OF_PEOPLE = 1_000_000_000
_KEEPING_OFF = ("NoSchedule", "NoExecute")
_REMEDY = (
    "give Kafka's pods a priorityClassName above theirs, or keep others off Kafka's nodes by a "
    "taint"
)


def preemption(seen: Surveyed) -> Iterator[Finding]:
    """Find pods of others for which the scheduler may delete pods of Kafka."""
    for kafka in every_kafka(seen):
        pods = pods_of(seen, kafka)
        waiting, running = dict[Rival, list[Pod]](), dict[Rival, list[Pod]]()
        for rival in of(seen.rivals):
            below = [
                pod for pod in pods if pod.priority < rival.priority and _fits(rival, pod, seen)
            ]
            if below and rival.waits:
                waiting[rival] = below
            elif below and rival.priority <= MOST_OF_PEOPLE:
                running[rival] = below
        for rivals, weight, check, what in (
            (waiting, Weight.BROKER, "preempted", "wait for room"),
            (running, Weight.ADVICE, "preemptible", "run"),
        ):
            if rivals:
                names = {pod.name for below in rivals.values() for pod in below}
                yield Finding(
                    check,
                    weight,
                    kafka.title,
                    f"{listing(each.title for each in rivals)} {what}, have a higher priority and "
                    f"fit on nodes of {listing(names)}: where room is short, the scheduler deletes "
                    f"these for them, and no webhook is asked",
                    _REMEDY,
                )


def _fits(rival: Rival, pod: Pod, seen: Surveyed) -> bool:
    """Say whether another's pod may be placed where a pod of Kafka's is."""
    node = node_of(pod, seen)
    return (
        node is not None
        and rival.wants.fits(node.labels)
        and all(
            rival.wants.tolerates(taint.key, taint.value, taint.effect)
            for taint in node.taints
            if taint.effect in _KEEPING_OFF
        )
    )
