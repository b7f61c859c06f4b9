"""What stands between AWS and the handlers, modelled: kubelets, scheduler, volumes, brokers.

Instances, groups, hooks and volumes are the twin's AWS; when a node is there, a pod stops or a
broker is in sync follows from the clock passed in, so the same case takes the same steps each time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core.incidents.observation import BudgetView, NodeView
from core.views import ClusterView, PartitionView, VoterView
from handlers.adapters.aws import EBS_CSI_TAG
from tests.integration.aws.cloud import Cloud
from tests.unit.handlers.fakes import FakeCluster
from tests.unit.handlers.healthy import ZONES

BOOT_SECONDS = 20.0
STOP_SECONDS = 5.0
START_SECONDS = 5.0
NODE_GONE_SECONDS = 60.0
DEVICE = "/dev/xvdba"
KEPT = ("Pending", "InService", "Terminating:Wait", "Terminating:Retained")
RUNS = ("pending", "running")


@dataclass
class Machinery:
    """Three zones, one group and one broker each."""

    cloud: Cloud
    groups: Mapping[str, str]  # zone -> group
    cluster: FakeCluster = field(default_factory=FakeCluster)
    api_answers: bool = True
    evictions_allowed: bool = True
    lifecycles: dict[str, dict[str, str]] = field(default_factory=dict)  # zone -> its members
    states: dict[str, str] = field(default_factory=dict)  # instance -> EC2's state of it
    _born: dict[str, float] = field(default_factory=dict)
    _ended: dict[str, float] = field(default_factory=dict)
    _stopping: dict[int, float] = field(default_factory=dict)
    _starting: dict[int, float] = field(default_factory=dict)
    _volumes: dict[int, str] = field(default_factory=dict)

    def begin(self, now: float) -> None:
        """Let every zone have its node and every node its broker and volume."""
        self._look()
        for node_id, zone in ZONES.items():
            (instance_id,) = self.lifecycles[zone]
            self._born[instance_id] = now - BOOT_SECONDS
            made = self.cloud.ec2.create_volume(
                AvailabilityZone=zone,
                Size=1,
                TagSpecifications=[
                    {"ResourceType": "volume", "Tags": [{"Key": EBS_CSI_TAG, "Value": "true"}]}
                ],
            )
            self._volumes[node_id] = str(made["VolumeId"])
            self.cloud.later(self.cloud.ec2.delete_volume, VolumeId=made["VolumeId"])
        self._boot(now)
        for node_id, zone in ZONES.items():
            self._settle_on(node_id, next(iter(self.lifecycles[zone])), ready=True)
        self._speak()

    def act(self, now: float) -> None:
        """Do what is due: machines, then pods, then what Kafka says of them."""
        self._look()
        self._boot(now)
        self._end(now)
        self._stop_and_free(now)
        self._place(now)
        for node_id, at in list(self._starting.items()):
            if now >= at:
                del self._starting[node_id]
                self._set(node_id, ready=True)
        self._speak()

    def settled(self) -> bool:
        """Say whether every zone has one instance, in service and with its broker on it."""
        return not self.out() and all(
            [i for i, s in self.lifecycles[zone].items() if s in KEPT] == [self.home(node_id)]
            for node_id, zone in ZONES.items()
        )

    def next_at(self, now: float) -> float:
        """Return when the next of what is under way is due."""
        booting = [
            at + BOOT_SECONDS for i, at in self._born.items() if i not in self.cluster.node_views
        ]
        due = (*booting, *self._stopping.values(), *self._starting.values())
        return min((at for at in due if at > now), default=math.inf)

    def home(self, node_id: int) -> str | None:
        """Return the instance a broker runs on, or is to start on."""
        name = self.cluster.pods[node_id].node_name
        found = (i for i, node in self.cluster.node_views.items() if node.name == name)
        return next(found, None) if name else None

    def out(self) -> list[int]:
        """Return the brokers that do not serve."""
        return [id_ for id_, pod in self.cluster.pods.items() if not pod.ready or pod.stopping]

    def node(self, instance_id: str) -> NodeView | None:
        return self.cluster.node_views.get(instance_id)

    def cordon(self, instance_id: str) -> None:
        node = self.cluster.node_views[instance_id]
        self.cluster.node_views[instance_id] = replace(node, schedulable=False)

    def evict(self, node_id: int, now: float) -> bool:
        """Have a pod stop; False while its disruption budget refuses."""
        if node_id in self._stopping:
            return True
        if not self.evictions_allowed or any(other != node_id for other in self.out()):
            return False
        self._stopping[node_id] = now + STOP_SECONDS
        self._set(node_id, stopping=True)
        self._speak()
        return True

    def holder(self, node_id: int) -> str | None:
        """Return the instance EC2 has a broker's volume attached to."""
        found = self.cloud.ec2.describe_volumes(VolumeIds=[self._volumes[node_id]])["Volumes"][0]
        return next((str(a["InstanceId"]) for a in found["Attachments"]), None)

    def _look(self) -> None:
        """Read what AWS has: members and their lifecycle, instances and their state."""
        answer = self.cloud.autoscaling.describe_auto_scaling_groups(
            AutoScalingGroupNames=list(self.groups.values())
        )
        by_name = {
            group["AutoScalingGroupName"]: {
                m["InstanceId"]: m["LifecycleState"] for m in group["Instances"]
            }
            for group in answer["AutoScalingGroups"]
        }
        self.lifecycles = {zone: by_name.get(name, {}) for zone, name in self.groups.items()}
        known = {*self.cluster.node_views, *(i for m in self.lifecycles.values() for i in m)}
        found = self.cloud.ec2.describe_instances(InstanceIds=sorted(known)) if known else {}
        self.states = {
            str(i["InstanceId"]): str(i["State"]["Name"])
            for reservation in found.get("Reservations", [])
            for i in reservation["Instances"]
        }

    def _boot(self, now: float) -> None:
        for zone, members in self.lifecycles.items():
            for instance_id, lifecycle in members.items():
                if not lifecycle.startswith(("Pending", "InService")):
                    continue
                born = self._born.setdefault(instance_id, now)
                due = now - born >= BOOT_SECONDS and instance_id not in self.cluster.node_views
                if due and self.states.get(instance_id) in RUNS:
                    # Machines boot on another clock; the model waits for this one.
                    self._in_service(zone, instance_id)
                    self.cluster.add_instance(instance_id, zone)
                    self.cluster.add_node(instance_id)

    def _in_service(self, zone: str, instance_id: str) -> None:
        def looked() -> bool:
            return self.cloud.members(self.groups[zone]).get(instance_id) != "Pending"

        self.cloud.eventually(looked)

    def _end(self, now: float) -> None:
        for instance_id, node in list(self.cluster.node_views.items()):
            if self.states.get(instance_id, "terminated") in RUNS:
                continue
            ended = self._ended.setdefault(instance_id, now)
            self.cluster.node_views[instance_id] = replace(node, ready=False)
            for node_id in self._pods_on(node.name):
                self._stopping.pop(node_id, None)
                self._starting.pop(node_id, None)
                self._set(node_id, ready=False, stopping=False)
            if now - ended >= NODE_GONE_SECONDS and self.api_answers:
                del self.cluster.node_views[instance_id]
                self._free(node.name)

    def _stop_and_free(self, now: float) -> None:
        for node_id, at in list(self._stopping.items()):
            if now >= at:
                del self._stopping[node_id]
                self._release(node_id)
        for node in list(self.cluster.node_views.values()):
            if node.out_of_service and not node.ready:
                self._free(node.name)

    def _free(self, node_name: str) -> None:
        for node_id in self._pods_on(node_name):
            self._release(node_id)

    def _pods_on(self, node_name: str) -> list[int]:
        return [id_ for id_, pod in self.cluster.pods.items() if pod.node_name == node_name]

    def _release(self, node_id: int) -> None:
        """Take a pod off its node and its volume off the instance."""
        name = self.cluster.pods[node_id].node_name
        self.cluster.place_pod(node_id, None, ready=False)
        self.cluster.attached.pop(str(name), None)
        holder = self.holder(node_id)
        if holder is not None:  # An instance that ended has let go itself.
            self.cloud.ec2.detach_volume(
                VolumeId=self._volumes[node_id], InstanceId=holder, Device=DEVICE
            )

    def _place(self, now: float) -> None:
        if not self.api_answers:
            return
        for node_id, pod in self.cluster.pods.items():
            if pod.node_name is not None:
                continue
            free = [
                instance_id
                for instance_id, node in sorted(self.cluster.node_views.items())
                if (node.zone, node.ready, node.schedulable) == (ZONES[node_id], True, True)
                and not self._pods_on(node.name)
            ]
            if free:
                self._settle_on(node_id, free[0], ready=False)
                self._starting[node_id] = now + START_SECONDS

    def _settle_on(self, node_id: int, instance_id: str, *, ready: bool) -> None:
        self.cluster.place_pod(node_id, instance_id, ready=ready)
        self.cloud.ec2.attach_volume(
            VolumeId=self._volumes[node_id], InstanceId=instance_id, Device=DEVICE
        )

    def _set(self, node_id: int, **changed: bool) -> None:
        self.cluster.pods[node_id] = replace(self.cluster.pods[node_id], **changed)  # type: ignore[arg-type]

    def _speak(self) -> None:
        """Let Kafka and the disruption budget say what the pods amount to."""
        pods, out = self.cluster.pods, self.out()
        alive = tuple(id_ for id_ in ZONES if id_ not in out)
        self.cluster.kafka = ClusterView(
            brokers=frozenset(ZONES),
            fenced=frozenset(out),
            voters=tuple(VoterView(n, 0.1) for n in (0, 1, 2)),
            quorum_leader=1,
            partitions=tuple(
                PartitionView("t", p, alive[0] if alive else None, tuple(ZONES), alive, 2)
                for p in range(3)
            ),
        )
        allowed = 1 if self.evictions_allowed and not out else 0
        budget = BudgetView(
            name="orders-kafka",
            pods=frozenset(pod.name for pod in pods.values()),
            disruptions_allowed=allowed,
        )
        self.cluster.disruption_budgets = (budget,)
