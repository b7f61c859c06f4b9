"""Judges the machines below Kafka one by one: what AWS does to them, who would replace them.

Sources: EC2's scheduled events, status checks and instance states; tags of those who start machines
without Auto Scaling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from core.survey.facts import Surveyed, machine_of, machines_of
from core.survey.finding import (
    Finding,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    worth_knowing,
)
from core.survey.node_facts import Node
from core.unknown import Unknown, mapping_of

# Codes of EC2's scheduled events after which the machine does not go on.
ENDS_MACHINE = ("instance-retirement", "instance-stop")
# Tags of a machine, and what others do by them.
MARKS: Mapping[str, str] = {
    "Schedule": "Instance Scheduler on AWS starts and stops machines",
    "maid_status": "Cloud Custodian stops or ends machines",
    "custodian_cleanup": "Cloud Custodian stops or ends machines",
    "Patch Group": "Systems Manager patches machines, and reboots them",
    "PatchGroup": "Systems Manager patches machines, and reboots them",
}
ENDED_IMAGE = re.compile(r"Amazon Linux 2(?!\d)")
# As in t3.large and t4g.medium.
BURSTABLE = re.compile(r"t\d")
# How the tags of an instance begin that somebody else than Auto Scaling or Karpenter has started.
STARTED_BY: Mapping[str, str] = {
    "spotinst:": "Spot by Flexera (Ocean or Elastigroup)",
    "cast:": "CAST AI",
    "aws:ec2:fleet-id": "an EC2 Fleet",
    "aws:ec2spot:fleet-request-id": "a Spot Fleet",
    "sigs.k8s.io/cluster-api-provider-aws": "Cluster API",
    "kubernetes.io/machine-controller": "a machine controller",
}


def scheduled_findings(seen: Surveyed) -> Iterator[Finding]:
    """Find nodes of Kafka whose machine AWS itself is about to end or to stop for a while."""
    statuses = mapping_of(seen.statuses)
    told = [
        (event.code in ENDS_MACHINE, f"{node.name} ({event.code}, {event.not_before or 'soon'})")
        for node in mapping_of(seen.nodes).values()
        if (status := statuses.get(node.instance_id or ""))
        for event in status.events
    ]
    if ending := [said for ends, said in told if ends]:
        yield broker_may_die(
            "machine-retired",
            "nodes of Kafka",
            f"AWS ends or stops {listing(ending)}, whatever runs there by then",
            "replace these nodes one by one before that",
        )
    if paused := [said for ends, said in told if not ends]:
        yield producer_may_stall(
            "machine-maintained",
            "nodes of Kafka",
            f"AWS interrupts {listing(paused)}: its broker is away for as long",
            "move leaders away before that, or replace the node",
        )


def orphans(seen: Surveyed) -> Iterator[Finding]:
    """Find nodes of Kafka that nothing would replace."""
    if isinstance(seen.nodes, Unknown) or isinstance(seen.group_of, Unknown):
        return
    alone = [
        node
        for node in seen.nodes.values()
        if node.node_pool is None
        and node.instance_id
        and node.instance_id not in seen.group_of
        # A node whose instance EC2 no longer knows is about to go by itself.
        and (isinstance(seen.instances, Unknown) or node.instance_id in seen.instances)
    ]
    keepers = {node.name: _keeper(node, seen) for node in alone}
    if nobody := [f"{node.name} ({node.instance_id})" for node in alone if not keepers[node.name]]:
        yield producer_may_stall(
            "node-alone",
            "nodes of Kafka",
            f"{listing(nobody)} belong to no Auto Scaling group and to no NodePool: nothing "
            f"replaces them",
            "run the brokers in groups",
        )
    for keeper in sorted({each for each in keepers.values() if each}):
        names = listing(name for name, each in keepers.items() if each == keeper)
        yield not_judged(
            "node-elsewhere",
            "nodes of Kafka",
            f"{names} were started by {keeper}, by their tags: when it ends or replaces them was "
            f"not judged",
            "read its settings yourself, or run the brokers in Auto Scaling groups",
        )


def _keeper(node: Node, seen: Surveyed) -> str | None:
    """Return who has started a machine, by its tags."""
    instance = machine_of(node, seen)
    tags = {} if instance is None else instance.tags
    found = (who for begins, who in STARTED_BY.items() if any(t.startswith(begins) for t in tags))
    return next(found, None)


def burstable(seen: Surveyed) -> Iterator[Finding]:
    """Find machines whose processors, disks and network live on credits."""
    held = machines_of(seen).items()
    if found := [f"{name} ({m.type})" for name, m in held if BURSTABLE.match(m.type)]:
        yield producer_may_stall(
            "burstable",
            "nodes of Kafka",
            f"{listing(found)} earn their speed as credits: when a broker copies its replicas back "
            f"these end, and it falls out of sync or is missed",
            "run brokers on machines that keep their speed (m, r or i families)",
        )


def marked(seen: Surveyed) -> Iterator[Finding]:
    """Name machines that somebody stops or reboots by the clock, as their tags say."""
    found: dict[str, list[str]] = {}
    for name, machine in machines_of(seen).items():
        for key in MARKS:
            if value := machine.tags.get(key):
                found.setdefault(key, []).append(f"{name} ({key}: {value})")
    for key, names in found.items():
        yield worth_knowing(
            "machine-marked",
            "nodes of Kafka",
            f"{listing(names)} carry a tag by which {MARKS[key]}: a machine ends or reboots at an "
            f"hour that Kafka did not choose",
            "take the tag off the machines of Kafka and off what starts them",
        )


def places(seen: Surveyed) -> Iterator[Finding]:
    """Name machines whose replacement needs more than a zone's capacity, or an image that ended."""
    if outposts := [name for name, machine in machines_of(seen).items() if machine.outpost]:
        yield worth_knowing(
            "outpost",
            "nodes of Kafka",
            f"{listing(outposts)} stand in an Outpost: a replacement starts only where that has a "
            f"machine of the type to spare, and no quota or zone of the region's says so",
            "see that the Outpost has room for one machine more (its capacity tasks and slots)",
        )
    if old := [n.name for n in mapping_of(seen.nodes).values() if ENDED_IMAGE.match(n.os_image)]:
        yield worth_knowing(
            "image-ended",
            "nodes of Kafka",
            f"{listing(old)} run Amazon Linux 2, for which EKS makes no images since November "
            f"2025, and none for Kubernetes 1.33 or newer",
            "move to Amazon Linux 2023 or Bottlerocket with the next rotation",
        )


def now(seen: Surveyed) -> Iterator[Finding]:
    """Find machines that EC2 ends at this moment, or whose checks fail."""
    if ending := [name for name, machine in machines_of(seen).items() if machine.ending]:
        yield broker_may_die(
            "machine-ending",
            "nodes of Kafka",
            f"EC2 ends or stops the machines of {listing(ending)} at this moment, whatever the "
            f"nodes say of themselves",
            "let no other node leave until their brokers are back",
        )
    checked = mapping_of(seen.statuses)
    failing = [
        f"{node.name} ({', '.join(status.impaired)})"
        for node in mapping_of(seen.nodes).values()
        if (status := checked.get(node.instance_id or "")) and status.impaired
    ]
    if failing:
        yield producer_may_stall(
            "machine-impaired",
            "nodes of Kafka",
            f"checks of EC2's fail on {listing(failing)}: the machine may stall, and its group may "
            f"replace it at any moment",
            "replace these nodes one by one, or stop and start the machine",
        )
