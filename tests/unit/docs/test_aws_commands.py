"""The AWS commands of the pages exist, with their options: held against the API's own models."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
from botocore import xform_name

from tests.every_case import every_case
from tests.unit.docs import markdown

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


@cache
def _api(service: str) -> Any:
    return botocore.session.get_session().get_service_model(API_OF.get(service, service))


def problem(words: list[str]) -> str | None:
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


@every_case("page", markdown.PAGES, ids=markdown.name)
def test_every_aws_command_exists_with_its_options(page: Path) -> None:
    shell = [block.body for block in markdown.blocks(page) if block.language in ("", "sh", "bash")]
    for text in [*shell, *markdown.spans(page)]:
        for words in commands(text):
            assert problem(words) is None, f"`aws {' '.join(words)}`: {problem(words)}"


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
    assert problem(words) == wrong
