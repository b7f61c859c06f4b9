"""Where the doctor looks: the spec, the AWS identity and the endpoints of an environment.

The twin's are in its own directory; of any other environment they are those of the stacks'
settings and of whoever calls.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError

from cli import stack_settings
from core.cluster import ClusterSpec, parse
from core.errors import StillwaterError
from infra import spec as specs

if TYPE_CHECKING:
    from local.place import Place


@dataclass(frozen=True)
class Target:
    """One environment, and the session in which it is read."""

    spec: ClusterSpec
    session: boto3.Session
    # None: AWS's own, or what the caller's environment says.
    endpoint_url: str | None = None


def of_twin() -> Target:
    """Return the twin that `up` keeps, or that STILLWATER_TWIN names, as its administrator."""
    from local import environment  # noqa: PLC0415 - a real account needs no twin
    from local.demo import spec as demo_spec  # noqa: PLC0415

    place = _twins_place()
    variables = environment.with_credentials(place)
    session = boto3.Session(
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=environment.REGION,
    )
    spec = parse(specs.content(demo_spec.path(place)))
    return Target(spec, session, variables["AWS_ENDPOINT_URL"])


def of_environment(environment: str) -> Target:
    """Return an environment as its stacks' settings describe it, under the caller's identity."""
    found = stack_settings.described(environment)
    try:
        session = boto3.Session(profile_name=found.profile, region_name=found.spec.region)
    except BotoCoreError as error:
        problem = f"The AWS profile of {environment} cannot be used: {error}."
        raise StillwaterError(problem) from None
    return Target(found.spec, session)


def _twins_place() -> Place:
    from local import place, twin  # noqa: PLC0415

    named = os.environ.get(place.PLACE_VARIABLE)
    found = place.taken() if named else [reached.place for reached in twin.kept()]
    if named:
        found = [each for each in found if each.directory == Path(named).resolve()]
    if not found:
        where = f" in {named}, which {place.PLACE_VARIABLE} names" if named else ""
        raise StillwaterError(
            f"No twin with a cluster on it runs{where}; `stillwater up local` starts one in another"
            f" terminal."
        )
    if len(found) > 1:
        homes = ", ".join(str(each.directory) for each in found)
        raise StillwaterError(
            f"Several twins run ({homes}); set {place.PLACE_VARIABLE} to the one you mean."
        )
    return found[0]
