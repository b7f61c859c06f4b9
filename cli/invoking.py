"""Asks a function of an environment's to decide or to do something, and returns what it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from core import naming
from core.errors import StillwaterError, one_line

if TYPE_CHECKING:
    from cli.incidents import Desk

# Longer than a function may run, and asked once: asked again it would begin anew.
PATIENCE = Config(read_timeout=120, retries={"total_max_attempts": 1})
# Key -> the kind of its value: what of an answer is shown.
Shape = Mapping[str, type | UnionType]


def invoke(desk: Desk, role: str, event: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return what a function answers; raise StillwaterError where it does not, or is another's."""
    name = naming.function(desk.spec.prefix, role)
    try:
        answer = desk.client("lambda", PATIENCE).invoke(
            FunctionName=name, Payload=json.dumps(event or {}).encode()
        )
        decoded = object_in(answer["Payload"].read())
    except (BotoCoreError, ClientError) as error:
        raise StillwaterError(
            f"λ {name} could not be invoked: {one_line(error)}. `stillwater up` makes it, and you "
            f"need lambda:InvokeFunction on it."
        ) from None
    if answer.get("FunctionError"):
        said = decoded.get("errorMessage", "it said nothing")
        raise StillwaterError(f"λ {name} failed ({said}); its log is /aws/lambda/{name}.")
    if not decoded:
        raise unreadable(name)
    return decoded


def object_in(written: bytes | str) -> Mapping[str, Any]:
    """Return a JSON object, or nothing where it is none."""
    try:
        found = json.loads(written)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def has(said: object, shape: Shape) -> bool:
    """Say whether an answer, or a part of one, has all of a shape.

    >>> has({"said": "Done."}, {"said": str}), has({"said": None}, {"said": str}), has([], {})
    (True, False, False)
    """
    return isinstance(said, dict) and all(
        key in said and isinstance(said[key], kind) for key, kind in shape.items()
    )


def unreadable(function: str) -> StillwaterError:
    """Return the error of an answer that no function of this release gives."""
    return StillwaterError(
        f"λ {function} answered in a form that this release cannot read: it is of another version, "
        f"or something else answers in its place; `stillwater up` brings it to this one."
    )
