"""A station whose broker's node was terminated, as far along its way as a test needs."""

from __future__ import annotations

from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station


def announce(station: Station) -> Station:
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))
    station.announce(hook_event("gate"))
    station.tick_until_quiet()
    return station


def replace_machine(station: Station) -> Station:
    announce(station)
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.tick_until_quiet()
    return station


def drain_node(station: Station) -> Station:
    """The termination handler evicts the pod and completes its hook; the pod starts again."""
    replace_machine(station)
    station.cluster.waiting_hooks.discard((OLD, "drain"))
    station.cluster.kafka = healthy_kafka(out=10)
    station.cluster.place_pod(10, NEW, ready=False)
    station.tick_until_quiet()
    return station


def written_changes(station: Station) -> list[object]:
    """Return every change that anybody made to what is theirs."""
    theirs = station.cluster
    return [
        *(theirs.beats, theirs.completed, theirs.desired_calls, theirs.terminated),
        *(theirs.asked_to_terminate, theirs.reordered, theirs.released),
        station.termination_handler.sent,
        [n for n in theirs.node_views.values() if n.spare_for or n.out_of_service],
        [g.protected for g in theirs.groups.values() if g.protected],
    ]
