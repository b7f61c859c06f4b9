"""The twin's Slack as one program: the Web API under /api/, the channel's page at /.

`python -m local.slack.server` (env STILLWATER_TWIN). POST /twin/limit and /twin/fail make the next
calls be refused, as Slack does when it is strict or down.
"""

from __future__ import annotations

import html
import json
import re
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jinja2
from markupsafe import Markup

from local.place import Place
from local.slack.workspace import CHANNEL_NAME, Limited, Outage, SlackRefusal, Workspace
from local.stopping import stop_event

API = "/api/"
LARGEST_BODY_BYTES = 1024 * 1024
# <!date^1795168800^{date_short_pretty} {time_secs}|2026-11-20 10:00:00 UTC>
_MARKUP = re.compile(r"<([^<>]*)>")
_BOLD = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")
_CODE = re.compile(r"`([^`\n]+)`")


class SlackServer(ThreadingHTTPServer):
    """One workspace behind one address."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, SlackRequests)
        self.workspace = Workspace()


class SlackRequests(BaseHTTPRequestHandler):
    """Answers calls of the Web API, and shows the page."""

    server: SlackServer
    protocol_version = "HTTP/1.1"
    # Head and body are two writes; without this the second waits for an acknowledgement.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if urlsplit(self.path).path.startswith(API):
            self._api(dict(parse_qsl(urlsplit(self.path).query)))
        elif self.path == "/":
            page = draw(self.server.workspace).encode()
            self._send(HTTPStatus.OK, page, {"Content-Type": "text/html; charset=utf-8"})
        else:
            self._send_json(HTTPStatus.NOT_FOUND, {"ok": False})

    def do_POST(self) -> None:
        body = self.rfile.read(
            min(int(self.headers.get("Content-Length") or 0), LARGEST_BODY_BYTES)
        )
        arguments = self._arguments(body)
        match self.path:
            case "/twin/limit":
                self.server.workspace.limit(arguments["calls"], arguments["retry_after_seconds"])
                self._send_json(HTTPStatus.OK, {})
            case "/twin/fail":
                self.server.workspace.fail(arguments["calls"])
                self._send_json(HTTPStatus.OK, {})
            case _:
                # A form in the query, as slack_sdk sends for calls that read.
                query = dict(parse_qsl(urlsplit(self.path).query))
                self._api({**query, **arguments})

    def _arguments(self, body: bytes) -> dict[str, Any]:
        if not body:
            return {}
        if str(self.headers.get("Content-Type", "")).startswith("application/json"):
            return dict(json.loads(body))
        return dict(parse_qsl(body.decode()))

    def _api(self, arguments: dict[str, Any]) -> None:
        method = urlsplit(self.path).path.removeprefix(API)
        scheme, _, token = str(self.headers.get("Authorization") or "").partition(" ")
        try:
            answer = self.server.workspace.answer(
                method, token if scheme == "Bearer" else None, arguments
            )
        except SlackRefusal as refusal:
            self._send_json(HTTPStatus.OK, {"ok": False, "error": str(refusal)})
        except Limited as limited:
            self._send_json(
                HTTPStatus.TOO_MANY_REQUESTS,
                {"ok": False, "error": "ratelimited"},
                {"Retry-After": str(limited.retry_after_seconds)},
            )
        except Outage:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, b"upstream connect error", {})
        else:
            self._send_json(HTTPStatus.OK, answer)

    def _send_json(
        self, status: HTTPStatus, answer: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        self._send(
            status,
            json.dumps(answer).encode(),
            {"Content-Type": "application/json", **(headers or {})},
        )

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing per request; the page shows what was told."""


def draw(workspace: Workspace) -> str:
    """Return the page of every thread in the channel."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True
    )
    environment.filters["mrkdwn"] = mrkdwn
    page = environment.get_template("threads.html.j2")
    return page.render(channel=CHANNEL_NAME, threads=workspace.threads())


def mrkdwn(text: str) -> Markup:
    """Return Slack's markup as HTML: what was escaped for Slack stays text."""
    shown = []
    for position, part in enumerate(_MARKUP.split(text)):
        # Every second part stood in angle brackets; a date's last field is what others read.
        plain = part.rpartition("|")[2] if position % 2 else html.unescape(part)
        shown.append(html.escape(plain))
    marked = _BOLD.sub(r"<b>\1</b>", "".join(shown))
    marked = _CODE.sub(r"<code>\1</code>", marked)
    return Markup(marked.replace("\n", "<br>"))  # noqa: S704 - every part was escaped above


def main() -> None:
    place = Place.load()
    server = SlackServer((place.host("slack"), place.port("slack")))
    stop = stop_event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stop.wait()
    server.shutdown()


if __name__ == "__main__":
    main()
