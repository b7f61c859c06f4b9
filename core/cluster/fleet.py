"""Describes a fleet: environments, the waves they roll in, and what stops them.

`stillwater fleet` reads it; core.fleet decides by it. Paths are relative to the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from core.cluster.adopted_names import Region
from core.cluster.adoption import Section
from core.cluster.operation import Maintenance
from core.cluster.reading import Locate, validate
from core.cluster.spec import Inconsistent
from core.ground.errors import InvalidInput

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$")]
_Role = Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$")]


class FleetEnvironment(Section):
    """One cluster, by where it is described and who may ask it."""

    directory: str = "."
    """The project that `init` wrote, or where the description is."""
    environment: str | None = None
    """As other commands name it, FILE.yaml included; without it, its name here."""
    role: _Role | None = None
    """A role in its account that the caller assumes; without it, the caller's own rights."""
    region: Region
    """Its region, as its description says."""
    clients: tuple[str, ...] = ()
    """Labels of applications: two clusters with one in common never rotate together."""


class FleetWave(Section):
    """Environments that go before the next wave's."""

    name: _Name
    """Its name, such as canary."""
    environments: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names from `environments`, in the order in which they start."""
    bake_hours: Annotated[float, Field(ge=0, le=720)] = 24.0
    """How long it is watched after its last rotation before the next wave starts."""


class FleetStop(Section):
    """What stops a fleet, beside poor health, open incidents and rotations that stopped."""

    burn_rate: Annotated[float, Field(gt=0, le=100)] = 1.0
    """How many times faster than the objective allows clients may fail."""
    rotation_usd: Annotated[float, Field(gt=0)] | None = None
    """What one cluster's rotation may cost; without it, anything."""


class FleetFile(Section):
    """A fleet, as its file says."""

    name: _Name
    """Its name."""
    environments: Annotated[dict[str, FleetEnvironment], Field(min_length=1)]
    """Its clusters by name."""
    waves: Annotated[tuple[FleetWave, ...], Field(min_length=1)]
    """The order: the first wave is the canary."""
    stop: FleetStop = FleetStop()
    """What stops it."""
    windows: tuple[Maintenance, ...] = ()
    """When rotations may start; without any, at any time."""
    hold: str = ""
    """Why nothing starts; remove it to go on."""

    @model_validator(mode="after")
    def _every_environment_has_one_wave(self) -> Self:
        if problems := list(self._misplaced()):
            raise Inconsistent(problems)
        return self

    def _misplaced(self) -> Iterator[str]:
        counts = Counter(name for wave in self.waves for name in wave.environments)
        for name, count in counts.items():
            if name not in self.environments:
                yield f"waves name {name}, which environments does not; add it there"
            elif count > 1:
                yield f"{name} is in waves {count} times; name it once"
        for name in self.environments:
            if name not in counts:
                yield f"{name} is in no wave; add it to one"
        for name, count in Counter(wave.name for wave in self.waves).items():
            if count > 1:
                yield f"{count} waves are named {name}; give each a name of its own"


def parse_fleet(raw: object, locate: Locate = lambda _place, _sentence: "") -> FleetFile:
    """Validate a fleet's file; raises InvalidInput with one sentence per problem."""
    if not isinstance(raw, Mapping):
        raise InvalidInput(["A fleet's file must be a mapping of settings to values."])
    return validate(FleetFile, raw, locate)
