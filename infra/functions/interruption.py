"""λ interruption: reads the events queue, beside the loop and outside the VPC.

It starts faster there, and goes on working when the VPC's way out does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.settings.functions import InterruptionSettings
from infra import iam
from infra.functions.definition import Definition, Reads, Scope, look, read_queue, write_incidents


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        read_queue(scope, "events"),
        *write_incidents(scope),
        look("ec2:DescribeInstances", "ec2:DescribeVolumes", "ec2:DescribeAvailabilityZones"),
    ]


INTERRUPTION = Definition(
    name="interruption",
    description="What AWS announced becomes an incident",
    settings=InterruptionSettings,
    may=_may,
    own_settings=lambda cluster: {"eks_cluster": cluster.eks_cluster},
    reads=Reads(queue="events", batch=10, at_once=5),
)
