"""The handlers between the twin's AWS and a modelled cluster, on a clock that a case moves.

Real: the Lambda entry points, everything they call, DynamoDB, SQS with redrive, EventBridge, Auto
Scaling groups with their hooks, EC2 instances and volumes. Modelled (machinery, drains): kubelets,
scheduler, brokers and the node termination handler. Real time never decides: a
step goes from one thing that is due to the next, however long the machine takes for it.

`witness` collects every breach of what must hold at any moment, whatever goes wrong.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from core.ground.constants import EVENTS_MAX_RECEIVE_COUNT, TICKS_MAX_RECEIVE_COUNT
from core.ground.naming import DRAIN_HOOK, GATE_HOOK
from core.incidents.observation import Policy
from core.incidents.record import Incident, State
from handlers import interruption, sweep, tick
from handlers.store.ledger import rounds
from local import environment
from tests.integration.aws.cloud import Cloud
from tests.integration.faults.drains import TerminationHandler
from tests.integration.faults.feed import Feed, delivery_times
from tests.integration.faults.machinery import Machinery
from tests.integration.faults.taps import Killed, Taps
from tests.integration.faults.wiring import POLICY, make_table, wire
from tests.integration.faults.witness import MAXIMUM, Witness
from tests.unit.handlers.fakes import TAG
from tests.unit.handlers.healthy import ZONES

STEP_SECONDS = 15.0
SWEEP_SECONDS = 60.0
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
    sweeps: bool = True
    policy: Policy = POLICY
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
        self.witness = Witness(self.machinery, self.ledger, lambda: self.now)
        self._next_sweep = self.now + SWEEP_SECONDS
        self.renew()

    def renew(self) -> None:
        """Forget the faults and findings of the last case; the cluster is whole."""
        self.taps.clear()
        self.taps.before.append(self.witness.about_to)
        self.taps.after.append(self.witness.saw)
        self.events.post = self.ticks.post = delivery_times
        self.sweeps, self.since, self.policy = True, self.now, POLICY
        self.witness.renew()
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
        self.witness.killed.add(instance_id)
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
                self.witness.broken.append(
                    f"It never came to rest: {left}, out {self.machinery.out()}."
                )
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
            self.witness.broken.append("Ticks follow each other without a wait.")
        self.machinery.act(self.now)
        self.handler.act(self.now)
        self.witness.look()
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
        body = message["Body"] if function == "tick" else _stamp(message["Body"], self.now)
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

    def shortcomings(self) -> list[str]:
        """Return what is broken, and what the end leaves undone of a whole cluster."""
        found = self.witness.shortcomings()
        if dead := self.events.dead() + self.ticks.dead():
            found.append(f"Dead letters: {dead}.")
        return found


def _stamp(body: str, now: float) -> str:
    """Say that what Auto Scaling announced was announced now: its clock is not the case's."""
    try:
        event = json.loads(body)
    except ValueError:
        return body
    if not isinstance(event, dict) or event.get("source") != "aws.autoscaling":
        return body
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({**event, "time": moment})
