"""Judges the target groups by which clients reach brokers: what a drain leaves of connections.

Source: Elastic Load Balancing's target group attributes, for Network Load Balancers.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.account_facts import TargetGroup
from core.survey.facts import Surveyed, grace_of
from core.survey.finding import Finding, listing, not_judged, producer_may_stall, worth_knowing
from core.survey.kafka_facts import Pod
from core.survey.tool_facts import Balanced
from core.unknown import Unknown, mapping_of, of


def attributes(seen: Surveyed) -> Iterator[Finding]:
    """Find target groups that keep, cut or misdirect clients of a broker that leaves."""
    if isinstance(seen.target_groups, Unknown):
        return
    for binding in of(seen.balanced):
        pods = [pod for pod in of(seen.pods) if binding.covers(pod)]
        if not pods or binding.target_group is None:
            continue
        group = seen.target_groups.get(binding.target_group)
        if group is None:
            yield producer_may_stall(
                "target-group-gone",
                binding.title,
                f"it fills target group {name_in(binding.target_group)}, which does not exist in "
                f"this account and region: no client comes in by it",
                "name a target group that exists, or remove it",
            )
            continue
        subject = f"target group {group.name}"
        if not group.balancers:
            yield producer_may_stall(
                "target-group-unused",
                subject,
                f"{binding.title} fills it and no load balancer uses it: no client comes in by it, "
                f"ELB calls its targets `unused`, and the readiness gate of a new pod never opens",
                "let a listener of a load balancer forward to it, or remove the binding",
            )
        yield from _draining(group, binding, pods, subject, seen)
        yield from _kept_connections(group, subject)
        if len(pods) == 1 and group.network and not group.cross_zone:
            yield worth_knowing(
                "cross-zone",
                subject,
                f"{pods[0].name} is its one target and cross-zone balancing is off: clients that "
                f"hold the balancer's address of another zone meet nobody",
                "set load_balancing.cross_zone.enabled of this target group to true",
            )


def name_in(arn: str) -> str:
    """Return a target group's name: ...:targetgroup/<name>/<id> -> <name>."""
    return arn.rpartition(":targetgroup/")[2].partition("/")[0] or arn


def _draining(
    group: TargetGroup, binding: Balanced, pods: list[Pod], subject: str, seen: Surveyed
) -> Iterator[Finding]:
    """Find a delay that outlasts what is given to a drain."""
    delay = group.deregistration_seconds
    if not binding.by_node:
        grace = grace_of(pods)
        if delay > grace:
            yield worth_knowing(
                "deregistration",
                subject,
                f"its deregistration delay is {delay} s, longer than the {grace} s that brokers "
                f"have to stop: a connection that is open by then is cut by the broker's end, and "
                f"the rest of the delay protects nobody",
                f"set deregistration_delay.timeout_seconds below {grace}",
            )
        return
    groups = mapping_of(seen.groups).values()
    waits = [max(hook.heartbeat_seconds for hook in g.hooks) for g in groups if g.hooks]
    if waits and delay > min(waits):
        yield producer_may_stall(
            "deregistration",
            subject,
            f"its targets are nodes, its deregistration delay is {delay} s, and a lifecycle hook "
            f"holds a node for {min(waits)} s: the node ends while the balancer still sends over "
            f"it, and clients of every broker behind it are cut",
            f"set deregistration_delay.timeout_seconds below {min(waits)}, or let pods be the "
            f"targets (target type ip)",
        )


def _kept_connections(group: TargetGroup, subject: str) -> Iterator[Finding]:
    if not group.network:
        return
    if not group.ends_deregistered:
        yield worth_knowing(
            "connections-kept",
            subject,
            "it does not end connections when the deregistration delay is over: clients of a "
            "broker whose machine is lost hold dead connections until their own timeouts",
            "set deregistration_delay.connection_termination.enabled to true",
        )
    if not group.ends_unhealthy:
        yield producer_may_stall(
            "connections-unhealthy",
            subject,
            "it does not end connections of an unhealthy target: clients of a broker that hangs "
            "stay with it until their own timeouts",
            "set target_health_state.unhealthy.connection_termination.enabled to true",
        )
    if group.preserves_client_ip:
        yield worth_knowing(
            "client-ip",
            subject,
            "it preserves clients' addresses: a client in the cluster that a broker moves beside, "
            "on one node, cannot reach it by the balancer, and nodes must let every client's "
            "address in",
            "set preserve_client_ip.enabled to false, unless the brokers need the addresses",
        )


def unread_groups(seen: Surveyed) -> Iterator[Finding]:
    """Name bindings whose target group is not named in them, so that it was not judged."""
    silent = [
        each.title
        for each in of(seen.balanced)
        if each.kind != "Service"
        and each.target_group is None
        and any(each.covers(pod) for pod in of(seen.pods))
    ]
    if silent:
        yield not_judged(
            "target-group-unnamed",
            "target groups",
            f"{listing(silent)} names no targetGroupARN: what its target group does with "
            f"connections was not judged",
            "look at the target group's attributes yourself",
        )
