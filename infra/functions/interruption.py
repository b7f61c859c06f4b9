"""λ interruption: reads the events queue, beside the loop and outside the VPC.

It starts faster there, and goes on working when the VPC's way out does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.cluster.operated import Operated
from core.settings.functions import InterruptionSettings
from infra import iam
from infra.functions.definition import (
    Definition,
    Reads,
    Scope,
    ask_and_tell,
    find_open,
    keep_the_ledger,
    look,
    read_queue,
)


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        read_queue(scope, "events"),
        *ask_and_tell(scope),
        keep_the_ledger(scope),
        find_open(scope),
        look("ec2:DescribeInstances", "ec2:DescribeVolumes", "ec2:DescribeAvailabilityZones"),
    ]


def _own_settings(cluster: Operated) -> Mapping[str, Any]:
    return {"eks_cluster": cluster.eks_cluster}


INTERRUPTION = Definition(
    name="interruption",
    description="What AWS announced becomes an incident",
    settings=InterruptionSettings,
    may=_may,
    own_settings=_own_settings,
    reads=Reads(queue="events", batch=10, at_once=5),
)
