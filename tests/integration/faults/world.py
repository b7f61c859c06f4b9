"""The handlers between the twin's AWS and a modelled cluster, on a clock that a case moves.

Real: the Lambda entry points, everything they call, DynamoDB, SQS with redrive, EventBridge, Auto
Scaling groups with their hooks, EC2 instances and volumes. Modelled (machinery, drains): kubelets,
scheduler, brokers and the node termination handler. Real time never decides: a
step goes from one thing that is due to the next, however long the machine takes for it.

`broken` collects every breach of what must hold at any moment, whatever goes wrong:

- no more brokers are out than `may_be_out`;
- a drain is forwarded with the lease in hand and a replacement Ready (a two-minute warning aside);
- no hook gets two different answers, and the gate opens only when the broker that left is back,
  and no broker or volume is behind it;
- no group is asked for more than its maximum;
- no instance ends under a broker, unless the case itself ends it.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from core.fixed import EVENTS_MAX_RECEIVE_COUNT, TICKS_MAX_RECEIVE_COUNT
from core.incidents import Incident, State
from core.naming import DRAIN_HOOK, GATE_HOOK
from core.observations import HookResult
from core.rotation import valid_holder
from handlers import interruption, sweep, tick
from handlers.ledger import rounds
from local import environment
from tests.integration.aws.cloud import Cloud
from tests.integration.faults.drains import TerminationHandler
from tests.integration.faults.feed import Feed, delivered
from tests.integration.faults.machinery import RUNS, Machinery
from tests.integration.faults.taps import Call, Killed, Taps
from tests.integration.faults.wiring import make_table, wire
from tests.unit.handlers.fakes import TAG, ZONES

STEP_SECONDS = 15.0
SWEEP_SECONDS = 60.0
MAXIMUM = 2
# Chains of ticks without a wait are short; one that never ends is a fault of its own.
MOST_TICKS_AT_ONCE = 60
RETAIN = {"RetentionTriggers": {"TerminateHookAbandon": "retain"}}
DRAINS = frozenset({State.DRAINING, State.GATING})


@dataclass
class World:
    cloud: Cloud
    monkeypatch: pytest.MonkeyPatch
    taps: Taps = field(default_factory=Taps)
    now: float = field(default_factory=time.time)
    may_be_out: int = 1
    sweeps: bool = True
    killed: set[str] = field(default_factory=set)  # instances that the case itself has ended
    broken: list[str] = field(default_factory=list)
    hooks: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    forwarded: list[str] = field(default_factory=list)  # instances, each time one was
    terminated: list[str] = field(default_factory=list)  # the same, through their group
    since: float = 0.0
    _invocations: int = 0

    def __post_init__(self) -> None:
        groups = {
            zone: self.cloud.group(
                self.cloud.network(zone[-1]),
                DRAIN_HOOK,
                GATE_HOOK,
                seconds=7200,
                MaxSize=MAXIMUM,
                Tags=[{"Key": TAG, "Value": "true", "PropagateAtLaunch": True}],
                InstanceLifecyclePolicy=RETAIN,
            )
            for zone in ZONES.values()
        }
        self.events = Feed(self.cloud, EVENTS_MAX_RECEIVE_COUNT)
        self.ticks = Feed(self.cloud, TICKS_MAX_RECEIVE_COUNT)
        self.cloud.rule(
            {
                "source": ["aws.autoscaling"],
                "detail-type": ["EC2 Instance-terminate Lifecycle Action"],
                "detail": {"AutoScalingGroupName": list(groups.values())},
            },
            {"Id": "events", "Arn": self.cloud.queue_arn(self.events.url)},
        )
        self.machinery = Machinery(self.cloud, groups)
        self.machinery.begin(self.now)
        self.handler = TerminationHandler(self.machinery, self.cloud.queue())
        self.ledger = wire(self, make_table(self.cloud))
        self._next_sweep = self.now + SWEEP_SECONDS
        self.renew()

    def renew(self) -> None:
        """Forget the faults and findings of the last case; the cluster is whole."""
        self.taps.clear()
        self.taps.before.append(self._about_to)
        self.taps.after.append(self._watch)
        self.events.post = self.ticks.post = delivered
        self.may_be_out, self.sweeps, self.since = 1, True, self.now
        for record in (self.killed, self.broken, self.hooks, self.forwarded, self.terminated):
            record.clear()
        self.handler.drained.clear()

    # What a case does to the world.

    def instance(self, node_id: int) -> str:
        found = self.machinery.home(node_id)
        assert found is not None
        return found

    def terminate(self, *node_ids: int) -> list[str]:
        """Have groups terminate brokers' instances, all at the same moment."""
        leaving = [self.instance(node_id) for node_id in node_ids]
        for instance_id in leaving:
            self.cloud.terminate(instance_id)
        return leaving

    def announce(self, body: str) -> None:
        """Put a message on the events queue, as EventBridge or anybody else might."""
        self.events.send(body)

    def kill(self, node_id: int) -> str:
        """End a broker's instance without a word."""
        instance_id = self.instance(node_id)
        self.killed.add(instance_id)
        self.cloud.ec2.terminate_instances(InstanceIds=[instance_id])
        return instance_id

    def ended(self, instance_id: str) -> None:
        """Wait until EC2 has ended an instance: machines shut down on another clock."""

        def over() -> bool:
            found = self.cloud.ec2.describe_instances(InstanceIds=[instance_id])
            state = found["Reservations"][0]["Instances"][0]["State"]["Name"]
            return str(state) == "terminated" and not self._is_member(instance_id)

        self.cloud.eventually(over)

    def _is_member(self, instance_id: str) -> bool:
        groups = self.machinery.groups.values()
        return any(instance_id in self.cloud.members(group) for group in groups)

    def spare(self, zone: str, leaving: str) -> str:
        """Return the instance that is to replace another of its zone."""
        members = self.cloud.members(self.machinery.groups[zone])
        (found,) = (i for i, s in members.items() if s == "InService" and i != leaving)
        return found

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while self.now < until:
            self.step()

    def run_until(self, what: Callable[[], bool], seconds: float = 900.0) -> None:
        until = self.now + seconds
        while not what():
            assert self.now < until, f"it did not come true within {seconds:.0f} s of the case"
            self.step()

    def incident(self, instance_id: str) -> Incident | None:
        found = rounds(self.ledger, instance_id)
        return found[-1] if found else None

    def state(self, instance_id: str) -> State | None:
        found = self.incident(instance_id)
        return None if found is None else found.state

    def finish(self, seconds: float = 3000.0) -> None:
        """Let time pass until nothing is left to do."""
        until = self.now + seconds
        while not self.at_rest():
            if self.machinery.settled() and not self.ledger.open_incidents():
                # Only messages are left that come later: nothing happens until they do.
                later = min(self.events.next_at(), self.ticks.next_at())
                self.now = self.now if later == math.inf else max(self.now, later)
            if self.now >= until:
                left = [(i.id, i.state, i.reason) for i in self.ledger.open_incidents()]
                self.broken.append(f"It never came to rest: {left}, out {self.machinery.out()}.")
                return
            self.step()

    def at_rest(self) -> bool:
        return (
            self.now > self.since
            and self.machinery.settled()
            and self.events.quiet
            and self.ticks.quiet
            and not self.handler.busy
            and not self.machinery.out()
            and not self.ledger.open_incidents()
        )

    # One step of time.

    def step(self) -> None:
        """Do what is due now, then move the clock to what is due next."""
        if self.now >= self._next_sweep:
            self._next_sweep = self.now + SWEEP_SECONDS
            if self.sweeps:
                self._invoke("sweep", lambda: sweep.handler({}, None))
        for message in self.events.take(self.now):
            self.deliver("interruption", self.events, message)
        for _ in range(MOST_TICKS_AT_ONCE):
            due = self.ticks.take(self.now)
            for message in due:
                self.deliver("tick", self.ticks, message)
            if not due:
                break
        else:
            self.broken.append("Ticks follow each other without a wait.")
        self.machinery.act(self.now)
        self.handler.act(self.now)
        self._check()
        following = min(
            self._next_sweep,
            self.events.next_at(),
            self.ticks.next_at(),
            self.machinery.next_at(self.now),
        )
        self.now = min(max(following, self.now + 1), self.now + STEP_SECONDS)

    def deliver(self, function: str, feed: Feed, message: Any) -> None:
        """Invoke a function with one message; what it does not answer well comes again."""
        entry = tick.handler if function == "tick" else interruption.handler
        body = message["Body"] if function == "tick" else _stamped(message["Body"], self.now)
        record = {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": body,
            "attributes": message["Attributes"],
            "messageAttributes": {},
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": self.cloud.queue_arn(feed.url),
            "awsRegion": environment.REGION,
        }
        answer = self._invoke(function, lambda: entry({"Records": [record]}, None))
        if answer is not None and not answer["batchItemFailures"]:
            feed.done(message)
        else:
            feed.failed(message, self.now)

    def _invoke(self, function: str, call: Callable[[], Any]) -> Any:
        outer = self.taps.function, self.taps.invocation
        self._invocations += 1
        self.taps.function, self.taps.invocation = function, self._invocations
        try:
            return call()
        except Killed:
            return None
        except Exception:
            if function != "sweep":
                raise
            return None  # Its next run is a minute away.
        finally:
            self.taps.function, self.taps.invocation = outer

    # What must hold at any moment.

    def _about_to(self, call: Call) -> None:
        if call.name == "nth.send":
            self._check_drain(json.loads(call.arguments[0]))

    def _watch(self, call: Call, answer: Any) -> None:
        if call.name == "cloud.complete_hook" and answer:
            _, hook, instance_id, _, result = call.arguments
            self._check_answer(hook, instance_id, HookResult(result))
        elif call.name == "nth.send":
            detail = json.loads(call.arguments[0])
            detail = detail.get("detail", detail)
            self.forwarded.append(detail.get("EC2InstanceId") or detail["instance-id"])
        elif call.name == "cloud.terminate_in_group" and answer:
            self.terminated.append(call.arguments[0])
        elif call.name == "cloud.set_desired" and call.arguments[1] > MAXIMUM:
            self.broken.append(f"A group was asked for {call.arguments[1]} instances.")

    def _check_drain(self, event: dict[str, Any]) -> None:
        detail = event.get("detail", event)
        instance_id = detail.get("EC2InstanceId") or detail["instance-id"]
        incident = self.incident(instance_id)
        assert incident is not None
        node, nodes = self.machinery.node(instance_id), self.machinery.cluster.node_views
        if incident.urgent or incident.node_id is None or node is None:
            return
        holder = valid_holder(self.ledger.lease(), self.now)
        if holder != incident.id:
            self.broken.append(f"{incident.id} is drained while {holder} has the lease.")
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
        incident = self.incident(instance_id)
        if instance_id not in self.killed and incident and incident.node_id in self.machinery.out():
            self.broken.append(f"{instance_id} was let go before {incident.node_id} was back.")
        for node_id in ZONES:
            if self.machinery.home(node_id) == instance_id:
                self.broken.append(f"{instance_id} was let go under broker {node_id}.")
            elif instance_id not in self.killed and self.machinery.holder(node_id) == instance_id:
                self.broken.append(f"{instance_id} was let go with broker {node_id}'s volume.")

    def _check(self) -> None:
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
        holder = valid_holder(self.ledger.lease(), self.now)
        if holder is not None:
            found.append(f"{holder} still has the lease.")
        if dead := self.events.dead() + self.ticks.dead():
            found.append(f"Dead letters: {dead}.")
        return found


def _stamped(body: str, now: float) -> str:
    """Say that what Auto Scaling announced was announced now: its clock is not the case's."""
    try:
        event = json.loads(body)
    except ValueError:
        return body
    if not isinstance(event, dict) or event.get("source") != "aws.autoscaling":
        return body
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({**event, "time": moment})
