"""Holds an answer, or why there is none: one part that cannot be read costs no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from cli.preflight.refusals import sentence
from cli.preflight.ways_out import way_out
from core.errors import StillwaterError
from core.survey.facts import Unread

T = TypeVar("T")
F = TypeVar("F")


def answer_or_reason(ask: Callable[[], T]) -> T | Unread:
    """Return an answer, or why there is none."""
    try:
        return ask()
    except (BotoCoreError, ClientError, StillwaterError, OSError) as error:
        return Unread(sentence(error), way_out(error))
    except Exception as error:  # noqa: BLE001 - one answer nobody foresaw costs no other part
        why = f"the answer is not as documented ({type(error).__name__}: {error})"
        return Unread(why, way_out(error))


def on(found: F | Unread, ask: Callable[[F], T]) -> T | Unread:
    """Ask on the strength of an earlier answer; without it nothing is known here either."""
    return found if isinstance(found, Unread) else answer_or_reason(lambda: ask(found))
