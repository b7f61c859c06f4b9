"""Finds where a command looks: the spec, the AWS identity and the endpoints of an environment.

The twin's are in its own directory; of any other environment they are those of the stacks' settings
and of whoever calls.
"""

from __future__ import annotations

from dataclasses import dataclass

import boto3

from cli import aws, stack_settings
from core.cluster import ClusterSpec, parse
from core.naming import TWIN_ENVIRONMENT
from infra import spec as specs


@dataclass(frozen=True)
class Target:
    """One environment, and the session in which it is read."""

    spec: ClusterSpec
    session: boto3.Session
    # None: AWS's own, or what the caller's environment says.
    endpoint_url: str | None = None


def of(environment: str) -> Target:
    """Return the running twin for `local`, else what the stacks' settings describe."""
    return of_twin() if environment == TWIN_ENVIRONMENT else of_environment(environment)


def of_environment(environment: str) -> Target:
    """Return an environment as its stacks' settings describe it, under the caller's identity."""
    found = stack_settings.read_described(environment)
    return Target(found.spec, aws.session(found.profile, found.spec.region))


def of_twin() -> Target:
    """Return the twin that `up` keeps, or that STILLWATER_TWIN names, as its administrator."""
    from local import environment, twin  # noqa: PLC0415 - a real account needs no twin
    from local.demo import spec as demo_spec  # noqa: PLC0415

    place = twin.meant_place()
    variables = environment.with_credentials(place)
    session = boto3.Session(
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=environment.REGION,
    )
    spec = parse(specs.content(demo_spec.path(place)))
    return Target(spec, session, variables["AWS_ENDPOINT_URL"])
