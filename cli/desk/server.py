"""Serves the desk to the one who holds its token, from this machine alone.

The page itself says nothing and is open; all that it shows or does is asked with the token in a
header. So no other site can ask in a browser's name, and no cookie goes to another port of
loopback. A Host that is not ours is refused: a name that was rebound to this address. A wish is
done by the functions behind the commands of the same names, and refused where they refuse.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import uvicorn
from rich.console import Console
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cli import incidents
from cli.desk.reading import (
    EVERY_SECONDS,
    DeskReading,
    DeskSource,
    LastAnswer,
    Stores,
    desk_cluster,
)
from cli.desk.state import page_state
from cli.rotate import Rotations
from cli.target import Cluster, readable_ledger
from core.ground.errors import Conflict, InvalidInput, StillwaterError, passed_on

# A page that gets no word for longer says that it is stale.
BEAT_SECONDS = 2.0
Said = Mapping[str, str]
LONGEST_WORD = 500
TOKEN_HEADER = "X-Stillwater-Token"  # noqa: S105 - a header's name
LARGEST_BODY_BYTES = 8_192
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PAGES = {
    "/": ("desk.html", "text/html"),
    "/desk.css": ("desk.css", "text/css"),
    "/desk.js": ("desk.js", "text/javascript"),
}
Fulfil = Callable[[str, object], str]
LOOPBACK = "127.0.0.1"


@dataclass
class DeskWatch:
    """One environment as its viewers see it; `ask` blocks, so it is asked in a thread."""

    reading: DeskReading
    ask: Callable[[DeskSource], LastAnswer]
    clock: Callable[[], float] = time.time
    viewers: int = 0
    _asked_at: dict[DeskSource, float] = field(default_factory=dict)
    _under_way: dict[DeskSource, asyncio.Task[None]] = field(default_factory=dict)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _looking: asyncio.Task[None] | None = None

    async def states(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what is shown: at once, at every news and at every beat."""
        self.viewers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            while True:
                yield page_state(self.reading, self.clock())
                async with self._news:
                    try:
                        await asyncio.wait_for(self._news.wait(), BEAT_SECONDS)
                    except TimeoutError:
                        continue
        finally:
            self.viewers -= 1

    async def look_now(self) -> None:
        """Read the ledger anew: somebody has just changed it."""
        self._asked_at.pop(DeskSource.LEDGER, None)
        await self._read(DeskSource.LEDGER)

    async def _look(self) -> None:
        try:
            while self.viewers:
                for source in DeskSource:
                    if self._is_due(source):
                        self._asked_at[source] = self.clock()
                        self._under_way[source] = asyncio.create_task(self._read(source))
                await asyncio.sleep(BEAT_SECONDS / 4)
        finally:
            self._looking = None

    def _is_due(self, source: DeskSource) -> bool:
        running = self._under_way.get(source)
        if running is not None and not running.done():
            return False
        asked_at = self._asked_at.get(source)
        return asked_at is None or self.clock() - asked_at >= EVERY_SECONDS[source]

    async def _read(self, source: DeskSource) -> None:
        answer = await asyncio.to_thread(self.ask, source)
        async with self._news:
            self.reading = self.reading.update(source, answer)
            self._news.notify_all()


def _rotation(command: str) -> Callable[[Cluster, Said], str]:
    def ask(cluster: Cluster, _said: Said) -> str:
        return str(Rotations(cluster).ask(command)["said"])

    return ask


WISHES: Mapping[str, tuple[frozenset[str], Callable[[Cluster, Said], str]]] = {
    "hold": (
        frozenset({"instance", "until"}),
        lambda cluster, said: incidents.hold_instance(cluster, said["instance"], said["until"]),
    ),
    "release": (
        frozenset({"instance"}),
        lambda cluster, said: incidents.release_instance(cluster, said["instance"]),
    ),
    "pause": (
        frozenset({"because", "until"}),
        lambda cluster, said: incidents.pause(cluster, said["because"], said["until"] or None),
    ),
    "resume": (frozenset(), lambda cluster, _said: incidents.resume(cluster)),
    "rotation-pause": (frozenset(), _rotation("pause")),
    "rotation-resume": (frozenset(), _rotation("resume")),
}


