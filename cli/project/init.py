"""Writes a directory for `stillwater init`: the questions, and files written whole or not at all.

What belongs to one environment is never written over; what all environments of a directory share
stays as its owner left it.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from pathlib import Path
from string import Template
from typing import Protocol, TypeVar

import yaml
from rich.console import Console

from cli.project.release import WHEELS, Origin
from cli.terminal import say, somebody_answers
from core.cluster import ClusterSpec, estimate, parse
from core.cluster.estimate import FILLED, REPLICAS, BrokerSize, ClientLoad, Usage, size
from core.cost import pricing
from core.ground import regions
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.naming import LAYERS, TWIN_ENVIRONMENT
from infra import spec as specs

ZONES = 3
LABEL_LIMIT = 20
T = TypeVar("T")
Read = Callable[[str], T]
ACTION = specs.ROOT / "action.yaml"
SHARED = {
    "Pulumi.yaml": "Pulumi.yaml",
    "__main__.py": "__main__.py",
    "requirements.txt": "requirements.txt",
    "README.md": "README.md",
    ".gitignore": "gitignore",
    ".github/workflows/stillwater.yaml": "workflow.yaml",
}
NODE_IDS_PER_ZONE = 10
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
# What `pulumi stack init --secrets-provider` takes.
_PROVIDERS = ("default", "passphrase")
_KEY_SERVICES = ("awskms", "azurekeyvault", "gcpkms", "hashivault")


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
    answers = complete_answers(directory, given, _asking(console))
    rendered = render(answers, came)
    # Prices that cannot be read are refused before anything is written.
    lines = summary_lines(directory, answers, rendered, came)
    kept = write(directory, rendered, force=force)
    lines[1:1] = (f"Kept your {path}; --force replaces it." for path in kept)
    for sentence in lines:
        say(console, sentence)


class Ask(Protocol):
    """Asks a question that has a default or none, until the answer can be read."""

    def __call__(self, question: str, default: str | None, read: Read[T]) -> T: ...


def complete_answers(directory: Path, given: Given, ask: Ask) -> InitAnswers:
    """Return every answer: what was given, else what `ask` says to the question and its default."""

    def answer(value: str | None, question: str, default: str | None, read: Read[T]) -> T:
        return ask(question, default, read) if value is None else read(value)

    def number(value: float | None, question: str, default: str, read: Read[T]) -> T:
        return answer(None if value is None else str(value), question, default, read)

    name = answer(given.name, "Kafka's name, in every resource's", label(directory), str)
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


def label(directory: Path) -> str:
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
                raise StillwaterError("Nothing was written, because no answer came.") from None
            if not given:
                continue
            try:
                return read(given)
            except InvalidInput as error:
                # The answers before it are not lost.
                say(console, str(error))

    def nobody(question: str, default: str | None, read: Read[T]) -> T:
        if default is None:
            raise InvalidInput([f"{question} is needed; name it, since no terminal is here."])
        return read(default)

    return person if somebody_answers(console) else nobody


def summary_lines(
    directory: Path, answers: InitAnswers, rendered: Rendered, came: Origin
) -> list[str]:
    """Return what is to be written, what that costs, and what to do next."""
    broker = next(pool for pool in rendered.spec.pools if pool.role.is_broker)
    usage = Usage(Decimal(repr(answers.produce_mib_per_s)), Decimal(repr(answers.readers)))
    known = pricing.book(answers.region, own=pricing.own_file(directory))
    month = estimate.monthly(rendered.spec, known, usage)
    least = "at least" if month.unpriced else "about"
    cost = "" if month.total is None else f", {least} {month.total:,.0f} USD a month"
    wrote = (
        f"Wrote {directory}: {answers.environment}, {answers.brokers} brokers on "
        f"{broker.instance_type} with {broker.volumes[0].size_gib:,} GiB each{cost}."
    )
    environment = answers.environment
    # Without what clients do the same command says another sum.
    traffic = f"--produce-mib-per-s {answers.produce_mib_per_s:g} --readers {answers.readers:g}"
    following = (
        f"Next: {_entering(directory)}look through clusters/{environment}.yaml; `stillwater check "
        f"{environment}` and `stillwater estimate {environment} {traffic}` need no account. "
        "README.md has the next steps."
    )
    return [
        wrote,
        *regions.doubts(answers.region, answers.zones),
        *([month.unpriced] if month.unpriced else []),
        *_missing(directory, came),
        following,
    ]


def _entering(directory: Path) -> str:
    """Return what a shell is told, nothing where it stands there."""
    return "" if directory.resolve() == Path.cwd() else f"cd {shlex.quote(str(directory))}; "


def _missing(directory: Path, came: Origin) -> Iterator[str]:
    """Return what is to be brought before everything here works."""
    there = came.kept_wheel is not None or (directory / WHEELS / came.wheel).is_file()
    if came.path is not None and not there:
        yield (
            f"Put {came.wheel}, which `make release` leaves in out/release/, into "
            f"{directory / WHEELS}: requirements.txt names it there, since no package index has it."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InitAnswers:
    """What `init` asks."""

    name: str
    environment: str
    region: str
    zones: tuple[str, ...]
    brokers: int
    produce_mib_per_s: float
    readers: float
    retention_hours: int
    vpc_cidr: str
    secrets_provider: str | None = None

    @property
    def load(self) -> ClientLoad:
        return ClientLoad(
            zones=len(self.zones),
            brokers=self.brokers,
            produce_mib_per_s=self.produce_mib_per_s,
            readers=self.readers,
            retention_hours=self.retention_hours,
        )


@dataclass(frozen=True, slots=True)
class Rendered:
    """A project's files by their paths in it, and what its description says."""

    spec: ClusterSpec
    own: Mapping[str, bytes]  # the environment's
    shared: Mapping[str, bytes]


