"""Asks for one answer among many: one part that cannot be read costs no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from cli.aws import sentence
from cli.remedies import remedy_of
from core.ground.errors import StillwaterError, one_line
from core.ground.unknown import Unknown

T = TypeVar("T")
F = TypeVar("F")
S = TypeVar("S", bound=Sized)


def answer_or_reason(ask: Callable[..., T], *given: object) -> T | Unknown:
    """Return an answer, or why there is none."""
    try:
        return ask(*given)
    except (BotoCoreError, ClientError, StillwaterError, OSError) as error:
        return Unknown(sentence(error), remedy_of(error))
    except Exception as error:  # noqa: BLE001 - one answer nobody foresaw costs no other part
        said = one_line(f"{type(error).__name__}: {error}")
        return Unknown(f"the answer is not as documented ({said})", remedy_of(error))


def on(found: F | Unknown, ask: Callable[[F], T]) -> T | Unknown:
    """Ask on the strength of an earlier answer; without it nothing is known here either."""
    return found if isinstance(found, Unknown) else answer_or_reason(ask, found)


def on_any(found: S | Unknown, ask: Callable[[S], Mapping[str, T]]) -> Mapping[str, T] | Unknown:
    """Ask on the strength of an earlier answer, and nobody where that names nothing."""
    return on(found, lambda known: ask(known) if known else {})