def fulfil(cluster: Cluster, name: str, said: object) -> str:
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
    with readable_ledger():
        return do(cluster, said)


class OnlyOurs:
    """Refuses whoever names another host, comes from another site, or has no token."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        refusal = self._refusal(Request(scope))
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if host not in self._hosts:
            wanted = " or ".join(sorted(self._hosts))
            return _refused_response(421, f"This desk answers as {wanted}, not as {host!r}.")
        origin = request.headers.get("origin", f"http://{host}")
        if origin != f"http://{host}":
            return _refused_response(403, f"Another site asks: {origin!r}.")
        if request.url.path in PAGES:
            return None
        given = request.headers.get(TOKEN_HEADER, "").encode()
        if not secrets.compare_digest(given, self._token):
            return _refused_response(
                401, "The token is missing or wrong: open the address the terminal says."
            )
        return None


def application(watch: DeskWatch, fulfil: Fulfil, token: str, port: int) -> ASGIApp:
    """Return the desk's web application."""
    wishing = asyncio.Lock()

    async def events(_request: Request) -> Response:
        return StreamingResponse(_server_sent_events(watch), media_type="text/event-stream")

    async def wish(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in WISHES:
            known = ", ".join(WISHES)
            return _refused_response(
                404, f"The desk does not know the wish {name!r}; there are {known}."
            )
        try:
            said = json.loads(await _body(request))
        except ValueError:
            return _refused_response(400, "The wish is not a JSON object of at most 8 KB.")
        try:
            async with wishing:
                done = await asyncio.to_thread(fulfil, name, said)
        except (InvalidInput, Conflict) as error:
            return _refused_response(409, str(error))
        except StillwaterError as error:
            return _refused_response(502, str(error))
        await watch.look_now()
        return JSONResponse({"said": done})

    routes = [
        *(Route(path, _page(*page)) for path, page in PAGES.items()),
        Route("/events", events),
        Route("/wishes/{name}", wish, methods=["POST"]),
    ]
    return OnlyOurs(Starlette(routes=routes), token, port)


async def _server_sent_events(watch: DeskWatch) -> AsyncIterator[str]:
    async for state in watch.states():
        yield f"data: {json.dumps(state, separators=(',', ':'))}\n\n"


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY_BYTES:
            raise ValueError("too long")
    return body


def _page(name: str, media_type: str) -> Callable[[Request], Response]:
    content = (files("cli.desk") / "pages" / name).read_text("utf-8")
    return lambda _request: Response(content, media_type=media_type)


def _refused_response(status: int, sentence: str) -> Response:
    return JSONResponse({"refused": sentence}, status)


def serve_desk(environment: str, port: int, console: Console) -> None:
    """Serve the desk of an environment until Ctrl-C; port 0 is any that is free."""
    cluster = Cluster.named(environment)
    # Of 256 bits; a fragment, which a browser sends to nobody.
    token = secrets.token_urlsafe(32)
    with _socket(port) as listening:
        bound = int(listening.getsockname()[1])
        console.print(f"The desk of {cluster.spec.prefix}, until Ctrl-C:")
        console.print(f"http://{LOOPBACK}:{bound}/#{token}")
        console.print("A person with this address may hold, release and pause in your name.")
        desk_server(environment, cluster, token, bound).run(sockets=[listening])


def desk_server(environment: str, cluster: Cluster, token: str, port: int) -> uvicorn.Server:
    """Return what serves a desk at a port, for the one who holds the token."""
    watch = DeskWatch(DeskReading(desk_cluster(environment, cluster)), Stores(cluster).ask)
    app = application(watch, lambda name, said: fulfil(cluster, name, said), token, port)
    # No log of requests; an open stream must not hold up the end.
    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=1
    )
    return uvicorn.Server(settings)


def _socket(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        ours = f"--port {port} cannot be listened at; leave it out for one that is free."
        raise InvalidInput([passed_on(ours, error)]) from None