def render(answers: InitAnswers, came: Origin) -> Rendered:
    """Return what is written for the answers; raise InvalidInput with every problem of them."""
    problems = _problems(answers)
    try:
        broker = size(answers.load)
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput(problems)
    values = _values(answers, broker, came)
    description = load_template("cluster.yaml").substitute(values)
    spec = parse(yaml.safe_load(description))
    if problems := specs.problems_of(spec):
        raise InvalidInput(problems)
    stack = load_template("stack.yaml").substitute(values)
    own = {f"clusters/{answers.environment}.yaml": description}
    own |= {f"config/Pulumi.{answers.environment}-{layer}.yaml": stack for layer in LAYERS}
    shared = {path: load_template(name).substitute(values) for path, name in SHARED.items()}
    shared[".github/actions/stillwater/action.yaml"] = ACTION.read_text(encoding="utf-8")
    files = {path: text.encode() for path, text in shared.items()}
    if came.kept_wheel is not None:
        files[f"{WHEELS}/{came.wheel}"] = came.kept_wheel.read_bytes()
    return Rendered(spec, {path: text.encode() for path, text in own.items()}, files)


def _problems(answers: InitAnswers) -> list[str]:
    problems = [
        f"{what} {value!r} cannot be part of a name: give it letters, digits and hyphens."
        for what, value in (("name", answers.name), ("environment", answers.environment))
        if not re.fullmatch(r"[A-Za-z0-9-]+", value)
    ]
    if answers.environment == TWIN_ENVIRONMENT:
        problems.append(
            f"environment {TWIN_ENVIRONMENT!r} is what every command calls the twin on this "
            f"machine: choose another name, such as prod."
        )
    return [*problems, *place_problems(answers.region, answers.zones), *_provider(answers)]


def place_problems(region: str, zones: Sequence[str] = ()) -> list[str]:
    """Return what is wrong with a region, else with zones of it, in the words of the options."""
    if (refused := regions.refusal(region)) is not None:
        return [f"R{refused[1:]}"]
    if not _REGION.fullmatch(region):
        return [f"region is {region!r}: name one such as eu-west-1; a zone has a letter more."]
    named = f"{region}a"
    strange = [zone for zone in zones if not re.fullmatch(rf"{region}[a-z]", zone)]
    twice = sorted({zone for zone in zones if zones.count(zone) > 1})
    return [
        *(f"zone {zone!r} is not in {region}; one there is named as {named}." for zone in strange),
        *(f"zone {zone} is named twice; name each once." for zone in twice if zone not in strange),
    ]


