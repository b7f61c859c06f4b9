"""What the pages tell the reader to type, set or read exists, AWS's own commands too."""

import functools
import re
import shlex
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import botocore.session
import typer
import yaml
from botocore import xform_name

from cli.main import app
from core.cluster import ClusterSpec
from core.cluster.estimate import Usage
from core.cluster.fleet import parse_fleet
from core.settings import functions
from core.timing import FACTS
from tests.every_case import every_case
from tests.unit.docs import markdown

ROOT = typer.main.get_command(app)
SCHEMA = ClusterSpec.model_json_schema()
FIELDS = {
    key for model in (SCHEMA, *SCHEMA["$defs"].values()) for key in model.get("properties", {})
}
# A setting says its unit; whatever is written like one is one, of ours or of others.
_UNITS = (
    "_seconds",
    "_gib",
    "_mib",
    "_mib_per_s",
    "_bytes_per_s",
    "_per_zone",
    "_millis",
    "_cidrs",
)
_SETTING = re.compile(rf"[a-z][a-z_]*(?:{'|'.join(_UNITS)})")
# What the functions are told has its own page.
TOLD = {each.name for cls in vars(functions).values() if is_dataclass(cls) for each in fields(cls)}
KNOWN = FIELDS | FACTS.keys() | set(Usage.__slots__) | TOLD
_COMMAND = re.compile(r"(?:^|&&|;|\bdo )\s*(?:\.venv/bin/)?stillwater +([^;&|#]*)")
_TARGET = re.compile(r"^%?[a-z%-]+(?=:)", re.MULTILINE)
_EXPORT = re.compile(r'pulumi\.export\("(\w+)"')
pages = every_case("page", markdown.PAGES, ids=markdown.name)


@functools.cache
def _targets() -> set[str]:
    return set(_TARGET.findall((markdown.REPOSITORY / "Makefile").read_text()))


@functools.cache
def _exported() -> set[str]:
    layers = (markdown.REPOSITORY / "stacks" / "layers").glob("*.py")
    return {name for layer in layers for name in _EXPORT.findall(layer.read_text())}


@functools.cache
def _lines(page: Path) -> Sequence[str]:
    """Return every line of shell and every code span: what a reader may type."""
    shell = (line for body in _shell(page) for line in body.splitlines())
    return [*shell, *markdown.spans(page)]


def _shell(page: Path) -> list[str]:
    return [block.body for block in markdown.blocks(page) if block.language in ("", "sh", "bash")]


def problem(words: list[str]) -> str | None:
    """Say what is wrong with the words after `stillwater`, if anything."""
    command: Any = ROOT
    while isinstance(getattr(command, "commands", None), dict) and words:
        if words[0].startswith("-"):
            if getattr(command, "invoke_without_command", False):
                break
            known = {"--help", "-h", *(name for each in command.params for name in each.opts)}
            return None if words[0] in known else f"there is no option {words[0]}"
        if words[0] not in command.commands:
            return f"there is no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    for word in words:
        if word.startswith("--") and word.partition("=")[0] not in {*options, "--help"}:
            return f"{command.name} has no option {word}"
    return None


def _commands(text: str) -> list[list[str]]:
    return [shlex.split(found, comments=True) for found in _COMMAND.findall(text)]


@pages
def test_every_command_exists_with_its_options(page: Path) -> None:
    for line in _lines(page):
        for words in _commands(line.strip()):
            wrong = problem(words)
            assert wrong is None, f"`{line.strip()}`: {wrong}"


@pages
def test_every_make_target_exists(page: Path) -> None:
    known = _targets()
    for line in _lines(page):
        for target in re.findall(r"(?:^|&& |; )make ([a-zA-Z-]+)", line.strip()):
            pattern = re.sub(r"-.*", "-%", target)
            assert target in known or pattern in known, f"`{line.strip()}`"


@pages
def test_every_key_of_a_spec_exists(page: Path) -> None:
    for span in markdown.spans(page):
        path = span.partition(":")[0].strip().split(".")
        # Neither a host nor a label is a key.
        named = path[0] in SCHEMA["properties"] and all(re.fullmatch("[a-z_]+", p) for p in path)
        if named and path[-1] != "internal":
            assert _model_at(path) is not None, f"`{span}`: there is no such key"
        for word in re.findall(r"\w+", span):
            assert word in KNOWN or not _SETTING.fullmatch(word), f"`{word}`: there is no such key"


@pages
def test_every_piece_of_a_spec_is_one(page: Path) -> None:
    for block in markdown.blocks(page):
        if block.language not in ("yaml", "yml"):
            continue
        for piece in yaml.safe_load_all(block.body):
            if isinstance(piece, dict) and "waves" in piece:
                assert parse_fleet(piece)
            elif isinstance(piece, dict) and piece.keys() & SCHEMA["properties"].keys() - {
                "kind",
                "metadata",
            }:
                assert not list(_unknown(piece, SCHEMA, ""))


@pages
def test_every_stack_output_is_exported(page: Path) -> None:
    named = re.findall(r"pulumi stack output (\w+)", page.read_text())
    assert set(named) <= _exported()


