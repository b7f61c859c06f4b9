"""Judges an EKS control plane: how long its version is supported, what EKS says is wrong with it.

Sources: EKS's version calendar, upgrade policies and insights; Kubernetes' version skew policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from core.survey.account_facts import ControlPlane
from core.survey.facts import Surveyed
from core.survey.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    worth_knowing,
)
from core.unknown import Unknown, of

# AWS's list price of a cluster, in every commercial region.
STANDARD_USD_PER_HOUR, EXTENDED_USD_PER_HOUR = 0.10, 0.60
SOON_SECONDS = 60 * 86_400.0
# Kubernetes supports a kubelet that is so many minor versions older than its API server.
MOST_SKEW, SKEW_SINCE_MINOR, MOST_SKEW_BEFORE = 3, 28, 2
_MINOR = re.compile(r"v?1\.(\d+)")


def support(seen: Surveyed) -> Iterator[Finding]:
    """Find a version that costs more than it must, or that AWS upgrades by itself."""
    plane = seen.control_plane
    if isinstance(plane, Unknown):
        return
    title = f"EKS cluster {plane.name}"
    if plane.support is None:
        yield not_judged(
            "support-unknown",
            title,
            f"EKS lists no Kubernetes {plane.version}: how long it is supported is not known",
            "look at it in EKS's console, and plan an upgrade",
        )
    elif plane.support == "UNSUPPORTED":
        yield producer_may_stall(
            "support-over",
            title,
            f"Kubernetes {plane.version} is supported no more: AWS upgrades its control plane at "
            f"any moment, in the middle of a rotation as well",
            "upgrade it now, at an hour that you choose",
        )
    elif plane.support == "EXTENDED_SUPPORT":
        yield _extended_support(plane, title, seen.read_at)
    elif plane.policy == "STANDARD" and _is_near(plane.standard_ends, seen.read_at):
        yield producer_may_stall(
            "support-ends",
            title,
            f"standard support of Kubernetes {plane.version} ends on {_day(plane.standard_ends)}, "
            f"and its upgrade policy is STANDARD: AWS then upgrades its control plane by itself",
            "upgrade it before that, at an hour that you choose",
        )


def _extended_support(plane: ControlPlane, title: str, now: float) -> Finding:
    ends = "a day that EKS does not name" if plane.extended_ends is None else None
    return Finding(
        "support-extended",
        Weight.PRODUCER if _is_near(plane.extended_ends, now) else Weight.ADVICE,
        title,
        f"Kubernetes {plane.version} of its control plane is in extended support, for "
        f"{EXTENDED_USD_PER_HOUR:.2f} USD an hour in place of {STANDARD_USD_PER_HOUR:.2f} until "
        f"{ends or _day(plane.extended_ends)}; then AWS upgrades it by itself",
        "upgrade the control plane, then rotate the nodes to its version",
    )


def _is_near(ends: float | None, now: float) -> bool:
    return ends is not None and ends - now < SOON_SECONDS


def _day(moment: float | None) -> str:
    return "?" if moment is None else f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"


def state(seen: Surveyed) -> Iterator[Finding]:
    """Find a control plane that is changed or deleted at this moment, or that EKS calls ill."""
    plane = seen.control_plane
    if isinstance(plane, Unknown):
        return
    title = f"EKS cluster {plane.name}"
    if plane.status == "DELETING":
        yield broker_may_die(
            "cluster-deleting",
            title,
            "somebody deletes it: its API server goes, and nothing brings a lost pod back",
            "save the volumes first (persistentVolumeReclaimPolicy Retain); a deletion cannot be "
            "taken back",
        )
    elif plane.status != "ACTIVE":
        yield producer_may_stall(
            "cluster-changing",
            title,
            f"its status is {plane.status}: its API server may be away for minutes, and a drain "
            f"that is under way with it",
            "let no node leave before its status is ACTIVE",
        )
    if plane.issues:
        yield producer_may_stall(
            "cluster-issues",
            title,
            f"EKS says of it: {listing(plane.issues)}",
            "settle what EKS names before any node leaves",
        )


def skew(seen: Surveyed) -> Iterator[Finding]:
    """Find nodes whose kubelet is older than the control plane allows, or newer."""
    plane = seen.control_plane
    if isinstance(plane, Unknown) or isinstance(seen.nodes, Unknown):
        return
    server = _minor(plane.version)
    if server is None:
        return
    most = MOST_SKEW if server >= SKEW_SINCE_MINOR else MOST_SKEW_BEFORE
    minors = {node.name: _minor(node.version or "") for node in seen.nodes.values()}
    behind = [name for name, minor in minors.items() if minor is not None and server - minor > most]
    ahead = [name for name, minor in minors.items() if minor is not None and minor > server]
    for names, how in ((behind, f"more than {most} minor versions older"), (ahead, "newer")):
        if names:
            yield producer_may_stall(
                "kubelet-skew",
                "nodes of Kafka",
                f"the kubelet of {listing(names)} is {how} than Kubernetes {plane.version} of the "
                f"control plane, which Kubernetes does not support",
                "rotate the nodes to an image of the control plane's version",
            )


def _minor(written: str) -> int | None:
    found = _MINOR.match(written)
    return int(found[1]) if found else None


def insights(seen: Surveyed) -> Iterator[Finding]:
    """Name what EKS has found that the next upgrade would meet."""
    open_ones = [each for each in of(seen.upgrade_insights) if each.status != "PASSING"]
    if open_ones:
        yield worth_knowing(
            "upgrade-insights",
            "the next upgrade",
            "EKS's upgrade insights say: "
            + listing(f"{each.name}: {each.status.lower()}" for each in open_ones),
            "read them (`aws eks list-insights`) before the control plane is upgraded",
        )
