"""The twin's AWS: moto's server with what it lacks, as one program.

`python -m local.aws.server` (env STILLWATER_TWIN) listens on the place's `moto` address. It is
ready when GET /moto-api/ answers; the first user's access key is then in aws-credentials.json.
SIGTERM ends it and the Lambda children it started.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

from local.aws import (
    eks,
    events,
    function_urls,
    identity,
    instances,
    lambdas,
    loadbalancing,
    queues,
    root_volumes,
    scaling_api,
    volumes,
)
from local.aws.autoscaling import Engine
from local.aws.instances import Agenda, again_and_again
from local.aws.membership import Membership
from local.environment import FORWARDING_PATH, FUNCTION_URL_PATH, Delays, credentials_file
from local.iam.accounts import caller
from local.iam.guard import Guard, judge_buckets
from local.iam.requests import signature
from local.journal import Journal
from local.locks import COMPUTE, turn
from local.place import Place, dial
from local.processes import stop_event

TICK_SECONDS, SCHEDULE_SECONDS, HEALTH_SECONDS = 0.05, 0.5, 0.1
CREDENTIALS_PATH = "/stillwater/credentials/"


class Application:
    """moto's WSGI application where services that must take turns do, and the twin's own paths."""

    def __init__(self, function_url: Callable[[dict[str, Any]], Response], guard: Guard) -> None:
        self._function_url = function_url
        self._guard = guard
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        own = self._own_answer(environ)
        if own is not None:
            return own(environ, start_response)
        signed = signature(environ)
        with turn(signed.service if signed else ""):
            answer: Iterable[bytes] = self._moto(environ, start_response)
            return answer

    def _own_answer(self, environ: dict[str, Any]) -> Response | None:
        """Return the answer to one of the twin's own paths, or a refusal; None: moto answers."""
        path = str(environ.get("PATH_INFO", ""))
        if path.startswith(CREDENTIALS_PATH):
            return _credentials(environ, path.removeprefix(CREDENTIALS_PATH))
        if path == FORWARDING_PATH:
            return loadbalancing.answer_forwarding()
        if path.startswith(FUNCTION_URL_PATH):
            return self._function_url(environ)
        return self._guard.refusal(environ)


def _credentials(environ: dict[str, Any], access_key_id: str) -> Response:
    """Answer with the secret behind an access key id, to this machine only."""
    found = None
    if str(environ.get("REMOTE_ADDR", "")).startswith("127."):
        found = caller(access_key_id)
    body = json.dumps(found.as_key_owner() if found else {"error": "no such access key"})
    return Response(body, 200 if found else 404, mimetype="application/json")


class Background:
    """Everything this program runs besides answering requests."""

    def __init__(self, place: Place) -> None:
        write = Journal(place).write
        agenda = Agenda()
        delays = Delays.from_env()
        machines = instances.InstanceStates(agenda, delays, write)
        engine = Engine(Membership(machines, delays, write), delays, write)
        self.guard = Guard(write)
        self.functions = lambdas.InvokedFunctions(place, write, self.guard)
        instances.install(machines)
        volumes.install(agenda)
        root_volumes.install(agenda, write)
        scaling_api.install(engine)
        eks.install(engine)
        queues.install_queues()
        judge_buckets()
        lambdas.install(self.functions)
        self._agenda, self._engine = agenda, engine
        self._health_checks = loadbalancing.install(partial(dial, place), write)
        self._schedules = events.install(self.functions.invoke_later)
        self._mappings = queues.install_mappings(self.functions)
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin the rounds of every part, each in a thread of its own."""
        rounds: dict[str, tuple[Callable[[], object], float]] = {
            "machines and groups": (self._tick, TICK_SECONDS),
            "schedules": (lambda: self._schedules.fire_due(time.time()), SCHEDULE_SECONDS),
            "mappings": (self._mappings.look, queues.LOOK_SECONDS),
            "health checks": (lambda: self._health_checks.step(time.time()), HEALTH_SECONDS),
        }
        for name, (each, seconds) in rounds.items():
            told = (name, each, seconds, self._stopped)
            threading.Thread(target=again_and_again, args=told, name=name, daemon=True).start()

    def _tick(self) -> None:
        """Let time pass for instances and groups."""
        with COMPUTE:
            self._agenda.run_due(time.time())
            self._engine.step(time.time())

    def stop(self) -> None:
        """Stop feeding functions, then end their children."""
        self._stopped.set()
        self._mappings.stop()
        self._health_checks.stop()
        self.functions.close()


def serve(place: Place) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = stop_event()
    place.path("logs").mkdir(parents=True, exist_ok=True)
    cloud = Background(place)
    identity.write(identity.create_admin(), credentials_file(place))
    # Head and body of an answer are two segments; without this the second waits 40 ms.
    MotoRequestHandler.disable_nagle_algorithm = True
    server = make_server(
        place.host("moto"),
        place.port("moto"),
        Application(partial(function_urls.answer, cloud.functions), cloud.guard),
        threaded=True,
        request_handler=MotoRequestHandler,
    )
    cloud.start()
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    stop.wait()
    cloud.stop()


def main() -> None:
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    # One line per request would bury everything else.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
    serve(Place.load())
    # Long polls sleep in daemon threads; nobody waits for them.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
