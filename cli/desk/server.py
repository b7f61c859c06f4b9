"""Serves the desk to the one who holds its token, from this machine alone.

The page itself says nothing and is open; all that it shows or does is asked with the token in a
header. So no other site can ask in a browser's name, and no cookie goes to another port of
loopback. A Host that is not ours is refused: a name that was rebound to this address.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cli.desk.watch import DeskWatch
from cli.desk.wishes import WISHES
from core.errors import Conflict, InvalidInput, StillwaterError

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


class OnlyOurs:
    """Refuses whoever names another host, comes from another site, or has no token."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        refusal = self._refusal(Request(scope))
        await (refusal or self._app)(scope, receive, with_headers)

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
            return _refused_response(404, f"Nobody knows the wish {name!r}; there are {known}.")
        try:
            said = json.loads(await _body(request))
        except ValueError:
            return _refused_response(400, "The wish is no JSON object of at most 8 KB.")
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
