"""Finds where the doctor looks: the spec, the AWS identity and the endpoints of an environment.

The twin's are in its own directory (cli.twin); of any other environment they are those of the
stacks' settings and of whoever calls.
"""

from __future__ import annotations

from dataclasses import dataclass

import boto3

from cli import aws, stack_settings
from core.cluster import ClusterSpec
from core.naming import TWIN_ENVIRONMENT


@dataclass(frozen=True)
class Target:
    """One environment, and the session in which it is read."""

    spec: ClusterSpec
    session: boto3.Session
    # None: AWS's own, or what the caller's environment says.
    endpoint_url: str | None = None


def of(environment: str) -> Target:
    """Return the running twin for `local`, else what the stacks' settings describe."""
    if environment == TWIN_ENVIRONMENT:
        from cli import twin  # noqa: PLC0415 - a real account needs no twin

        return twin.target()
    return of_environment(environment)


def of_environment(environment: str) -> Target:
    """Return an environment as its stacks' settings describe it, under the caller's identity."""
    found = stack_settings.read_described(environment)
    return Target(found.spec, aws.session(found.profile, found.spec.region))
