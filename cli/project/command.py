"""`stillwater init DIR` and `stillwater upgrade`: a directory of one's own, and a newer release."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Protocol, TypeVar

from rich.console import Console

from cli.project.origin import WHEELS, Origin
from cli.project.written import InitAnswers, Rendered, place_problems, render, write
from cli.terminal import somebody_answers
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
    directory: Path, given: Given, console: Console, *, came: Origin, force: bool = False
) -> None:
    """Write a directory for the answers given; people on a terminal are asked the others."""
    if directory.exists() and not directory.is_dir():
        raise InvalidInput([f"{directory} is a file; name a directory, new or not."])
    answers = answers_of(directory, given, _asking(console))
    rendered = render(answers, came)
    kept = write(directory, rendered, force=force)
    for sentence in summary_lines(directory, answers, rendered, kept, came):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


T = TypeVar("T")
Read = Callable[[str], T]


class Ask(Protocol):
    """Asks a question that has a default or none, until the answer can be read."""

    def __call__(self, question: str, default: str | None, read: Read[T]) -> T: ...


def answers_of(directory: Path, given: Given, ask: Ask) -> InitAnswers:
    """Return every answer: what was given, else what `ask` says to the question and its default."""

    def answer(value: str | None, question: str, default: str | None, read: Read[T]) -> T:
        return ask(question, default, read) if value is None else read(value)

    def number(value: float | None, question: str, default: str, read: Read[T]) -> T:
        return answer(None if value is None else str(value), question, default, read)

    name = answer(given.name, "Kafka's name, in every resource's", _label(directory), str)
    environment = answer(given.environment, "The environment, such as prod", "prod", str)
    region = answer(given.region, "The AWS region (--region)", None, _region)
    letters = regions.ZONES.get(region, "abc")[:ZONES]
    usual = ",".join(region + letter for letter in letters)
    zones = answer(given.zones, "Its availability zones", usual, lambda said: _zones(region, said))
    return InitAnswers(
        name=name,
        environment=environment,
        region=region,
        zones=zones,
        brokers=number(given.brokers, "Brokers", str(len(zones) or ZONES), _whole_number),
        produce_mib_per_s=number(
            given.produce_mib_per_s, "MiB/s produced at the peak, all topics", "5", _number
        ),
        readers=number(given.readers, "Consumer groups that read each byte", "2", _number),
        retention_hours=number(
            given.retention_hours, "Hours that records are kept", "168", _whole_number
        ),
        vpc_cidr=given.vpc_cidr,
        secrets_provider=given.secrets_provider,
    )


def _region(text: str) -> str:
    if problems := place_problems(text):
        raise InvalidInput(problems)
    return text


def _zones(region: str, text: str) -> tuple[str, ...]:
    named = tuple(zone.strip() for zone in text.split(",") if zone.strip())
    if problems := place_problems(region, named):
        raise InvalidInput(problems)
    return named


def _label(directory: Path) -> str:
    """Return a directory's name as a DNS label."""
    name = re.sub(r"[^a-z0-9]+", "-", directory.absolute().name.lower()).strip("-")
    return name[:LABEL_LIMIT].strip("-") if name[:1].isalpha() else "kafka"


def _number(text: str) -> float:
    try:
        return float(text.strip())
    except ValueError:
        raise InvalidInput([f"{text!r} is not a number; correct it."]) from None


def _whole_number(text: str) -> int:
    number = _number(text)
    if not number.is_integer():
        raise InvalidInput([f"{text!r} is not a whole number; correct it."])
    return int(number)


def _asking(console: Console) -> Ask:
    """Return who answers: a person on a terminal, as often as it takes, else the default."""

    def person(question: str, default: str | None, read: Read[T]) -> T:
        shown = f"{question} [{default}]: " if default else f"{question}: "
        while True:
            try:
                given = console.input(shown, markup=False).strip() or default
            except EOFError:
                raise StillwaterError("Nothing was written: there was no answer.") from None
            if not given:
                continue
            try:
                return read(given)
            except InvalidInput as error:
                # The answers before it are not lost.
                console.print(str(error), markup=False, highlight=False, soft_wrap=True)

    def nobody(question: str, default: str | None, read: Read[T]) -> T:
        if default is None:
            raise InvalidInput([f"{question} is needed, and nobody can be asked here; say it."])
        return read(default)

    return person if somebody_answers(console) else nobody


def summary_lines(
    directory: Path, answers: InitAnswers, rendered: Rendered, kept: list[str], came: Origin
) -> list[str]:
    """Return what was written, what that costs, and what to do next."""
    broker = next(pool for pool in rendered.spec.pools if pool.role.is_broker)
    usage = Usage(Decimal(repr(answers.produce_mib_per_s)), Decimal(repr(answers.readers)))
    known = pricing.book(answers.region, own=pricing.own_file(directory))
    month = estimate.monthly(rendered.spec, known, usage).total
    cost = "" if month is None else f", about {month:,.0f} USD a month"
    wrote = (
        f"Wrote {directory}: {answers.environment}, {answers.brokers} brokers on "
        f"{broker.instance_type} with {broker.volumes[0].size_gib:,} GiB each{cost}."
    )
    environment = answers.environment
    # Without what clients do the same command says another sum.
    traffic = f"--produce-mib-per-s {answers.produce_mib_per_s:g} --readers {answers.readers:g}"
    following = (
        f"Next: {_entering(directory)}look through clusters/{environment}.yaml; `stillwater check "
        f"{environment}` and `stillwater estimate {environment} {traffic}` need no account; "
        f"README.md says how it goes on."
    )
    return [
        wrote,
        *(f"Kept your {path}; --force replaces it." for path in kept),
        *regions.doubts(answers.region, answers.zones),
        *_missing(directory, answers.region, came, priced=month is not None),
        following,
    ]


def _entering(directory: Path) -> str:
    """Return what a shell is told, nothing where it stands there."""
    return "" if directory.resolve() == Path.cwd() else f"cd {shlex.quote(str(directory))}; "


def _missing(directory: Path, region: str, came: Origin, *, priced: bool) -> Iterator[str]:
    """Return what is to be brought before everything here works."""
    if not priced:
        yield (
            f"What it costs is unknown: no list prices of {region} are here; `stillwater prices "
            f"fetch --region {region}` in {directory} brings them, into its prices.json."
        )
    if came.path is not None and not (directory / WHEELS / came.wheel).is_file():
        yield (
            f"Put {came.wheel}, which `make release` leaves in out/release/, into "
            f"{directory / WHEELS}: requirements.txt names it there, since the package that "
            f"pypi.org has under its name is another project's."
        )
