"""Taps on the handlers' adapters: every call of a λ can be seen, refused, cut off or overtaken."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

# Calls that change something outside of the function; between two others nothing new can be lost.
EFFECTS = frozenset(
    {
        "begin_drain",
        "close_event",
        "complete_hook",
        "drop_lease",
        "elect",
        "file",
        "heartbeat",
        "mark_spare",
        "protect",
        "put",
        "record_event",
        "record_ignored",
        "release_attachments",
        "reorder",
        "send",
        "set_desired",
        "set_out_of_service",
        "take_lease",
        "terminate_in_group",
        "throttle",
        "unthrottle",
        "write",
    }
)
AWS = frozenset({"cloud", "inventory", "ledger", "records", "ticks", "nth"})


class Killed(BaseException):  # what a process meets is no error of its own
    """The function's process ends here; no handler of an error ever sees it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an adapter by a function."""

    invocation: int
    function: str  # interruption, tick or sweep
    adapter: str
    method: str
    arguments: tuple[Any, ...]

    @property
    def name(self) -> str:
        return f"{self.adapter}.{self.method}"

    @property
    def effect(self) -> bool:
        return self.method in EFFECTS


@dataclass
class Taps:
    """What is listened to, and what is done to calls; `function` is the one that runs now."""

    invocation: int = 0
    function: str = ""
    effects: list[Call] = field(default_factory=list)
    before: list[Callable[[Call], None]] = field(default_factory=list)
    after: list[Callable[[Call, Any], None]] = field(default_factory=list)

    def on(self, adapter: str, target: Any) -> Any:
        """Return the adapter with a tap on each of its methods."""
        return _Tapped(self, adapter, target)

    def clear(self) -> None:
        self.effects.clear()
        self.before.clear()
        self.after.clear()


class _Tapped:
    def __init__(self, taps: Taps, adapter: str, target: Any) -> None:
        self._taps, self._adapter, self._target = taps, adapter, target

    def __getattr__(self, method: str) -> Any:
        def called(*arguments: Any, **options: Any) -> Any:
            call = Call(
                self._taps.invocation, self._taps.function, self._adapter, method, arguments
            )
            for hook in list(self._taps.before):
                hook(call)
            answer = getattr(self._target, method)(*arguments, **options)
            if call.effect:
                self._taps.effects.append(call)
            for after in list(self._taps.after):
                after(call, answer)
            return answer

        return called


def throttling_error(call: Call) -> ClientError:
    """Return what boto3 raises once its own retries are used up."""
    error = {"Error": {"Code": "Throttling", "Message": "Rate exceeded"}}
    return ClientError(error, call.method)  # type: ignore[arg-type]


def timeout_error(call: Call) -> ReadTimeoutError:
    """Return what boto3 raises when the effect took place and its answer got lost."""
    return ReadTimeoutError(endpoint_url=f"https://{call.adapter}.amazonaws.com")
