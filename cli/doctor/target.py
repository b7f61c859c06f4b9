"""Where the doctor looks: the spec, the AWS identity and the endpoints of an environment.

The twin's are in its own directory; of any other environment they are those of the stacks'
settings and of whoever calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import boto3
import yaml
from botocore.exceptions import BotoCoreError

from core.cluster import ClusterSpec
from core.errors import InvalidInput, StillwaterError
from core.naming import LAYERS
from infra import spec as specs

SETTINGS = specs.ROOT / "stacks" / "config"
PROFILE = "aws:profile"


@dataclass(frozen=True)
class Target:
    """One environment, and the session in which it is read."""

    spec: ClusterSpec
    session: boto3.Session
    # None: AWS's own, or what the caller's environment says.
    endpoint_url: str | None = None


def of_twin() -> Target:
    """Return the twin that runs on this machine, as its administrator."""
    from local import environment, place  # noqa: PLC0415 - a real account needs no twin
    from local.demo import spec as demo_spec  # noqa: PLC0415

    where = place.running_one()
    path = demo_spec.path(where)
    if not path.is_file():
        raise StillwaterError(
            f"The twin in {where.directory} has no cluster on it yet; wait until its `up` has begun"
            f" with the layers."
        )
    variables = environment.with_credentials(where)
    session = boto3.Session(
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=environment.REGION,
    )
    return Target(specs.read(path), session, variables["AWS_ENDPOINT_URL"])


def of_environment(environment: str, settings: Path = SETTINGS) -> Target:
    """Return an environment as its stacks' settings describe it, under the caller's identity."""
    stored = {layer: _settings(settings, environment, layer) for layer in LAYERS}
    first = next(iter(stored.values()))
    for layer, config in stored.items():
        if config.spec_keys() != first.spec_keys():
            problem = (
                f"The settings of {environment}-{layer} name another ClusterSpec than those of "
                f"{environment}-{LAYERS[0]}: give every layer the same."
            )
            raise InvalidInput([problem])
    spec = specs.load(first, environment)
    profile = first.values.get(PROFILE)
    try:
        session = boto3.Session(
            profile_name=None if profile is None else str(profile), region_name=spec.region
        )
    except BotoCoreError as error:
        raise StillwaterError(
            f"The AWS profile of {environment} cannot be used: {error}."
        ) from None
    return Target(spec, session)


@dataclass(frozen=True)
class _Config:
    """A stack's settings file as infra.spec reads a stack's configuration."""

    values: Mapping[str, object]

    def get(self, key: str) -> str | None:
        value = self.get_object(key)
        return None if value is None else str(value)

    def get_object(self, key: str) -> object:
        return self.values.get(f"stillwater:{key}")

    def spec_keys(self) -> tuple[object, object]:
        return self.get_object(specs.PATH_KEY), self.get_object(specs.INLINE_KEY)


def _settings(directory: Path, environment: str, layer: str) -> _Config:
    path = directory / f"Pulumi.{environment}-{layer}.yaml"
    try:
        stored = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = (
            f"Environment {environment} has no settings for {layer} ({path.name}: "
            f"{error.strerror}): it must stand in stacks/config/ with stillwater:spec, or be "
            f"`local`, the twin."
        )
        raise InvalidInput([problem]) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise InvalidInput([f"The settings {path} are not valid YAML; correct them."]) from None
    config = stored.get("config") if isinstance(stored, Mapping) else None
    return _Config(config if isinstance(config, Mapping) else {})
