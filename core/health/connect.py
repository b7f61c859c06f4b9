"""A Connect worker's health from what HTTP probes of it saw: KIP-1017, and the rule before it.

`GET /health` answers 200, 503 or 500, the last two only after a fixed 10 s; workers before Kafka
3.9 do not know it, and are asked for a connector instead. handlers.adapters.pods probes,
core.health.verdict makes the cluster's verdict of its workers'.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.health.verdict import Health, HealthVerdict, not_known
from core.timing import FACTS

HEALTH_PATH = "/health"
# No connector is called so: the answer of a worker that is fine is 404, and that is the rule.
CONNECTOR_PATH = "/connectors/stillwater-asks-for-health"
WAIT_SECONDS = float(FACTS["connect_health_wait_seconds"])
REST, KAFKA = "Connect's REST port", "Kafka's admin API"
_LONGEST_QUOTE = 300


class Failure(StrEnum):
    """Why there is no answer."""

    REFUSED = "refused"  # nobody listens
    TIMEOUT = "timeout"  # somebody may listen, and says nothing
    UNREACHABLE = "unreachable"  # the way there failed, which says nothing of the worker


class Mode(StrEnum):
    DISTRIBUTED = "distributed"
    STANDALONE = "standalone"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestResponse:
    """What one GET of a worker's REST port saw, and how long that took."""

    path: str
    seconds: float
    status: int | None = None
    content_type: str = ""
    body: str = ""
    failure: Failure | None = None
    detail: str = ""

    @property
    def document(self) -> dict[str, object] | None:
        """Return the body where it is one of Connect's own: a JSON object.

        Its type says nothing: to a path it does not know, a worker answers JSON without one
        (measured on 3.8.1), and Jetty answers HTML while Connect is not there yet.
        """
        try:
            found = json.loads(self.body)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What is known of a worker besides its answers; None is not known."""

    name: str
    mode: Mode = Mode.DISTRIBUTED
    running: bool | None = None  # its process
    running_seconds: float | None = None
    startup_seconds: float = 120.0  # how long it may take to start
    kafka_answers: bool | None = None


def next_path(answers: Sequence[RestResponse]) -> str | None:
    """Return what to ask a worker next, or None where its answers suffice for a verdict."""
    if not answers:
        return HEALTH_PATH
    return CONNECTOR_PATH if len(answers) == 1 and _knows_no_health(answers[0]) else None


def worker_verdict(worker: Worker, answers: Sequence[RestResponse]) -> HealthVerdict:
    """Return a worker's verdict from its answers, in the order of `next_path`."""
    if worker.running is False:
        return _verdict(Health.UNHEALTHY, worker, "has stopped: its process does not run")
    if not answers:
        return _unknown(worker, "was not asked", REST)
    last = answers[-1]
    if last.failure is not None:
        return _verdict_of_silence(worker, last)
    if last.status == 404 and last.document is None:
        # Jetty's own page: the port is open, and Connect's resources are not behind it yet.
        return _still_starting(worker, f"answers 404 without JSON to {last.path}")
    if last.path == HEALTH_PATH:
        return _health_verdict(worker, last)
    return _connector_verdict(worker, last)


def _knows_no_health(answer: RestResponse) -> bool:
    return answer.path == HEALTH_PATH and answer.status == 404 and answer.document is not None


def _health_verdict(worker: Worker, answer: RestResponse) -> HealthVerdict:
    said = answer.document or {}
    match answer.status, said.get("status"):
        case 200, "healthy":
            return _fine(worker, f"answered 200 healthy after {answer.seconds:.1f} s")
        case 503, "starting":
            return _still_starting(worker, f"answered 503: {_message(said)}")
        case 500, "unhealthy":
            return _verdict(Health.UNHEALTHY, worker, f"answered 500: {_message(said)}")
    return _own_error(worker, answer) or _strange(worker, answer)


def _connector_verdict(worker: Worker, answer: RestResponse) -> HealthVerdict:
    """Judge by the rule before KIP-1017: 200 or 404 went through the herder, all else did not."""
    rebalances = answer.status == 409 and _is_own(answer)  # The herder says so itself.
    if answer.status in {200, 404} or rebalances:
        knows = f"knows no {HEALTH_PATH} (before Kafka 3.9)"
        said = f"{knows} and answered {answer.status} to {answer.path}"
        return _fine(worker, f"{said} after {answer.seconds:.1f} s")
    if answer.status is not None and answer.status >= 500:
        said = _message(answer.document or {}) or "without a reason"
        return _verdict(
            Health.UNHEALTHY, worker, f"answered {answer.status} to {answer.path}: {said}"
        )
    return _own_error(worker, answer) or _strange(worker, answer)