def _provider(answers: InitAnswers) -> list[str]:
    """Return what Pulumi would say of a secrets provider once the first stack is made."""
    provider = answers.secrets_provider
    if provider is None or provider in _PROVIDERS:
        return []
    scheme, _, rest = provider.partition("://")
    if scheme in _KEY_SERVICES and rest:
        return []
    problem = (
        f"secrets provider {provider!r} is none that Pulumi knows: it is "
        f"{' or '.join(_PROVIDERS)}, or begins with one of "
        f"{', '.join(f'{each}://' for each in _KEY_SERVICES)}, such as "
        f"awskms://alias/NAME?region={answers.region}."
    )
    return [problem]


def write(directory: Path, rendered: Rendered, *, force: bool) -> list[str]:
    """Write a project's files, and return which were there and stayed; `force` replaces them.

    Raises InvalidInput before anything is written where the environment is described already.
    """
    there = [path for path in rendered.own if (directory / path).exists()]
    if there and not force:
        problem = (
            f"{directory} has {', '.join(there)} already, and nothing was written: give another "
            f"--environment, or replace what is there with --force."
        )
        raise InvalidInput([problem])
    wanted = {**rendered.shared, **rendered.own}
    kept = [] if force else [path for path in rendered.shared if (directory / path).exists()]
    write_files(directory, {path: text for path, text in wanted.items() if path not in kept})
    return [path for path in kept if (directory / path).read_bytes() != wanted[path]]


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Put every file beside its place first, so that a full disk leaves nothing half-written."""
    parts: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                dir=target.parent, prefix=".", suffix=".part", delete=False
            ) as part:
                parts[target] = Path(part.name)
                part.write(content)
            parts[target].chmod(0o644)
        for target, part_path in parts.items():
            part_path.replace(target)
    except OSError as error:
        raise InvalidInput(
            [f"{directory} cannot be written: {error.strerror}; name another directory."]
        ) from None
    finally:
        for part_path in parts.values():
            with contextlib.suppress(OSError):
                part_path.unlink(missing_ok=True)


def load_template(name: str) -> Template:
    """Return a file's text, in which what depends on the answers is named."""
    return Template((resources.files("cli.project") / "templates" / name).read_text("utf-8"))


def _values(answers: InitAnswers, broker: BrokerSize, came: Origin) -> dict[str, object]:
    load, per_zone = answers.load, answers.brokers // len(answers.zones)
    provider = answers.secrets_provider
    return {
        "requirement": came.requirement,
        "wheels": f", `{WHEELS}/`" if came.path else "",
        "name": answers.name,
        "environment": answers.environment,
        "name_scalar": scalar(answers.name),
        "environment_scalar": scalar(answers.environment),
        "region": scalar(answers.region),
        "zones": ", ".join(scalar(zone) for zone in answers.zones),
        "zone_count": len(answers.zones),
        "first_zone": answers.zones[0],
        "voter_zones": ", ".join(scalar(zone) for zone in answers.zones[:REPLICAS]),
        "brokers": answers.brokers,
        "nodes_per_zone": per_zone,
        # One more than there are, for the spare.
        "node_ids_per_zone": max(NODE_IDS_PER_ZONE, per_zone + 1),
        "produce": f"{answers.produce_mib_per_s:g}",
        "readers": f"{answers.readers:g}",
        "retention_hours": answers.retention_hours,
        "vpc_cidr": scalar(answers.vpc_cidr),
        "written": f"{load.written_mib_per_s:.3g}",
        "sent": f"{load.sent_mib_per_s:.3g}",
        "instance_type": broker.instance.name,
        "ebs_mib_per_s": broker.instance.ebs_mib_per_s,
        "ebs_iops": f"{broker.instance.ebs_iops:,}",
        "heap_mib": broker.heap_mib,
        "memory_request_mib": broker.memory_request_mib,
        "cpu_request_millis": broker.cpu_request_millis,
        "filled_percent": f"{100 * FILLED:.0f}",
        "size_gib": broker.size_gib,
        "iops": broker.iops,
        "throughput_mib_per_s": broker.throughput_mib_per_s,
        "secrets_provider": "" if provider is None else f"secretsprovider: {scalar(provider)}\n",
    }


def scalar(text: str) -> str:
    """Return a text as YAML reads it back, in a list or not: `no` is a name here, no answer."""
    try:
        plain = yaml.safe_load(f"- {text}\n- [{text}]") == [text, [text]]
    except yaml.YAMLError:
        plain = False
    return text if plain else json.dumps(text)
