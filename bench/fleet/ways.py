"""Three ways to take every broker through a restart, and a broker that is not in sync in the way.

Each returns when the cluster is whole again. `ours` asks Kafka before each node; `evict` is what
the node termination handler does by itself, under the operator's disruption budget of one; `kill`
is what nobody would do on purpose.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.fleet.ground import FleetTwin
from cli.rotate import Rotations
from core.ground import naming
from core.ground.errors import StillwaterError
from core.ground.naming import TWIN_ENVIRONMENT
from core.rotation.run_record import Run, RunState
from local.demo import rotation as demo
from local.demo.result import DemoRotation
from tests.integration.cluster import BROKERS

ROTATION_SECONDS = 600.0
# How long the way is watched while a broker lags: a plain eviction takes about ten.
WATCHED_SECONDS = 30.0
LAGGING, LEAVING = 20, 10


@dataclass
class Told:
    """What a way had to say beside its figures."""

    sentences: list[str] = field(default_factory=list)


def ours(ground: FleetTwin) -> Told:
    """Let a rotation run take all brokers, one after the other."""
    return Told([rotate(ground, sorted(BROKERS)).reason])


def root_volumes(ground: FleetTwin) -> Told:
    """Let a rotation run replace the root volumes of all brokers' machines, one after the other."""
    run = rotate(ground, sorted(BROKERS), in_place=True)
    moved = [f"broker {turn.node_id}: {turn.by_replacement}" for turn in run.turns]
    return Told([run.reason, *(each for each in moved if not each.endswith(": "))])


def evict(ground: FleetTwin) -> Told:
    """Announce that every broker's node goes; the handler drains each as the budget allows."""
    with ground.alone():
        handler = PlainHandler(
            ground, [demo.terminate(ground.cluster.twin, n) for n in sorted(BROKERS)]
        )
        handler.follow()
        ground.settle()
    return Told()


def kill(ground: FleetTwin) -> Told:
    """Kill one broker after the other, each once the cluster is whole."""
    for node_id in sorted(BROKERS):
        ground.restart(node_id, signal.SIGKILL)
        ground.settle()
    return Told()


def ours_beside_a_lagging_broker(ground: FleetTwin) -> Told:
    """Start a run while another broker is out of sync: it must wait until that one is back."""
    runs = rotations()
    with ground.slow_follower(LAGGING):
        before = ground.java(LEAVING)
        said = _start(runs, [LEAVING])
        time.sleep(WATCHED_SECONDS)
        stayed = ground.java(LEAVING) == before
        run = runs.run()
        reason = run.turn_of(LEAVING).reason or run.reason if run else said
    over = _follow(ground, runs)
    return Told(
        [f"broker {LEAVING} {'waited' if stayed else 'was stopped'}: {reason}", over.reason]
    )


def evict_beside_a_lagging_broker(ground: FleetTwin) -> Told:
    """Let the handler drain a node while another broker is out of sync."""
    with ground.alone():
        with ground.slow_follower(LAGGING):
            handler = PlainHandler(ground, [demo.terminate(ground.cluster.twin, LEAVING)])
            stopped = handler.follow(WATCHED_SECONDS)
        handler.follow()
        ground.settle()
    return Told([f"broker {LEAVING} {'was drained' if stopped else 'was not drained'}"])


def rotations() -> Rotations:
    """Return the twin's rotation runs, as `stillwater rotate` meets them."""
    return Rotations.named(TWIN_ENVIRONMENT)


def rotate(ground: FleetTwin, node_ids: Sequence[int], **asked: Any) -> Run:
    """Take brokers through a run; return it once it is over and the cluster whole.

    Raises InvalidInput where the run is refused.
    """
    runs = rotations()
    _start(runs, node_ids, **asked)
    return _follow(ground, runs)


def _start(runs: Rotations, node_ids: Sequence[int], **asked: Any) -> str:
    return str(runs.ask("start", selection={"node_ids": list(node_ids)}, **asked)["said"])


def _follow(ground: FleetTwin, runs: Rotations) -> Run:
    """Return a run that is over, and the cluster whole; raises StillwaterError when it stops."""

    def over() -> bool:
        run = runs.run()
        if run is not None and run.state is RunState.STOPPED:
            raise StillwaterError(f"The run stopped: {run.reason}")
        return run is not None and run.state is RunState.DONE

    ground.wait(over, "the rotation run is done", ROTATION_SECONDS)
    ground.settle()
    run = runs.run()
    assert run is not None
    return run


@dataclass
class PlainHandler:
    """The cluster's own node termination handler, fed what AWS announces and nothing else.

    It drains and completes its hook; the second hook, which an account without the toolkit does not
    have, is completed as soon as it has.
    """

    ground: FleetTwin
    rotations: Sequence[DemoRotation]
    _gates: dict[str, dict[str, Any]] = field(default_factory=dict)
    _completed: set[str] = field(default_factory=set)

    def follow(self, seconds: float | None = None) -> bool:
        """Feed it until every node is drained, or for some seconds; say whether they all are."""
        deadline = time.monotonic() + (seconds or ROTATION_SECONDS)
        while time.monotonic() < deadline:
            self.ground.cluster.twin.check_alive()
            self._feed()
            self._complete()
            if len(self._completed) == len(self.rotations) and seconds is None:
                return True
            time.sleep(0.3)
        return len(self._completed) == len(self.rotations)

    def _feed(self) -> None:
        """Hand the announcements of the drain's hook to the handler, as its own rule would."""
        queues, outputs = self.ground.cluster.twin.aws("sqs"), self.ground.cluster.outputs
        events = str(outputs["events_queue_url"])
        answer = queues.receive_message(QueueUrl=events, MaxNumberOfMessages=10)
        for message in answer.get("Messages", []):
            detail = json.loads(message["Body"]).get("detail", {})
            if detail.get("LifecycleHookName") == naming.DRAIN_HOOK:
                queues.send_message(
                    QueueUrl=str(outputs["nth_queue_url"]), MessageBody=message["Body"]
                )
            elif detail.get("LifecycleHookName") == naming.GATE_HOOK:
                self._gates[detail["EC2InstanceId"]] = detail
            queues.delete_message(QueueUrl=events, ReceiptHandle=message["ReceiptHandle"])

    def _complete(self) -> None:
        ours = {rotation.instance_id for rotation in self.rotations}
        for fact in self.ground.cluster.facts("hook_completed", hook=naming.DRAIN_HOOK):
            instance_id = str(fact["instance"])
            gate = self._gates.get(instance_id)
            if instance_id not in ours - self._completed or gate is None:
                continue
            self.ground.cluster.twin.aws("autoscaling").complete_lifecycle_action(
                LifecycleHookName=naming.GATE_HOOK,
                AutoScalingGroupName=gate["AutoScalingGroupName"],
                InstanceId=instance_id,
                LifecycleActionResult="CONTINUE",
            )
            self._completed.add(instance_id)
