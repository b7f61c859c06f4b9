"""Root volumes that EC2 replaces under an instance, each task under the key of an incident."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import boto3
from botocore.exceptions import ClientError

from core.incidents.observation import RootTask
from core.naming import INCIDENT_TAG
from handlers.adapters.calls import CLIENT
from handlers.adapters.shapes import known_shape

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import ReplaceRootVolumeTaskTypeDef

# EC2's codes for a request that would be granted, for those that another attempt may be granted,
# and for one that it is carrying out already.
_GRANTED = "DryRunOperation"
_PASSING = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "InternalError", "Unavailable"}
)
_UNDER_WAY = "IncorrectState"


class RootVolumes(Protocol):
    """What replaces root volumes."""

    def task_of(self, instance_id: str, incident_id: str) -> RootTask | None:
        """Return the newest task that was begun for an incident."""

    def replace(
        self, instance_id: str, image_id: str, incident_id: str, *, trial: bool
    ) -> str | None:
        """Have a root volume replaced, once for an incident; return why it is refused.

        `trial` only asks whether it would be. Raises ClientError for what another attempt may mend.
        """


class Ec2RootVolumes:
    """EC2's tasks through boto3."""

    def __init__(self, region: str) -> None:
        self._ec2 = boto3.client("ec2", region_name=region, config=CLIENT)

    @known_shape("EC2")
    def task_of(self, instance_id: str, incident_id: str) -> RootTask | None:
        pages = self._ec2.get_paginator("describe_replace_root_volume_tasks").paginate(
            Filters=[{"Name": "instance-id", "Values": [instance_id]}]
        )
        ours = [
            task
            for page in pages
            for task in page["ReplaceRootVolumeTasks"]
            if _incident_of(task) == incident_id
        ]
        ours.sort(key=lambda task: str(task.get("StartTime", "")))
        newest = ours[-1] if ours else None
        if newest is None:
            return None
        return RootTask(newest["ReplaceRootVolumeTaskId"], newest["TaskState"])

    def replace(
        self, instance_id: str, image_id: str, incident_id: str, *, trial: bool
    ) -> str | None:
        try:
            self._ec2.create_replace_root_volume_task(
                InstanceId=instance_id,
                ImageId=image_id,
                DeleteReplacedRootVolume=True,
                # The same request under the same key is the same task.
                ClientToken=incident_id,
                DryRun=trial,
                TagSpecifications=[
                    {
                        "ResourceType": "replace-root-volume-task",
                        "Tags": [{"Key": INCIDENT_TAG, "Value": incident_id}],
                    }
                ],
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == _GRANTED:
                return None
            if code in _PASSING or (code == _UNDER_WAY and not trial):
                raise
            return f"{code}: {error.response['Error']['Message']}"
        return None


def _incident_of(task: ReplaceRootVolumeTaskTypeDef) -> str | None:
    tags = task.get("Tags", [])
    return next((tag.get("Value") for tag in tags if tag.get("Key") == INCIDENT_TAG), None)
