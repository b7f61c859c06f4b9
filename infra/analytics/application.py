"""Builds where reports are computed: EMR Serverless, which costs nothing when idle."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from infra.versions import EMR_ARCHITECTURE, EMR_RELEASE

IDLE_MINUTES = 15
# What a month of a large account needs, and a bound on what a runaway job can cost.
MAXIMUM_CPU, MAXIMUM_MEMORY, MAXIMUM_DISK = "64 vCPU", "256 GB", "1000 GB"


def application(
    name: str, prefix: str, opts: pulumi.ResourceOptions
) -> aws.emrserverless.Application:
    """Create the application, which starts with a job and stops by itself."""
    return aws.emrserverless.Application(
        name,
        name=f"{prefix}-reports",
        type="SPARK",
        release_label=EMR_RELEASE,
        architecture=EMR_ARCHITECTURE,
        auto_start_configuration={"enabled": True},
        auto_stop_configuration={"enabled": True, "idle_timeout_minutes": IDLE_MINUTES},
        # What a run costs is on the bill under the run's own tags.
        job_level_cost_allocation_configuration={"enabled": True},
        maximum_capacity={"cpu": MAXIMUM_CPU, "memory": MAXIMUM_MEMORY, "disk": MAXIMUM_DISK},
        opts=opts,
    )
