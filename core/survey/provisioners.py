"""Judges what Karpenter and EKS Auto Mode do to nodes of Kafka by themselves.

Sources: Karpenter's disruption, before karpenter.sh/v1 and since; EKS Auto Mode's node lifetime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from core.survey import starting
from core.survey.facts import Surveyed, grace_of, pool_names
from core.survey.finding import Finding, Weight, broker_may_die, listing, producer_may_stall
from core.survey.kafka_facts import Pod
from core.survey.node_facts import NodePool
from core.unknown import Unknown, mapping_of, of

DO_NOT_DISRUPT = ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict")
DISRUPTED_TAINT = "karpenter.sh/disrupted"
HARMLESS = ("Never", "WhenEmpty")
AT_MOST_ONE = ("0", "0%", "1")
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def node_pools(seen: Surveyed) -> Iterator[Finding]:
    """Find pools whose nodes are replaced by age, by price, by drift or by force."""
    for name in pool_names(seen):
        nodes = [node for node in mapping_of(seen.nodes).values() if node.node_pool == name]
        names = {node.name for node in nodes}
        pods = [pod for pod in of(seen.pods) if pod.node in names]
        kept = {node.name for node in nodes if _is_undisturbed(node.annotations)}
        pool = mapping_of(seen.node_pools).get(name)
        if any(node.auto_mode for node in nodes):
            yield _auto(name, pool)
        elif pool is not None:
            yield from _expiry(pool, pods)
        if pool is not None:
            exposed = _exposed_pods([pod for pod in pods if pod.node not in kept])
            yield from _grace(pool, pods)
            yield from _consolidation(pool, exposed)
            yield from _drift(pool, exposed)
            yield from _toleration(pool, pods)
            yield from starting.findings(pool, nodes, pods)


def _auto(name: str, pool: NodePool | None) -> Finding:
    own = f", here after {pool.expire_after}" if pool and pool.expire_after else ""
    return broker_may_die(
        "auto-mode",
        f"NodePool {name}",
        f"its nodes are EKS Auto Mode's, which replaces every node after 21 days at the "
        f"latest{own}, by force when a drain takes too long",
        "run brokers on groups of your own, or replace their nodes yourself before that",
    )


def _expiry(pool: NodePool, pods: list[Pod]) -> Iterator[Finding]:
    if pool.expire_after is None or (not pool.forceful and not _exposed_pods(pods)):
        return
    forced = f", and after {pool.grace} deletes what is left" if pool.grace else ""
    how = (
        f"whatever the pool's budgets say{forced}"
        if pool.forceful
        else "at a time that Kafka did not choose"
    )
    yield Finding(
        "karpenter-expiry",
        Weight.BROKER if pool.forceful else Weight.PRODUCER,
        f"NodePool {pool.name}",
        f"expireAfter is {pool.expire_after}: Karpenter drains a node of that age {how}",
        "set expireAfter to Never and replace the nodes of brokers one by one",
    )


def _grace(pool: NodePool, pods: list[Pod]) -> Iterator[Finding]:
    least, given = grace_of(pods), seconds(pool.grace or "")
    if given is not None and given <= least:
        yield broker_may_die(
            "karpenter-grace",
            f"NodePool {pool.name}",
            f"terminationGracePeriod is {pool.grace}, and brokers ask for {least} s to stop: "
            f"Karpenter deletes them before, whatever PodDisruptionBudgets say",
            f"raise terminationGracePeriod well above {least} s",
        )


def _consolidation(pool: NodePool, exposed: list[str]) -> Iterator[Finding]:
    budget = pool.at_once("Underutilized")
    # Karpenter consolidates no static pool.
    still = pool.consolidation in HARMLESS or pool.replicas is not None
    if still or not exposed or (budget is not None and budget.written in AT_MOST_ONE):
        return
    held = "no budget holds that to one node at a time"
    if budget is not None and budget.of(pool.nodes or 0) <= 1:
        held = f"a budget of {budget.written} is one node at a time while the pool is small"
    yield producer_may_stall(
        "karpenter-consolidation",
        f"NodePool {pool.name}",
        f"consolidationPolicy is {pool.consolidation}: brokers are moved whenever fewer or "
        f"cheaper machines would do, {held}, and {listing(exposed)} do not say {DO_NOT_DISRUPT[0]}",
        f"set consolidationPolicy to WhenEmpty or a budget of 1 node, or annotate the pods "
        f"with {DO_NOT_DISRUPT[0]} until their nodes are to be rotated",
    )


def _drift(pool: NodePool, exposed: list[str]) -> Iterator[Finding]:
    """Find a pool of which a new image, or a change of its template, replaces nodes together."""
    budget = pool.at_once("Drifted")
    if not exposed or (budget is not None and budget.of(pool.nodes or 0) <= 1):
        return
    many = "all of its nodes" if budget is None else f"{budget.of(pool.nodes or 0)} of its nodes"
    yield producer_may_stall(
        "karpenter-drift",
        f"NodePool {pool.name}",
        f"after a new image, or a change of its template, Karpenter replaces {many} at once: no "
        f"budget for Drifted holds that to one, and {listing(exposed)} do not say "
        f"{DO_NOT_DISRUPT[0]}",
        "add a budget of 1 node for every reason",
    )


def _toleration(pool: NodePool, pods: list[Pod]) -> Iterator[Finding]:
    tolerant = [pod.title for pod in pods if pod.ignores_disruption]
    if tolerant:
        yield broker_may_die(
            "karpenter-toleration",
            f"NodePool {pool.name}",
            f"{listing(tolerant)} tolerate {DISRUPTED_TAINT}: Karpenter evicts them never, and "
            f"ends their node under them",
            "name the taints that the pods tolerate, instead of all of them",
        )


def _exposed_pods(pods: list[Pod]) -> list[str]:
    return [pod.title for pod in pods if not _is_undisturbed(pod.annotations)]


def _is_undisturbed(annotations: Mapping[str, str]) -> bool:
    return any(annotations.get(key) == "true" for key in DO_NOT_DISRUPT)


def controllers(seen: Surveyed) -> Iterator[Finding]:
    """Find nodes of Karpenter's whose controller is away, or hears nothing from AWS."""
    if isinstance(seen.node_provisioners, Unknown):
        return
    nodes = mapping_of(seen.nodes).values()
    pools = {node.node_pool for node in nodes if node.node_pool and not node.auto_mode}
    if not pools:
        return
    subject = f"NodePools {listing(pools)}"
    running = [each for each in seen.node_provisioners if not each.down]
    if not running:
        down = listing(each.title for each in seen.node_provisioners)
        yield producer_may_stall(
            "karpenter-missing",
            subject,
            (f"no pod of {down} is available" if down else "no controller of Karpenter's was found")
            + ": a node that is lost is not replaced",
            "bring Karpenter's controller back before any node leaves",
        )
    for each in running:
        if each.repairs:
            yield producer_may_stall(
                "karpenter-repair",
                each.title,
                f"feature gate NodeRepair is on: a node of {subject} that is unwell for half an "
                f"hour is ended at once, whatever budgets and Kafka say at the time",
                "take NodeRepair out of FEATURE_GATES, and replace sick nodes one by one",
            )
        if each.queue is None:
            yield broker_may_die(
                "karpenter-deaf",
                each.title,
                f"it has no INTERRUPTION_QUEUE: it drains no node of {subject} that AWS takes "
                f"back, retires or stops, and the machine ends with its broker",
                "name a queue that receives EC2's and Health's events, as Karpenter documents",
            )


def seconds(written: str) -> float | None:
    """Return a Go duration (1h30m) in seconds, or None where it is none."""
    parts = re.findall(r"([0-9.]+)(ms|h|m|s)", written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        return None
    return sum(float(number) * SECONDS[unit] for number, unit in parts)
