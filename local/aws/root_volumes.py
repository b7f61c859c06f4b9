"""EC2's replacement of an instance's root volume: a task with AWS's states, and AWS's own words.

moto has no such task. Here it is `pending` while the new volume is made, `in-progress` while the
old one is detached and the new one attached, then `succeeded`; the instance runs on under its id,
with its other volumes and its addresses, and shows the new image. It boots anew: the kubelet knows
that by its root volume. What an instance with TROUBLE_TAG says ends otherwise:

    failed             failing -> failed: it has booted from its original root volume (BOOTED_TAG)
    failed-detached    failing-detached -> failed-detached: the instance has no root volume
    slow               succeeded, and the machine does not boot from what it got (UNBOOTABLE_TAG)

A request that is repeated under its ClientToken is the same task. Source: EC2 API,
CreateReplaceRootVolumeTask and ReplaceRootVolumeTask; user guide, "Replace a root volume". The
codes of errors whose code AWS does not document are those of its neighbours: IncorrectState,
InvalidParameterValue.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError, InvalidParameterCombination
from moto.ec2.responses import EC2Response

from local.aws.instances import Agenda, state_of
from local.journal import Write

TROUBLE_TAG = "stillwater.dev/twin-root-volume"
# Written by the twin itself, for its kubelet.
BOOTED_TAG = "stillwater.dev/twin-booted"
UNBOOTABLE_TAG = "stillwater.dev/twin-unbootable"
MAKING_SECONDS = 0.5
SWAPPING_SECONDS = 1.0
UNDER_WAY = frozenset({"pending", "in-progress", "failing", "failing-detached"})
# What an image and an instance must have in common.
_ALIKE = ("architecture", "virtualization_type")


class Task:
    """One replacement, as DescribeReplaceRootVolumeTasks shows it."""

    def __init__(self, instance: Any, image: Any, *, delete_replaced: bool, tags: Any) -> None:
        self.id = f"replacevol-{secrets.token_hex(9)[:17]}"
        self.instance, self.image = instance, image
        self.state = "pending"
        self.started, self.completed = datetime.now(UTC), ""
        self.delete_replaced, self.tags = delete_replaced, tags
        self.token: str | None = None

    def go(self, state: str) -> None:
        self.state = state
        if state not in UNDER_WAY:
            self.completed = _stamp(datetime.now(UTC))

    def as_answer(self) -> dict[str, Any]:
        return {
            "ReplaceRootVolumeTaskId": self.id,
            "InstanceId": self.instance.id,
            "TaskState": self.state,
            "StartTime": _stamp(self.started),
            "CompleteTime": self.completed,
            "Tags": self.tags,
            "ImageId": self.image.id,
            "DeleteReplacedRootVolume": self.delete_replaced,
        }

    def swap(self) -> None:
        """Have a new volume made of the image in the place of the instance's root volume."""
        old_id = self.detach()
        backend = self.instance.ec2_backend
        old = backend.get_volume(old_id)
        new = backend.create_volume(
            size=int(old.size), zone_name=old.zone.name, volume_type=old.volume_type
        )
        device = self.instance.root_device_name
        backend.attach_volume(new.id, self.instance.id, device, delete_on_termination=True)
        self.instance.image_id = self.image.id
        if self.delete_replaced:
            backend.delete_volume(old_id)

    def detach(self) -> str:
        """Detach the root volume; return its id."""
        device = self.instance.root_device_name
        volume_id = str(self.instance.block_device_mapping[device].volume_id)
        self.instance.ec2_backend.detach_volume(volume_id, self.instance.id, device)
        return volume_id


def _trouble(instance: Any) -> str | None:
    return {tag["key"]: tag["value"] for tag in instance.get_tags()}.get(TROUBLE_TAG)


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


