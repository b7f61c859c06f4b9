"""What must hold at any moment of a case, whatever goes wrong; every breach is written down.

- no more brokers are out than `may_be_out`;
- a drain is forwarded with the lease in hand and a replacement Ready (a two-minute warning aside);
- no hook gets two different answers, and the gate opens only when the broker that left is back,
  and no broker or volume is behind it;
- no group is asked for more than its maximum;
- no instance ends under a broker, unless the case itself ends it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from core.availability.lease import valid_leases
from core.ground.naming import GATE_HOOK
from core.incidents.actions import HookResult
from core.incidents.record import Incident
from handlers.store.ledger import Ledger, rounds
from tests.integration.faults.machinery import RUNS, Machinery
from tests.integration.faults.taps import Call
from tests.unit.handlers.healthy import ZONES

MAXIMUM = 2


@dataclass
class Witness:
    """Sees every call of the functions and every state of the cluster."""

    machinery: Machinery
    ledger: Ledger
    clock: Callable[[], float]
    may_be_out: int = 1
    killed: set[str] = field(default_factory=set)  # instances that the case itself has ended
    broken: list[str] = field(default_factory=list)
    hooks: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    forwarded: list[str] = field(default_factory=list)  # instances, each time one was

    def renew(self) -> None:
        """Forget the last case."""
        self.may_be_out = 1
        for record in (self.killed, self.broken, self.hooks, self.forwarded):
            record.clear()

    def about_to(self, call: Call) -> None:
        """Look at a call before it is made."""
        if call.name == "nth.send":
            self._check_drain(json.loads(call.arguments[0]))

    def saw(self, call: Call, answer: Any) -> None:
        """Take down a call that was answered."""
        if call.name == "cloud.complete_hook" and answer:
            _, hook, instance_id, _, result = call.arguments
            self._check_answer(hook, instance_id, HookResult(result))
        elif call.name == "nth.send":
            detail = json.loads(call.arguments[0])
            detail = detail.get("detail", detail)
            self.forwarded.append(detail.get("EC2InstanceId") or detail["instance-id"])
        elif call.name == "cloud.set_desired" and call.arguments[1] > MAXIMUM:
            self.broken.append(f"A group was asked for {call.arguments[1]} instances.")

    def _check_drain(self, event: dict[str, Any]) -> None:
        detail = event.get("detail", event)
        instance_id = detail.get("EC2InstanceId") or detail["instance-id"]
        incident = _incident(self.ledger, instance_id)
        assert incident is not None
        node, nodes = self.machinery.node(instance_id), self.machinery.cluster.node_views
        if incident.urgent or incident.node_id is None or node is None:
            return
        holders = [each.holder for each in valid_leases(self.ledger.leases(), self.clock())]
        if holders[:1] != [incident.id]:
            self.broken.append(f"{incident.id} is drained while {holders} have the lease.")
        busy = {pod.node_name for pod in self.machinery.cluster.pods.values()}
        if node.name in busy and not any(
            n.zone == node.zone and n.ready and n.schedulable and n.name not in busy
            for n in nodes.values()
        ):
            self.broken.append(f"{incident.id} is drained without a replacement.")

    def _check_answer(self, hook: str, instance_id: str, result: HookResult) -> None:
        answers = self.hooks[instance_id, hook]
        answers.append(result.value)
        if len(set(answers)) > 1:
            self.broken.append(f"Hook {hook} of {instance_id} was answered {answers}.")
        if hook != GATE_HOOK or result is not HookResult.CONTINUE:
            return
        incident = _incident(self.ledger, instance_id)
        if instance_id not in self.killed and incident and incident.node_id in self.machinery.out():
            self.broken.append(f"{instance_id} was let go before {incident.node_id} was back.")
        for node_id in ZONES:
            if self.machinery.home(node_id) == instance_id:
                self.broken.append(f"{instance_id} was let go under broker {node_id}.")
            elif instance_id not in self.killed and self.machinery.holder(node_id) == instance_id:
                self.broken.append(f"{instance_id} was let go with broker {node_id}'s volume.")

    def look(self) -> None:
        """Compare the cluster with what it must never be."""
        out = self.machinery.out()
        if len(out) > self.may_be_out:
            self.broken.append(f"Brokers {out} are out at the same time.")
        for node_id in ZONES:
            home = self.machinery.home(node_id)
            ended = home is not None and self.machinery.states.get(home) not in RUNS
            if ended and home not in self.killed:
                self.broken.append(f"Instance {home} ended under broker {node_id}.")

    def shortcomings(self) -> list[str]:
        """Return what is broken, and what the end leaves undone of a whole cluster."""
        found = list(dict.fromkeys(self.broken))
        for node_id, zone in ZONES.items():
            home = self.machinery.home(node_id)
            serving = [i for i, s in self.machinery.lifecycles[zone].items() if s == "InService"]
            if serving != [home]:
                found.append(f"Broker {node_id} is on {home}, and {serving} serve in {zone}.")
            if home is not None and self.machinery.holder(node_id) != home:
                found.append(f"Broker {node_id}'s volume is not where it runs.")
        found += [
            f"{node.name} still carries a mark: {node}."
            for node in self.machinery.cluster.node_views.values()
            if node.ready and (node.spare_for or node.out_of_service)
        ]
        held = valid_leases(self.ledger.leases(), self.clock())
        return [*found, *(f"{each.holder} still has the lease." for each in held[:1])]


def _incident(ledger: Ledger, instance_id: str) -> Incident | None:
    found = rounds(ledger, instance_id)
    return found[-1] if found else None
