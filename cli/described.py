"""Whose ledger and functions are meant, where a description of a cluster that exists is named.

`FILE.yaml`, or `FILE.yaml#PREFIX` of one Kafka of several, stands where an environment does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.cluster import adoption
from core.cluster.timings import Timings
from core.errors import InvalidInput
from infra import spec_file

SUFFIXES = {".yaml", ".yml", ".json"}


@dataclass(frozen=True)
class DescribedKafka:
    """One Kafka of a description, as far as its ledger's readers ask."""

    environment: str
    prefix: str
    name: str
    region: str
    timings: Timings
    gate: Literal["isr", "ready"] = "isr"


def is_meant(named: str) -> bool:
    """Say whether a file is named, where else an environment is."""
    return Path(named.partition("#")[0]).suffix in SUFFIXES


def of(named: str) -> DescribedKafka:
    """Return the Kafka that is meant; raise InvalidInput where a file has several."""
    file, _, prefix = named.partition("#")
    found = spec_file.load(Path(file))
    adopted = adoption.parse(found.content, found.locate)
    known = {
        called: DescribedKafka(named, called, each.name, adopted.region, adopted.timings)
        for each in adopted.kafkas
        if (called := adopted.called(each))
    }
    if prefix in known:
        return known[prefix]
    if len(known) == 1 and not prefix:
        return next(iter(known.values()))
    listed = ", ".join(f"{file}#{each}" for each in known)
    what = f"names no {prefix}" if prefix else f"has {len(known)} Kafkas"
    raise InvalidInput([f"{file} {what}; name one of {listed}."])
