"""Serves the gate over HTTPS: the API server's questions, the replica's health, and its metrics.

Answers only who knows the path's token, which the API server alone is given (ADR 0030). Always
answers before the API server stops waiting: what takes longer is a no with that reason, and
whatever is still being read ends without an effect.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.gate import PATH, TIMEOUT_SECONDS, GateAnswer, RemovalRequest, asked_in, review_of
from core.ground.errors import InvalidInput
from handlers.eviction.gate import Gate

BOUNDS_SECONDS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 8.0)
ANSWERS = "stillwater_gate_answers_total"
SECONDS = "stillwater_gate_answer_seconds"


class Counts:
    """Since this replica started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[bool] = Counter()
        self._within: Counter[float] = Counter()
        self._sum = 0.0

    def add(self, answer: GateAnswer, seconds: float) -> None:
        with self._lock:
            self._answers[answer.allowed] += 1
            self._sum += seconds
            for bound in BOUNDS_SECONDS:
                self._within[bound] += seconds <= bound

    def text(self) -> str:
        """Return every count in the text format of Prometheus."""
        with self._lock:
            total = sum(self._answers.values())
            lines = [f"# TYPE {ANSWERS} counter"]
            lines += [
                f'{ANSWERS}{{answer="{said}"}} {self._answers[allowed]}'
                for allowed, said in ((True, "allowed"), (False, "denied"))
            ]
            lines.append(f"# TYPE {SECONDS} histogram")
            lines += [
                f'{SECONDS}_bucket{{le="{bound}"}} {self._within[bound]}'
                for bound in BOUNDS_SECONDS
            ]
            lines += [
                f'{SECONDS}_bucket{{le="+Inf"}} {total}',
                f"{SECONDS}_sum {self._sum}",
                f"{SECONDS}_count {total}",
            ]
        return "\n".join(lines) + "\n"


LOG = logging.getLogger(__name__)
ANSWER_SECONDS = TIMEOUT_SECONDS - 2.0
# No object of Kubernetes is larger: etcd takes 1.5 MiB, and a deletion shows one.
LONGEST_BYTES = 3 * 1024 * 1024
AT_ONCE = 64
# Python looks at all that it holds for cycles no one can reach: at 200 brokers for 75 ms, in which
# nobody is answered. So it does when nobody asks; what gathers in a minute is little.
COLLECT_SECONDS = 60.0
# A reading makes more objects than that: looked at after every 700, they cost it 3 ms.
YOUNG = 50_000
BY_NOBODY = 1_000_000


def application(
    gate: Gate, counts: Counts, admits: Callable[[str], bool], *, seconds: float = ANSWER_SECONDS
) -> Starlette:
    """Return the web application; `admits` says whether a token is the API server's.

    A replica that serves is ready, whatever it cannot reach: its refusal says what that is, where
    no replica at all says nothing.
    """
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def evictions(request: Request) -> Response:
        if not admits(request.path_params["token"]):
            return Response(status_code=HTTPStatus.NOT_FOUND)  # before anything of it is read
        began = time.monotonic()
        try:
            with anyio.fail_after(seconds):
                body = await _body(request)
            asked = asked_in(json.loads(body))
        except TimeoutError:
            return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)
        except (InvalidInput, ValueError) as error:
            said = error.problems if isinstance(error, InvalidInput) else ["it is not JSON"]
            return PlainTextResponse(
                f"The request is not an AdmissionReview: {'; '.join(said)}.\n",
                HTTPStatus.BAD_REQUEST,
            )
        answer = await _answer(gate, asked, limiter, seconds)
        counts.add(answer, time.monotonic() - began)
        return JSONResponse(review_of(asked.uid, answer))

    async def well(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(counts.text())

    return Starlette(
        routes=[
            Route(f"{PATH}/{{token}}", evictions, methods=["POST"]),
            Route("/healthz", well),
            Route("/readyz", well),
            Route("/metrics", metrics),
        ],
        lifespan=lambda _: collecting(limiter, COLLECT_SECONDS),
    )


@contextlib.asynccontextmanager
async def collecting(limiter: anyio.CapacityLimiter, every_seconds: float) -> AsyncIterator[None]:
    """Have Python's whole memory looked through between answers alone, for the block."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(YOUNG, middle, BY_NOBODY)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_collect, limiter, every_seconds)
            yield
            tasks.cancel_scope.cancel()
    finally:
        gc.set_threshold(young, middle, old)


async def _collect(limiter: anyio.CapacityLimiter, every_seconds: float) -> None:
    while True:
        await anyio.sleep(every_seconds)
        while limiter.borrowed_tokens:
            await anyio.sleep(every_seconds / 1000)
        gc.collect()


async def _body(request: Request) -> bytes:
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > LONGEST_BYTES:
            raise InvalidInput([f"it is longer than {LONGEST_BYTES} bytes"])
    return bytes(found)


async def _answer(
    gate: Gate, asked: RemovalRequest, limiter: anyio.CapacityLimiter, seconds: float
) -> GateAnswer:
    deadline = time.time() + seconds
    try:
        with anyio.fail_after(seconds):
            return await to_thread.run_sync(
                gate.ask, asked, deadline, limiter=limiter, abandon_on_cancel=True
            )
    except TimeoutError:
        reason = f"No answer was found within {seconds:.0f} s. Ask again."
    except Exception:
        LOG.exception("A question could not be answered.")
        reason = "The gate failed over it; its log says why. Ask again."
    return GateAnswer(allowed=False, reason=f"Whether {asked.name} may go is not known: {reason}")
