"""Judges a Connect worker by what HTTP probes saw of it, and reads a pod's state in Kubernetes.

`GET /health` answers 200, 503 or 500, the last two only after a fixed 10 s (KIP-1017); workers
before Kafka 3.9 do not know it, and are asked for a connector instead. Kubernetes knows nothing of
Kafka: a Ready pod may be a broker that leads nothing (core.health.kafka).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from core.health.verdict import Health, HealthVerdict, degraded, healthy, not_known, unhealthy
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
    return _unknown(worker, f"could not be asked: {_quotation(answer.detail)}", REST)


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
    return _unknown(worker, f"{said}, which is no answer of Kafka Connect's: {quote}", REST)


def _message(said: dict[str, object]) -> str:
    return _quotation(str(said.get("message") or ""))


def _quotation(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_QUOTE].rstrip(".")


def _verdict(health: Health, worker: Worker, said: str) -> HealthVerdict:
    return HealthVerdict(health, f"Worker {worker.name} {said}.")


def _unknown(worker: Worker, said: str, source: str) -> HealthVerdict:
    named = source if source == KAFKA else f"{source} of {worker.name}"
    return not_known(f"Worker {worker.name} {said}.", (named,))


# How long a pod may take from its making to Ready; a broker's log recovery may take longer.
STARTUP_SECONDS = 300.0
# The kubelet's words for a container that is on its way; every other one needs somebody.
ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
# And those of the scheduler, for a pod that another node may take.
HOMELESS = frozenset({"Unschedulable", "SchedulingGated", "SchedulerError"})
LONGEST_SAID = 240
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodTrouble:
    """Why a pod does not start: Kubernetes' own word, and a clause that names the cause."""

    word: str = ""
    cause: str = ""


def is_hopeless(word: str) -> bool:
    """Say whether a container that waits with this word will not come up by itself."""
    return word not in ON_ITS_WAY | HOMELESS


def trouble_of(pod: Json) -> PodTrouble:
    """Return why a pod does not start, by everything it shows; one that runs has no word."""
    status, name = pod.get("status") or {}, pod["metadata"]["name"]
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    placed = conditions.get("PodScheduled", {})
    if placed.get("status") == "False":
        word = str(placed.get("reason") or "Unschedulable")
        return PodTrouble(word, f"the scheduler places it on no node ({_said(placed) or word})")
    containers = [
        *(("init container", each) for each in status.get("initContainerStatuses") or ()),
        *(("container", each) for each in status.get("containerStatuses") or ()),
    ]
    found = [_container_trouble(name, kind, each) for kind, each in containers]
    # One that fails says more than those that wait for it.
    word = next((each.word for each in found if each.word), "")
    told = next((each for each in found if each.cause), None)
    if told is not None:
        return PodTrouble(told.word or word, told.cause)
    gates = (gate["conditionType"] for gate in pod.get("spec", {}).get("readinessGates") or ())
    shut = next((g for g in gates if conditions.get(g, {}).get("status") != "True"), None)
    if word or shut is None or conditions.get("ContainersReady", {}).get("status") != "True":
        return PodTrouble(word)
    said = _said(conditions.get(shut, {}))
    return PodTrouble("", f"its readiness gate {shut} is not met{f' ({said})' if said else ''}")


def _container_trouble(pod: str, kind: str, container: Json) -> PodTrouble:
    """Return what is wrong with one container; one that waits for others has a word alone."""
    state = container.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    word = str(waiting.get("reason") or "")
    failed = bool(ended) and ended.get("exitCode") != 0
    if not (failed or is_hopeless(word)):
        return PodTrouble(word)
    last = ended or (container.get("lastState") or {}).get("terminated") or {}
    how = f" with exit code {last['exitCode']} ({last.get('reason')})" if "exitCode" in last else ""
    said = _said(waiting) or _said(last)
    remedy = (
        f"`kubectl logs {pod} -c {container.get('name')}{'' if failed else ' --previous'}` says why"
        if how
        else f"`kubectl describe pod {pod}` says why"
    )
    cause = (
        f"{kind} {container.get('name')} {f'waits in {word}' if word else 'has ended'}{how}"
        f"{f' ({said})' if said else ''}; {remedy}"
    )
    return PodTrouble(word, cause)