def _resolved(kind: dict[str, Any]) -> dict[str, Any]:
    for each in kind.get("anyOf", [kind]):
        if "$ref" in each:
            found: dict[str, Any] = SCHEMA["$defs"][each["$ref"].rpartition("/")[2]]
            return found
        if "items" in each:
            return _resolved(each["items"])
    return kind


def _model_at(path: list[str]) -> dict[str, Any] | None:
    model: dict[str, Any] = SCHEMA
    for key in path:
        if key not in model.get("properties", {}):
            return None
        model = _resolved(model["properties"][key])
    return model


def _unknown(piece: object, model: dict[str, Any], path: str) -> list[str]:
    if isinstance(piece, list):
        return [wrong for each in piece for wrong in _unknown(each, model, path)]
    if not isinstance(piece, dict) or "properties" not in model:
        return []
    wrong = [f"{path}{key}" for key in piece if key not in model["properties"]]
    for key in piece.keys() & model["properties"].keys():
        wrong += _unknown(piece[key], _resolved(model["properties"][key]), f"{path}{key}.")
    return wrong


@every_case(
    ("text", "wrong"),
    [
        ("stillwater check FILE", None),
        ("cd x && .venv/bin/stillwater up try", None),
        ("stillwater report --bill FILE", None),
        ("stillwater launch", "there is no command launch"),
        ("stillwater prices checks", "there is no command checks"),
        ("stillwater estimate FILE --yaml", "estimate has no option --yaml"),
    ],
)
def test_a_command_that_is_not_there_is_found(text: str, wrong: str | None) -> None:
    (words,) = _commands(text)
    assert problem(words) == wrong


def test_a_key_that_is_not_there_is_found() -> None:
    assert _model_at(["kubernetes", "addon_version"]) is None
    assert _unknown({"pools": [{"nodes": 1}]}, SCHEMA, "") == ["pools.nodes"]


GLOBAL = {"query", "output", "region", "profile", "endpoint-url"}
# What the CLI has beside the APIs: commands of its own, and friendlier options for some.
OWN_COMMANDS = {"s3", "logs tail", "eks update-kubeconfig", "eks get-token"}
OWN_OPTIONS = {"ec2 authorize-security-group-ingress": {"protocol", "port", "cidr"}}
API_OF = {"s3api": "s3"}
_INNERMOST = re.compile(r"\$\(([^()]*)\)")


def commands(text: str) -> list[list[str]]:
    """Return every AWS command's words after `aws`, those in substitutions included."""
    found: list[str] = []
    joined = re.sub(r"\\\n\s*", " ", text)
    while inner := _INNERMOST.search(joined):
        found.append(inner[1])
        joined = joined.replace(inner[0], "X")
    for line in joined.splitlines():
        found += re.split(r"\s&&\s|;\s|\s\|\s|\s\|$", line)
    words = (_words(each) for each in found if re.search(r"(?:^|\s)aws [a-z0-9-]+ [a-z]", each))
    return [each[each.index("aws") + 1 :] for each in words if "aws" in each]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:  # a value that goes on in the next line; the options before it are here
        return command.split()


@functools.cache
def _api(service: str) -> Any:
    return botocore.session.get_session().get_service_model(API_OF.get(service, service))


def aws_problem(words: list[str]) -> str | None:
    """Say what is wrong with an AWS command, if anything."""
    service, operation, *rest = words
    if service in OWN_COMMANDS or f"{service} {operation}" in OWN_COMMANDS:
        return None
    if operation == "wait":
        waiters = botocore.session.get_session().get_waiter_model(service).waiter_names
        known = {xform_name(name, "-"): name for name in waiters}
        if rest[0] not in known:
            return f"{service} waits for no {rest[0]}"
        return None
    operations = {xform_name(name, "-"): name for name in _api(service).operation_names}
    if operation not in operations:
        return f"{service} has no operation {operation}"
    shape = _api(service).operation_model(operations[operation]).input_shape
    options = {xform_name(member, "-") for member in (shape.members if shape else ())}
    options |= GLOBAL | OWN_OPTIONS.get(f"{service} {operation}", set())
    for word in rest:
        option = word.removeprefix("--").partition("=")[0]
        if word.startswith("--") and not {option, option.removeprefix("no-")} & options:
            return f"{service} {operation} has no option --{option}"
    return None


@pages
def test_every_aws_command_exists_with_its_options(page: Path) -> None:
    for text in [*_shell(page), *markdown.spans(page)]:
        for words in commands(text):
            wrong = aws_problem(words)
            assert wrong is None, f"`aws {' '.join(words)}`: {wrong}"


@every_case(
    ("text", "wrong"),
    [
        ("aws ec2 describe-volumes --volume-ids vol-1", None),
        ("x=$(aws sts get-caller-identity --query Account --output text)", None),
        ("aws ec2 wait volume-available --volume-ids vol-1", None),
        ("aws ec2 wait volume-there", "ec2 waits for no volume-there"),
        ("aws ec2 list-volumes", "ec2 has no operation list-volumes"),
        (
            "echo x | \\\n  aws ec2 describe-volumes --ids 1",
            "ec2 describe-volumes has no option --ids",
        ),
    ],
)
def test_an_aws_command_that_is_not_there_is_found(text: str, wrong: str | None) -> None:
    (words,) = commands(text)
    assert aws_problem(words) == wrong
