"""The handlers between the twin's AWS and a modelled cluster, on a clock that a case moves.

Real: the Lambda entry points, everything they call, DynamoDB, SQS with redrive, EventBridge, Auto
Scaling groups with their hooks, EC2 instances and volumes. Modelled: kubelets, scheduler, brokers
(machinery) and the node termination handler (below). Real time never decides: a step goes from one
thing that is due to the next, however long the machine takes for it.
"""

import contextlib
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.availability.lease import valid_leases
from core.ground.constants import EVENTS_MAX_RECEIVE_COUNT, TICKS_MAX_RECEIVE_COUNT
from core.ground.naming import DRAIN_HOOK, GATE_HOOK
from core.incidents.actions import HookResult
from core.incidents.observation import Policy
from core.incidents.record import Incident, State
from handlers import interruption, sweep, tick
from handlers.store.ledger import Ledger, rounds
from local import environment
from tests.integration.aws.cloud import Cloud
from tests.integration.faults.feed import Feed, delivery_times
from tests.integration.faults.machinery import RUNS, Machinery
from tests.integration.faults.taps import Call, Killed, Taps
from tests.integration.faults.wiring import POLICY, make_table, wire
from tests.unit.handlers.fakes import TAG
from tests.unit.handlers.healthy import ZONES

VISIBILITY_SECONDS = 110.0


@dataclass
class TerminationHandler:
    """NTH, modelled on its queue: cordon, evict, complete the drain hook.

    It remembers in memory which announcements it works on, and deletes a message when its drain is
    done. Killed, it forgets, and SQS shows the message again after its visibility timeout.
    """

    machinery: Machinery
    url: str
    alive: bool = True
    drained: list[str] = field(default_factory=list)  # instances, each time one was cordoned
    _known: set[str] = field(default_factory=set)
    _work: list[tuple[dict[str, Any], Any]] = field(default_factory=list)
    _hidden: list[tuple[float, Any]] = field(default_factory=list)

    def kill(self) -> None:
        """End it in the middle of whatever it does; its messages come back later."""
        self.alive = False
        self._known.clear()
        self._work.clear()

    def start(self) -> None:
        self.alive = True

    def expire(self) -> None:
        """Drop what waits: the queue's retention is over, which SQS counts by another clock."""
        self.machinery.cloud.sqs.purge_queue(QueueUrl=self.url)
        self._hidden.clear()

    @property
    def busy(self) -> bool:
        return bool(self._work)

    def act(self, now: float) -> None:
        """Take new messages, and go on with every drain as far as the cluster lets it."""
        sqs = self.machinery.cloud.sqs
        for at, message in list(self._hidden):
            if now >= at:
                self._hidden.remove((at, message))
                with contextlib.suppress(ClientError):  # It was deleted when its drain was done.
                    sqs.change_message_visibility(
                        QueueUrl=self.url,
                        ReceiptHandle=message["ReceiptHandle"],
                        VisibilityTimeout=0,
                    )
        if not self.alive:
            return
        for message in _receive_all(sqs, self.url):
            self._hidden.append((now + VISIBILITY_SECONDS, message))
            event = json.loads(message["Body"])
            id_ = str(event.get("id") or event.get("RequestId"))
            if id_ not in self._known:
                self._known.add(id_)
                self._work.append((event.get("detail", event), message))
        if self.machinery.api_answers:
            self._work = [work for work in self._work if not self._finished(*work, now=now)]

    def _finished(self, detail: dict[str, Any], message: Any, *, now: float) -> bool:
        instance_id = str(detail.get("EC2InstanceId") or detail.get("instance-id"))
        node = self.machinery.node(instance_id)
        if node is not None and node.schedulable:
            self.machinery.cordon(instance_id)
            self.drained.append(instance_id)
        pods = [
            id_
            for id_, pod in self.machinery.cluster.pods.items()
            if node is not None and pod.node_name == node.name
        ]
        for node_id in pods:
            self.machinery.evict(node_id, now)
        if pods:
            return False
        if "LifecycleHookName" in detail:
            with contextlib.suppress(ClientError):  # Somebody else has completed it.
                self.machinery.cloud.autoscaling.complete_lifecycle_action(
                    AutoScalingGroupName=detail["AutoScalingGroupName"],
                    LifecycleHookName=detail["LifecycleHookName"],
                    LifecycleActionToken=detail["LifecycleActionToken"],
                    LifecycleActionResult="CONTINUE",
                    InstanceId=instance_id,
                )
        self.machinery.cloud.sqs.delete_message(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"]
        )
        return True


def _receive_all(sqs: Any, url: str) -> list[Any]:
    # Hidden for longer than any test lasts: messages come back by the clock of the case alone.
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=40_000)
    return list(answer.get("Messages", []))


MAXIMUM = 2


@dataclass
class Witness:
    """Sees every call and every state, and writes down every breach of what must always hold.

    - no more brokers are out than `may_be_out`;
    - a drain is forwarded with the lease in hand and a replacement Ready, unless it is urgent;
    - no hook gets two different answers, and the gate opens only when the broker that left is back,
      and no broker or volume is behind it;
    - no group is asked for more than its maximum;
    - no instance ends under a broker, unless the case itself ends it.
    """

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
        return _incident(self.ledger, instance_id)

    def known(self, instance_id: str) -> Incident:
        """Return an instance's latest incident, which must be there."""
        found = self.incident(instance_id)
        assert found is not None
        return found

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