class RootVolumeTasks:
    """Takes the tasks through their states; callers hold locks.COMPUTE."""

    def __init__(self, agenda: Agenda, journal: Write) -> None:
        self._agenda, self._journal = agenda, journal
        self._tasks: dict[str, Task] = {}

    def create(
        self,
        instance: Any,
        image: Any,
        *,
        delete_replaced: bool,
        tags: Any,
        token: str | None = None,
    ) -> Task:
        """Begin a task; raises EC2's error where the instance or the image allows none."""
        known = next((t for t in self._tasks.values() if token and t.token == token), None)
        if known is not None:
            return self._check_same(known, instance, image)
        self._check(instance, image)
        task = Task(instance, image, delete_replaced=delete_replaced, tags=tags)
        task.token = token
        self._tasks[task.id] = task
        at = time.time()
        for seconds, step in self._steps(task):
            at += seconds
            self._agenda.add(at, partial(self._step, task, step))
        return task

    def _check_same(self, known: Task, instance: Any, image: Any) -> Task:
        if (known.instance, known.image) != (instance, image):
            raise EC2ClientError(
                "IdempotentParameterMismatch",
                "The client token was used before, with other parameters.",
            )
        return known

    def find(self, ids: list[str]) -> list[Task]:
        missing = [each for each in ids if each not in self._tasks]
        if missing:
            raise EC2ClientError(
                "InvalidReplaceRootVolumeTaskID.NotFound",
                f"The replace root volume task ID '{missing[0]}' does not exist",
            )
        return [self._tasks[each] for each in ids] if ids else list(self._tasks.values())

    def _check(self, instance: Any, image: Any) -> None:
        if state_of(instance) != "running":
            raise EC2ClientError(
                "IncorrectInstanceState",
                f"The instance '{instance.id}' is not in a state from which its root volume can be "
                f"replaced; it must be running.",
            )
        under_way = (t for t in self._tasks.values() if t.instance is instance)
        if any(task.state in UNDER_WAY for task in under_way):
            raise EC2ClientError(
                "IncorrectState", f"A root volume of '{instance.id}' is being replaced already."
            )
        if instance.root_device_name not in instance.block_device_mapping:
            raise EC2ClientError(
                "UnsupportedOperation", f"The root device of '{instance.id}' is not an EBS volume."
            )
        own = instance.ec2_backend.amis.get(instance.image_id)
        for name in _ALIKE if own is not None else ():
            if getattr(own, name) != getattr(image, name):
                raise EC2ClientError(
                    "InvalidParameterValue",
                    f"The image '{image.id}' differs from that of '{instance.id}' in its {name}.",
                )

    def _steps(self, task: Task) -> Iterator[tuple[float, Callable[[], None]]]:
        trouble = _trouble(task.instance)
        if trouble == "failed":
            yield MAKING_SECONDS, partial(task.go, "failing")
            yield SWAPPING_SECONDS, partial(self._fail, task)
            return
        yield MAKING_SECONDS, partial(task.go, "in-progress")
        if trouble == "failed-detached":
            yield SWAPPING_SECONDS / 2, partial(self._fail_detached, task)
            yield SWAPPING_SECONDS / 2, partial(task.go, "failed-detached")
            return
        yield SWAPPING_SECONDS, partial(self._succeed, task)

    def _fail(self, task: Task) -> None:
        task.instance.add_tags({BOOTED_TAG: task.id})
        task.go("failed")

    def _succeed(self, task: Task) -> None:
        if _trouble(task.instance) == "slow":
            task.instance.add_tags({UNBOOTABLE_TAG: task.id})
        task.swap()
        task.go("succeeded")

    def _fail_detached(self, task: Task) -> None:
        task.detach()
        task.go("failing-detached")

    def _step(self, task: Task, step: Callable[[], None]) -> None:
        if state_of(task.instance) == "running":
            step()
        elif task.state in UNDER_WAY:
            task.go("failed")  # It was terminated in the middle.
        self._journal("moto", "root_volume_task", instance=task.instance.id, state=task.state)


def install(agenda: Agenda, journal: Write) -> RootVolumeTasks:
    """Give moto's EC2 the two calls it lacks."""
    tasks = RootVolumeTasks(agenda, journal)

    def create(response: Any) -> ActionResult:
        given = response._get_param  # noqa: SLF001  # as moto's own responses read theirs
        if given("SnapshotId") and given("ImageId"):
            raise InvalidParameterCombination(
                "You cannot specify both a snapshot and an image for the replacement root volume."
            )
        if given("SnapshotId") or not given("ImageId"):
            raise EC2ClientError("UnsupportedOperation", "The twin replaces root volumes by image.")
        backend = response.ec2_backend
        instance = backend.get_instance(given("InstanceId"))
        image = backend.describe_images(ami_ids=[given("ImageId")])[0]
        response.error_on_dryrun()
        named = response._parse_tag_specification().get("replace-root-volume-task", {})  # noqa: SLF001
        task = tasks.create(
            instance,
            image,
            delete_replaced=given("DeleteReplacedRootVolume") is True,
            tags=[{"Key": key, "Value": value} for key, value in named.items()],
            token=given("ClientToken"),
        )
        return ActionResult({"ReplaceRootVolumeTask": task.as_answer()})

    def describe(response: Any) -> ActionResult:
        found = tasks.find(response._get_param("ReplaceRootVolumeTaskIds", []))  # noqa: SLF001
        filters = response._filters_from_querystring()  # noqa: SLF001
        wanted = set(filters.get("instance-id", ())) or {task.instance.id for task in found}
        shown = [task.as_answer() for task in found if task.instance.id in wanted]
        return ActionResult({"ReplaceRootVolumeTasks": shown})

    EC2Response.create_replace_root_volume_task = create
    EC2Response.describe_replace_root_volume_tasks = describe
    return tasks