def _said(item: Json) -> str:
    return " ".join(str(item.get("message") or "").split()).rstrip(".")[:LONGEST_SAID]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """One pod of Kafka's or Connect's, as the API server lists it."""

    name: str
    node_id: int | None  # Kafka's; None for a Connect worker
    created_at: float | None  # epoch seconds; None: the API server does not say
    node_name: str | None = None
    unscheduled: str = ""  # the scheduler's words
    ready: bool = False
    containers_ready: bool = False
    gates: Mapping[str, bool] = field(default_factory=dict)
    started_at: float | None = None  # when its container's process did; None: it does not run
    waiting: str = ""  # the kubelet's word for why it does not, or why it ended
    stuck: bool = False  # it will not come up by itself
    # The container that `waiting` and `restarts` are about, where that is not its own.
    beside: str = ""
    restarts: int = 0
    stopping: bool = False
    unready_since: float | None = None  # epoch seconds; None: it is Ready, or nobody said

    @property
    def running(self) -> bool:
        return self.started_at is not None

    def running_seconds(self, now: float) -> float | None:
        return None if self.started_at is None else max(now - self.started_at, 0.0)


def pod_verdict(
    pod: PodSeen, now: float, startup_seconds: float = STARTUP_SECONDS
) -> HealthVerdict:
    """Return a pod's verdict; one that is not Ready may be starting for `startup_seconds`."""
    if pod.stopping:
        return degraded(f"Pod {pod.name} is being stopped.")
    if pod.node_name is None:
        why = f": {pod.unscheduled}" if pod.unscheduled else ""
        return _not_yet(pod, f"is not scheduled{why}", _since(pod, now), startup_seconds)
    if pod.stuck:
        times = f" after {pod.restarts} restarts" if pod.restarts else ""
        what = f"Container {pod.beside} of pod {pod.name}" if pod.beside else f"Pod {pod.name}"
        return unhealthy(f"{what} does not start{times}: {pod.waiting}.")
    if pod.ready:
        return healthy(f"Pod {pod.name} is Ready on {pod.node_name}.")
    since = _since(pod, now)
    # One that has run for days may have been Ready until a moment ago.
    lasting = None if pod.unready_since is None else now - pod.unready_since
    closed = sorted(gate for gate, held in pod.gates.items() if not held)
    if pod.containers_ready and closed:
        # Its process is well; clients cannot reach it through the load balancer.
        return _not_yet(
            pod,
            f"waits for its readiness gate {closed[0]}",
            since,
            startup_seconds,
            Health.DEGRADED,
            lasting=lasting,
        )
    waiting = f" ({pod.waiting})" if pod.waiting else ""
    return _not_yet(pod, f"is not Ready{waiting}", since, startup_seconds, lasting=lasting)


def no_pod(what: str) -> HealthVerdict:
    """Return the verdict on what should have a pod and has none."""
    return unhealthy(f"{what} has no pod; Strimzi's cluster operator makes it one.")


def _since(pod: PodSeen, now: float) -> float | None:
    """Return for how long a pod runs, or is there; None: nobody says."""
    began = pod.created_at if pod.started_at is None else pod.started_at
    return None if began is None else now - began


def _not_yet(
    pod: PodSeen,
    said: str,
    seconds: float | None,
    limit: float,
    then: Health = Health.UNHEALTHY,
    lasting: float | None = None,
) -> HealthVerdict:
    """Judge what is not there yet by how long its pod may take; `lasting` is since it is not."""
    if seconds is None:
        # It may be starting, and may have waited for days.
        told = f"Pod {pod.name} {said.rstrip('.')}, and nothing says since when."
        return not_known(told, (f"creation time of pod {pod.name}",))
    health = Health.STARTING if seconds < limit else then
    # Clocks differ: what was made in the future was made just now.
    passed = max(seconds if lasting is None else lasting, 0.0)
    return HealthVerdict(health, f"Pod {pod.name} {said.rstrip('.')}, for {passed:.0f} s.")