def _is_own(answer: RestResponse) -> bool:
    """Say whether an answer is an error in Connect's own form: `error_code` beside a message."""
    return isinstance((answer.document or {}).get("error_code"), int)


def _own_error(worker: Worker, answer: RestResponse) -> HealthVerdict | None:
    """Judge an error of Connect's own: it failed, or it refused and says nothing of its health."""
    if answer.status is None or not _is_own(answer):
        return None
    message = _message(answer.document or {}) or "without a reason"
    said = f"answered {answer.status}"
    if answer.status >= 500:
        return _verdict(Health.UNHEALTHY, worker, f"{said}: {message}")
    refusal = f"{said} to {answer.path}, which is Kafka Connect's own refusal: {message}"
    return _unknown(worker, refusal, REST)


def _fine(worker: Worker, said: str) -> HealthVerdict:
    """Believe a good answer as far as it goes: a standalone worker's is no word about Kafka."""
    if worker.mode is Mode.DISTRIBUTED:
        return _verdict(Health.HEALTHY, worker, said)
    blind = f"{said}, which as a standalone worker it does whether Kafka answers or not"
    if worker.kafka_answers is None:
        return _unknown(worker, f"{blind}; nobody asked Kafka", KAFKA)
    if not worker.kafka_answers:
        return _verdict(Health.UNHEALTHY, worker, f"{blind}; Kafka does not answer")
    return _verdict(Health.HEALTHY, worker, f"{said}, and Kafka answers")


def _verdict_of_silence(worker: Worker, answer: RestResponse) -> HealthVerdict:
    match answer.failure:
        case Failure.REFUSED:
            return _still_starting(worker, "refuses connections to its REST port")
        case Failure.TIMEOUT if answer.path == HEALTH_PATH and answer.seconds <= WAIT_SECONDS:
            return _unknown(
                worker,
                f"was given {answer.seconds:.0f} s, and answers 500 or 503 only after its own "
                f"{WAIT_SECONDS:.0f} s",
                REST,
            )
        case Failure.TIMEOUT if answer.path == HEALTH_PATH:
            # A blocked herder would have answered 500: this one does not run at all.
            said = f"did not answer within {answer.seconds:.0f} s: it is frozen, or paused for long"
            return _verdict(Health.UNHEALTHY, worker, said)
        case Failure.TIMEOUT:
            # By the older rule, starting and blocked look the same.
            return _still_starting(
                worker,
                f"did not answer {answer.path} within {answer.seconds:.0f} s: its tick thread is "
                f"busy or blocked",
            )
    return _unknown(worker, f"did not answer: {_quotation(answer.detail)}", REST)


def _still_starting(worker: Worker, said: str) -> HealthVerdict:
    """Judge what a worker does while it starts by how long it has been at it."""
    age = worker.running_seconds
    if age is None:
        return _verdict(Health.UNHEALTHY, worker, f"{said}; since when it runs is not known")
    if age < worker.startup_seconds:
        return _verdict(Health.STARTING, worker, f"{said}; it runs for {age:.0f} s")
    allowed = f"it runs for {age:.0f} s, and may take {worker.startup_seconds:.0f} s to start"
    return _verdict(Health.UNHEALTHY, worker, f"{said}; {allowed}")


def _strange(worker: Worker, answer: RestResponse) -> HealthVerdict:
    said = f"answered {answer.status} ({answer.content_type or 'no type'}) to {answer.path}"
    quote = _quotation(answer.body) or "nothing"
    return _unknown(worker, f"{said}, which is not an answer of Kafka Connect's: {quote}", REST)


def _message(said: dict[str, object]) -> str:
    return _quotation(str(said.get("message") or ""))


def _quotation(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_QUOTE].rstrip(".")


def _verdict(health: Health, worker: Worker, said: str) -> HealthVerdict:
    return HealthVerdict(health, f"Worker {worker.name} {said}.")


def _unknown(worker: Worker, said: str, source: str) -> HealthVerdict:
    named = source if source == KAFKA else f"{source} of {worker.name}"
    return not_known(f"Worker {worker.name} {said}.", (named,))
