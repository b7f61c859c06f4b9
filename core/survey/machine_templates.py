"""Judges what the next machine of a group will be, and what the present ones tell their pods.

Sources: EC2's launch templates and launch configurations, placement groups, instance metadata.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed, machines_of, pool_names
from core.survey.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    producer_may_stall,
    worth_knowing,
)
from core.survey.node_facts import MachineTemplate, ScalingGroup
from core.unknown import mapping_of, of

SPOT = "spot"
IMDS = (
    "whatever runs there, or is made to fetch an address, may take the node's own rights at AWS "
    "(IMDSv1 asks for no token)"
)


def templates(seen: Surveyed) -> Iterator[Finding]:
    """Find groups whose next machine does not start, may be taken back, or tells too much."""
    for group in mapping_of(seen.groups).values():
        subject, known = group.title, mapping_of(seen.templates).get(group.name, ())
        for template in known:
            yield from _starts(template, group, subject)
        if any(template.metadata_open for template in known):
            yield worth_knowing(
                "metadata-open",
                subject,
                f"machines that it starts answer IMDSv1: {IMDS}",
                "set HttpTokens of its template to required",
            )
        named = {template.placement for template in known if template.placement}
        if places := sorted(
            named | ({f"placement group {p}"} if (p := group.placement) else set())
        ):
            yield worth_knowing(
                "group-placement",
                subject,
                f"it starts machines in {listing(places)} alone: where that has no room, a "
                f"replacement does not start, though its zone has",
                "see that it has room for one machine more (a spread group holds seven of a zone)",
            )


def _starts(template: MachineTemplate, group: ScalingGroup, subject: str) -> Iterator[Finding]:
    if template.missing:
        yield producer_may_stall(
            "template-gone",
            subject,
            f"it starts machines by {template.title}, which does not exist: no replacement starts",
            "name a template and version that exist before any node leaves",
        )
    if template.lost:
        yield producer_may_stall(
            "template-parts",
            subject,
            f"{template.title} names {listing(template.lost)}, which AWS has no more, or keeps "
            f"from this account: no replacement starts",
            "make a version that names what is there, before any node leaves",
        )
    # What EKS sells as spot it says of its own groups.
    if group.managed_node_group or template.market is None or group.may_be_spot:
        return
    spot = template.market == SPOT
    yield Finding(
        "group-spot" if spot else "group-block",
        Weight.BROKER,
        subject,
        f"{template.title} asks for {template.market}: the next node "
        + (
            "may be taken back with two minutes' notice"
            if spot
            else "ends when what was bought does, whatever runs there"
        ),
        "take the market options out of it",
    )


def metadata(seen: Surveyed) -> Iterator[Finding]:
    """Find machines that tell every pod too much, and handlers that are told nothing."""
    held = machines_of(seen)
    if told := [name for name, machine in held.items() if machine.metadata_open]:
        yield worth_knowing(
            "metadata-open",
            "nodes of Kafka",
            f"{listing(told)} answer IMDSv1: {IMDS}",
            "set HttpTokens of their template, node class or of the machines to required",
        )
    far = [name for name, machine in held.items() if machine.metadata_far]
    for handler in of(seen.handlers):
        if far and not handler.queue_mode and not handler.on_host:
            yield broker_may_die(
                "metadata-far",
                handler.title,
                f"it asks the metadata of {listing(far)} from a pod's network, which these answer "
                f"to the machine itself alone (hop limit 1, or none): it hears nothing",
                "let it use the host's network, or run it in queue mode",
            )


def node_classes(seen: Surveyed) -> Iterator[Finding]:
    """Find NodePools whose class starts nothing, elsewhere, or another image at any time."""
    for name in pool_names(seen):
        pool = mapping_of(seen.node_pools).get(name)
        if pool is None:
            continue
        found = mapping_of(seen.node_classes).get(pool.node_class or "")
        if found is None:
            continue
        subject = f"NodePool {name}"
        mine = [node for node in mapping_of(seen.nodes).values() if node.node_pool == name]
        if found.not_ready and not pool.stuck:
            yield producer_may_stall(
                "karpenter-stuck",
                subject,
                f"Karpenter starts no node of it: {found.title} is not ready ({found.not_ready}); "
                f"a broker that leaves waits for one",
                "settle that before any node leaves",
            )
        zones = set(found.subnets.values())
        if zones and (apart := [n for n in mine if n.zone and n.zone not in zones]):
            yield broker_may_die(
                "karpenter-moved",
                subject,
                f"{listing(f'{node.name} is in {node.zone}' for node in apart)}, and {found.title} "
                f"names subnets in {listing(zones)} alone: a replacement cannot take the broker's "
                f"volume",
                "let it select a subnet of that zone again before the node leaves",
            )
        if found.newest_image:
            yield worth_knowing(
                "karpenter-latest",
                subject,
                f"{found.title} takes whatever image is newest ({found.newest_image}): on the day "
                f"that AWS publishes one, every node of it has drifted and is replaced",
                "name a version (alias: al2023@v20261101), and raise it when you mean to rotate",
            )
        if found.metadata_open:
            yield worth_knowing(
                "metadata-open",
                subject,
                f"machines that {found.title} starts answer IMDSv1: {IMDS}",
                "set httpTokens of its metadataOptions to required",
            )
