"""A node of a group that real Karpenter takes for its own, and drains.

Karpenter's kwok provider has no machines, so what it ends is handed to it: a NodeClaim that says of
one of the twin's own nodes what Karpenter would have written at its launch. From the claim's
deletion on everything is Karpenter's own: taint, evictions, volumes, the Node's end. Its provider
for AWS would terminate the instance then; here the bench does.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.fleet.ground import FleetTwin
from bench.fleet.ways import LEAVING
from bench.waiting import is_seen_within
from core.ground.constants import HOOKS
from core.ground.errors import StillwaterError
from core.ground.naming import ZONE_LABEL
from local.kubernetes.client import find
from local.processes import Child
from tests.integration import karpenter_kwok as kwok

GROUP, KIND = "karpenter.kwok.sh", "KWOKNodeClass"
FINALIZER = "karpenter.sh/termination"
TYPE_LABEL = "node.kubernetes.io/instance-type"
REACHED = ("Launched", "Registered", "Initialized", "Ready")


class LeavingMachine:
    """The node on which the leaving broker runs."""

    def __init__(self, ground: FleetTwin) -> None:
        self._ground, self._api = ground, ground.cluster.twin.api
        self.name = str(ground.cluster.pods()[LEAVING]["spec"]["nodeName"])
        node = self._api.get(f"{kwok.NODES}/{self.name}")
        self.provider_id = str(node["spec"]["providerID"])
        self.instance_id = self.provider_id.rpartition("/")[2]
        self.labels = dict(node["metadata"]["labels"])
        self._claim = f"{kwok.CLAIMS}/broker-{LEAVING}"
        self.karpenter: Child | None = None

    def hand_over(self) -> None:
        """Write what Karpenter's launch, registration and initialization leave."""
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        wanted = {"key": TYPE_LABEL, "operator": "In", "values": [self.labels[TYPE_LABEL]]}
        spec = {
            "nodeClassRef": {"group": GROUP, "kind": KIND, "name": "broker"},
            "requirements": [wanted],
        }
        named = {"name": f"broker-{LEAVING}", "finalizers": [FINALIZER]}
        self._api.post(
            kwok.CLAIMS,
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": named,
                "spec": spec,
            },
        )
        reached = [
            {
                "type": each,
                "status": "True",
                "reason": each,
                "message": "",
                "lastTransitionTime": now,
            }
            for each in REACHED
        ]
        status = {"providerID": self.provider_id, "nodeName": self.name, "conditions": reached}
        self._api.merge(f"{self._claim}/status", {"status": status})
        labels = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
        marked = {"metadata": {"labels": labels, "finalizers": [FINALIZER]}}
        self._api.merge(f"{kwok.NODES}/{self.name}", marked)

    def delete(self) -> None:
        """Delete the claim, as a person, an expiry or a consolidation does."""
        self._api.delete(self._claim)

    def over(self, seconds: float) -> bool:
        """Watch it for some seconds; say whether Karpenter has ended the Node."""
        return is_seen_within(seconds, self._is_gone, alive=self._require_karpenter)

    def finish(self, seconds: float) -> None:
        if not self.over(seconds):
            raise StillwaterError(f"Karpenter has not ended {self.name} in {seconds:.0f} s.")

    def sentences(self) -> list[str]:
        """Return what Karpenter told of the node as events, each sentence once."""
        events = self._api.get("/api/v1/namespaces/default/events")["items"]
        told = [e["message"] for e in events if e["involvedObject"].get("name") == self.name]
        return list(dict.fromkeys(m for m in told if "drain" in m.lower() or "evict" in m.lower()))

    def end(self, *, replaced: bool) -> None:
        """Terminate the instance, which is replaced where nothing came in its place before.

        Its hooks are completed then as soon as they are there: nobody else may be there to.
        """
        groups = self._ground.cluster.twin.aws("autoscaling")
        answer = groups.terminate_instance_in_auto_scaling_group(
            InstanceId=self.instance_id, ShouldDecrementDesiredCapacity=not replaced
        )
        if not replaced:
            return
        for hook in HOOKS:
            groups.complete_lifecycle_action(
                AutoScalingGroupName=answer["Activity"]["AutoScalingGroupName"],
                LifecycleHookName=hook,
                InstanceId=self.instance_id,
                LifecycleActionResult="CONTINUE",
            )

    def _require_karpenter(self) -> None:
        if self.karpenter is None or not self.karpenter.alive:
            said = self.karpenter.tail() if self.karpenter else "it was never started"
            raise StillwaterError(f"Karpenter does not run: {said}")

    def _is_gone(self) -> bool:
        return find(self._api, f"{kwok.NODES}/{self.name}") is None


@contextlib.contextmanager
def karpenters(ground: FleetTwin) -> Iterator[LeavingMachine]:
    """Have Karpenter run, and the leaving broker's node be its own, for the block."""
    machine, twin = LeavingMachine(ground), ground.cluster.twin
    kwok.define(twin.api)
    machine.hand_over()
    zones = [machine.labels[ZONE_LABEL]]
    types = kwok.instance_types(machine.labels[TYPE_LABEL], "amd64", zones)
    with (
        tempfile.TemporaryDirectory() as directory,
        kwok.running(twin, Path(directory), types) as karpenter,
    ):
        machine.karpenter = karpenter
        yield machine
