"""Does what somebody at the desk asks for: the functions behind the commands of the same names.

Nothing is allowed here that the command line would refuse: AWS knows the caller, and the ledger's
rules judge the wish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cli import incidents, pauses
from cli.incidents import Desk, sentences
from cli.rotate import Rotor
from core.errors import InvalidInput

Said = Mapping[str, str]
LONGEST_WORD = 500


def _rotation(command: str) -> Callable[[Desk, Said], str]:
    def ask(desk: Desk, _said: Said) -> str:
        return str(Rotor(desk).ask(command)["said"])

    return ask


WISHES: Mapping[str, tuple[frozenset[str], Callable[[Desk, Said], str]]] = {
    "hold": (
        frozenset({"instance", "until"}),
        lambda desk, said: incidents.hold_instance(desk, said["instance"], said["until"]),
    ),
    "release": (
        frozenset({"instance"}),
        lambda desk, said: incidents.release_instance(desk, said["instance"]),
    ),
    "pause": (
        frozenset({"because", "until"}),
        lambda desk, said: pauses.pause(desk, said["because"], said["until"] or None),
    ),
    "resume": (frozenset(), lambda desk, _said: pauses.resume(desk)),
    "rotation-pause": (frozenset(), _rotation("pause")),
    "rotation-resume": (frozenset(), _rotation("resume")),
}


def fulfil(desk: Desk, name: str, said: object) -> str:
    """Do what is asked and return the sentence that says so; else raises StillwaterError."""
    words, do = WISHES[name]
    if not isinstance(said, dict) or set(said) != words:
        wanted = ", ".join(sorted(words)) or "nothing"
        raise InvalidInput([f"The wish {name} takes a JSON object of: {wanted}."])
    for word, value in said.items():
        if not isinstance(value, str) or len(value) > LONGEST_WORD:
            raise InvalidInput(
                [f"{word} of the wish {name} must be text of {LONGEST_WORD} letters or fewer."]
            )
    with sentences():
        return do(desk, said)
