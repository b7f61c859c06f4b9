"""`stillwater init DIR` and `stillwater upgrade`: a directory of one's own, and a newer release."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from rich.console import Console

from cli.project.written import Answers, Rendered, render, write
from core import regions
from core.cluster import estimate
from core.cluster.estimate import Usage
from core.cost import pricing
from core.errors import InvalidInput, StillwaterError

ZONES = 3
LABEL_LIMIT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was said on the command line; None is asked of a person, or has a default."""

    name: str | None = None
    environment: str | None = None
    region: str | None = None
    zones: str | None = None
    brokers: int | None = None
    produce_mib_per_s: float | None = None
    readers: float | None = None
    retention_hours: int | None = None
    vpc_cidr: str = "10.40.0.0/16"
    secrets_provider: str | None = None


def init(
    directory: Path, given: Given, console: Console, *, version: str, force: bool = False
) -> None:
    """Write a directory for the answers given; people on a terminal are asked the others."""
    if directory.exists() and not directory.is_dir():
        raise InvalidInput([f"{directory} is a file; name a directory, new or not."])
    answers = answers_of(directory, given, _asking(console))
    rendered = render(answers, version)
    kept = write(directory, rendered, force=force)
    for sentence in told(directory, answers, rendered, kept):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


Ask = Callable[[str, str | None], str]


def answers_of(directory: Path, given: Given, ask: Ask) -> Answers:
    """Return every answer: what was given, else what `ask` says to the question and its default."""

    def text(value: object, question: str, default: str | None) -> str:
        return ask(question, default) if value is None else str(value)

    name = text(given.name, "Kafka's name, in every resource's", _label(directory))
    environment = text(given.environment, "The environment, such as prod", "prod")
    region = text(given.region, "The AWS region (--region)", None)
    letters = regions.ZONES.get(region, "abc")[:ZONES]
    zones = text(
        given.zones, "Its availability zones", ",".join(region + letter for letter in letters)
    )
    named = tuple(zone.strip() for zone in zones.split(",") if zone.strip())
    return Answers(
        name=name,
        environment=environment,
        region=region,
        zones=named,
        brokers=_whole(text(given.brokers, "Brokers", str(len(named) or ZONES))),
        produce_mib_per_s=_number(
            text(given.produce_mib_per_s, "MiB/s produced at the peak, all topics", "5")
        ),
        readers=_number(text(given.readers, "Consumer groups that read each byte", "2")),
        retention_hours=_whole(text(given.retention_hours, "Hours that records are kept", "168")),
        vpc_cidr=given.vpc_cidr,
        secrets_provider=given.secrets_provider,
    )


def _label(directory: Path) -> str:
    """Return a directory's name as a DNS label."""
    name = re.sub(r"[^a-z0-9]+", "-", directory.absolute().name.lower()).strip("-")
    return name[:LABEL_LIMIT].strip("-") if name[:1].isalpha() else "kafka"


def _number(text: str) -> float:
    try:
        return float(text.strip())
    except ValueError:
        raise InvalidInput([f"{text!r} is not a number; correct it."]) from None


def _whole(text: str) -> int:
    number = _number(text)
    if not number.is_integer():
        raise InvalidInput([f"{text!r} is not a whole number; correct it."])
    return int(number)


def _asking(console: Console) -> Ask:
    """Return who answers: a person on a terminal, else the default."""

    def person(question: str, default: str | None) -> str:
        shown = f"{question} [{default}]: " if default else f"{question}: "
        while True:
            try:
                given = console.input(shown, markup=False).strip() or default
            except EOFError:
                raise StillwaterError("Nothing was written: there was no answer.") from None
            if given:
                return given

    def nobody(question: str, default: str | None) -> str:
        if default is None:
            raise InvalidInput([f"{question} is needed, and nobody can be asked here; say it."])
        return default

    return person if console.is_terminal and console.is_interactive else nobody


def told(directory: Path, answers: Answers, rendered: Rendered, kept: list[str]) -> list[str]:
    """Return what was written, what that costs, and what to do next."""
    broker = next(pool for pool in rendered.spec.pools if pool.role.is_broker)
    usage = Usage(Decimal(repr(answers.produce_mib_per_s)), Decimal(repr(answers.readers)))
    month = estimate.monthly(
        rendered.spec, pricing.book(answers.region, pricing.SHIPPED), usage
    ).total
    cost = "" if month is None else f", about {month:,.0f} USD a month"
    wrote = (
        f"Wrote {directory}: {answers.environment}, {answers.brokers} brokers on "
        f"{broker.instance_type} with {broker.volumes[0].size_gib:,} GiB each{cost}."
    )
    environment = answers.environment
    # Without what clients do the same command says another sum.
    traffic = f"--produce-mib-per-s {answers.produce_mib_per_s:g} --readers {answers.readers:g}"
    following = (
        f"Next: cd {directory}; look through clusters/{environment}.yaml; `stillwater check "
        f"{environment}` and `stillwater estimate {environment} {traffic}` need no account; "
        f"README.md says how it goes on."
    )
    return [
        wrote,
        *(f"Kept your {path}; --force replaces it." for path in kept),
        *regions.doubts(answers.region, answers.zones),
        following,
    ]
