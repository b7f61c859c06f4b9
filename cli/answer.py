"""Prints what a program asked for with `--json`, refusals included: JSON alone is on stdout.

What people read beside it (progress, questions, the sentence of a refusal) goes to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from core.ground.errors import StillwaterError

FLAG = "--json"


def write(document: object) -> None:
    """Write one document to stdout, at once: the command may go on."""
    sys.stdout.write(f"{json.dumps(document, indent=2)}\n")
    sys.stdout.flush()


def refusal(sentence: str, exit_code: int, problems: Sequence[str] = ()) -> str:
    """Return a refusal as one line of JSON, which may also end a stream of lines."""
    said = {"exit_code": exit_code, "error": sentence, "problems": list(problems or [sentence])}
    return json.dumps(said)


def problems_of(error: BaseException) -> Sequence[str]:
    """Return an error's sentences apart, where it has several."""
    found: Sequence[str] = getattr(error, "problems", ())
    return found


@contextmanager
def refusals(exit_code: int, *, as_json: bool) -> Iterator[None]:
    """End a command whose block is refused with an exit code of its own, and say why."""
    try:
        yield
    except StillwaterError as error:
        from cli.terminal import Terminal  # noqa: PLC0415 - nothing is printed of what succeeds

        Terminal(stderr=True).print(str(error), style="red")
        if as_json:
            sys.stdout.write(f"{refusal(str(error), exit_code, problems_of(error))}\n")
        raise typer.Exit(exit_code) from None
