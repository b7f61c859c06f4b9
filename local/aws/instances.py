"""EC2 instances in the twin: they boot, they shut down, they say so, and no address comes twice.

moto's instances run the moment they are asked for and are gone the moment they are terminated,
silently. Here `pending` and `shutting-down` last as long as `Delays` says and every change of
state is an event, as EC2 sends it. The agenda says what is due when.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from moto.ec2.exceptions import OperationNotPermitted4
from moto.ec2.models import instances as moto_instances
from moto.ec2.models.subnets import Subnet

from local.aws import events
from local.environment import Delays
from local.journal import Write


class Agenda:
    """Actions with the time at which each is due; the time is passed in."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def add(self, at: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._entries, (at, next(self._order), action))

    def run_due(self, now: float) -> int:
        """Run what is due, earliest first, and return how many actions that were."""
        count = 0
        while self._entries and self._entries[0][0] <= now:
            heapq.heappop(self._entries)[2]()
            count += 1
        return count


LOG = logging.getLogger(__name__)


def again_and_again(
    name: str, each: Callable[[], object], every_seconds: float, stopped: threading.Event
) -> None:
    """Do rounds until stopped; one that fails is told, and time goes on for the rest."""
    while not stopped.wait(every_seconds):
        try:
            each()
        except Exception:
            LOG.exception("a round of the %s failed", name)


STATE_CODES = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}
ENDED = ("shutting-down", "terminated")

# An instance with this tag says that it was bought as the tag's value: moto buys everything on
# demand, and a spot warning counts for spot instances alone.
MARKET_TAG = "stillwater.dev/twin-market"


def state_of(instance: Any) -> str:
    """Return an instance's state name: pending, running, ..."""
    return str(instance.state)


class InstanceStates:
    """Takes instances through their states; callers hold locks.COMPUTE."""

    def __init__(self, agenda: Agenda, delays: Delays, journal: Write) -> None:
        self._agenda = agenda
        self._delays = delays
        self._journal = journal
        self._moto_terminate = moto_instances.Instance.terminate

    def enter(self, instance: Any, state: str) -> None:
        """Put an instance into a state and announce it."""
        instance._state.name, instance._state.code = state, STATE_CODES[state]  # noqa: SLF001  # moto keeps it there
        announce(instance, state)

    def boot(self, instance: Any) -> None:
        """Let a new or started instance run once it has booted."""
        self.enter(instance, "pending")
        self._agenda.add(
            time.time() + self._delays.boot_seconds, lambda: self._finish_boot(instance)
        )

    def _finish_boot(self, instance: Any) -> None:
        if state_of(instance) == "pending":
            self.enter(instance, "running")
            self._journal("moto", "instance_running", instance=instance.id)

    def shut_down(self, instance: Any) -> Any:
        """Begin to terminate an instance, once; return the state it was in."""
        before = copy.copy(instance._state)  # noqa: SLF001  # moto keeps it there
        if before.name not in ENDED:
            self.enter(instance, "shutting-down")
            self._agenda.add(
                time.time() + self._delays.shutdown_seconds, lambda: self._finish_end(instance)
            )
        return before

    def _finish_end(self, instance: Any) -> None:
        self._moto_terminate(instance)
        announce(instance, "terminated")
        self._journal("moto", "instance_ended", instance=instance.id)


def announce(instance: Any, state: str) -> None:
    backend = instance.ec2_backend
    arn = f"arn:aws:ec2:{backend.region_name}:{backend.account_id}:instance/{instance.id}"
    events.put(
        backend.account_id,
        backend.region_name,
        source="aws.ec2",
        detail_type="EC2 Instance State-change Notification",
        detail={"instance-id": instance.id, "state": state},
        resources=[arn],
    )


def _market(instance: Any) -> str | None:
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    market: str | None = tags.get(MARKET_TAG) or instance.__dict__.get("lifecycle")
    return market


def _set_market(instance: Any, market: str | None) -> None:
    instance.__dict__["lifecycle"] = market


def install(machines: InstanceStates) -> None:
    """Put these lives in the place of moto's."""
    moto_instances.Instance.lifecycle = property(_market, _set_market)
    backend_class = moto_instances.InstanceBackend
    instance_class = moto_instances.Instance
    moto_run = backend_class.run_instances
    moto_start, moto_stop = instance_class.start, instance_class.stop

    def run_instances(backend: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("region_name", backend.region_name)
        reservation = moto_run(backend, *args, **kwargs)
        for instance in reservation.instances:
            for interface in instance.nics.values():
                # EC2's default for the interface an instance brings; a subnet whose instances
                # are gone can then be deleted.
                interface.delete_on_termination = True
            machines.boot(instance)
        return reservation

    def terminate_instances(backend: Any, instance_ids: list[str]) -> list[tuple[Any, Any]]:
        found = backend.get_multi_instances_by_id(instance_ids)
        for instance in found:
            if instance.disable_api_termination is True:
                raise OperationNotPermitted4(instance.id)
        return [(instance, machines.shut_down(instance)) for instance in found]

    def start(instance: Any) -> Any:
        before = moto_start(instance)
        machines.boot(instance)
        return before

    def stop(instance: Any) -> Any:
        machines.enter(instance, "stopping")
        before = moto_stop(instance)
        announce(instance, "stopped")
        return before

    backend_class.run_instances = run_instances
    backend_class.terminate_instances = terminate_instances
    instance_class.start, instance_class.stop = start, stop
    _install_addresses(instance_class)


def _install_addresses(instance_class: Any) -> None:
    dns_name = instance_class.private_dns_name.fget
    ip_address = instance_class.private_ip_address.fget

    # A terminated instance has no name and no address any more, which is how NTH and the handlers
    # tell it from one that is about to go.
    instance_class.private_dns_name = property(
        lambda instance: "" if state_of(instance) == "terminated" else dns_name(instance)
    )
    instance_class.private_ip_address = property(
        lambda instance: None if state_of(instance) == "terminated" else ip_address(instance)
    )

    def retire_address(subnet: Any, address: str) -> None:
        # moto hands a freed address to the next instance, which would give a replacement the node
        # name of the node it replaces; EC2 takes far longer to come round to one.
        subnet._subnet_ips.pop(address, None)  # noqa: SLF001  # moto keeps it there

    Subnet.del_subnet_ip = retire_address


def all_backends(backend_dict: Any) -> Iterator[Any]:
    """Return every backend that moto has made so far, of every account and region."""
    for regions in list(backend_dict.values()):
        yield from list(regions.values())
