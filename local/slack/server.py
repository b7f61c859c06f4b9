"""The twin's Slack as one program: the Web API under /api/, the channel's page at /.

`python -m local.slack.server` (env STILLWATER_TWIN). POST /twin/limit and /twin/fail make the next
calls be refused, as Slack does when it is strict or down.
"""

from __future__ import annotations

import html
import itertools
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jinja2
from markupsafe import Markup

from local.place import Place
from local.processes import stop_event

TOKEN = "xoxb-twin"  # noqa: S105 - the twin's own, worth nothing elsewhere
# In a real account a person makes this secret (docs/how-to/slack.md).
SECRET_NAME = "twin/slack"  # noqa: S105 - its name
CHANNEL = "C0HARBOUR1"
CHANNEL_NAME = "kafka-harbour"
BOT = "B0STILLWTR"
# Slack's limits on a message's blocks.
MOST_BLOCKS, MOST_FIELDS = 50, 10
LONGEST = {"header": 150, "section": 3000, "field": 2000}
DEFAULT_PAGE = 100

Answer = dict[str, Any]


class SlackRefusal(Exception):
    """Slack's word for why a call is refused."""


class Limited(Exception):
    """Too many calls: come back after so many seconds."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(str(retry_after_seconds))
        self.retry_after_seconds = retry_after_seconds


class Outage(Exception):
    """Slack itself is down."""


@dataclass
class Post:
    """One message as it stands now."""

    ts: str
    text: str
    blocks: list[dict[str, Any]]
    thread_ts: str | None
    metadata: dict[str, Any]
    edits: int = 0

    def as_listed(self, *, with_metadata: bool) -> Answer:
        """Return the message as Slack lists it."""
        listed: Answer = {
            "type": "message",
            "ts": self.ts,
            "bot_id": BOT,
            "text": self.text,
            "blocks": self.blocks,
        }
        if self.thread_ts:
            listed["thread_ts"] = self.thread_ts
        if with_metadata and self.metadata:
            listed["metadata"] = self.metadata
        return listed


@dataclass
class Workspace:
    """The channel's messages, oldest first, and what goes wrong on demand."""

    posts: list[Post] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    _limited: int = 0
    _retry_after_seconds: int = 0
    _down: int = 0
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def limit(self, calls: int, retry_after_seconds: int) -> None:
        """Answer the next calls with 429."""
        self._limited, self._retry_after_seconds = calls, retry_after_seconds

    def fail(self, calls: int) -> None:
        """Answer the next calls with 503."""
        self._down = calls

    def answer(self, method: str, token: str | None, arguments: Mapping[str, Any]) -> Answer:
        """Answer one call; raises Refusal, Limited or Outage."""
        with self._lock:
            self.calls.append(method)
            if self._down > 0:
                self._down -= 1
                raise Outage
            if self._limited > 0:
                self._limited -= 1
                raise Limited(self._retry_after_seconds)
            if token is None:
                raise SlackRefusal("not_authed")
            if token != TOKEN:
                raise SlackRefusal("invalid_auth")
            methods = {
                "auth.test": self._test,
                "chat.postMessage": self._post,
                "chat.update": self._update,
                "conversations.history": self._history,
                "conversations.replies": self._replies,
            }
            if method not in methods:
                raise SlackRefusal("unknown_method")
            return {"ok": True, **methods[method](arguments)}

    @staticmethod
    def _test(_arguments: Mapping[str, Any]) -> Answer:
        return {"url": "https://harbour.example/", "team": "harbour", "bot_id": BOT}

    def _post(self, arguments: Mapping[str, Any]) -> Answer:
        # The one method that takes a name, too.
        if arguments.get("channel") not in (CHANNEL, CHANNEL_NAME, f"#{CHANNEL_NAME}"):
            raise SlackRefusal("channel_not_found")
        thread_ts = arguments.get("thread_ts")
        if thread_ts is not None:
            self._find(thread_ts, "thread_not_found")
        post = Post(
            ts=f"{int(time.time())}.{next(self._numbers):06d}",
            text=str(arguments.get("text") or ""),
            blocks=_accepted_blocks(arguments),
            thread_ts=thread_ts,
            metadata=dict(arguments.get("metadata") or {}),
        )
        self.posts.append(post)
        return {"channel": CHANNEL, "ts": post.ts, "message": post.as_listed(with_metadata=False)}

    def _update(self, arguments: Mapping[str, Any]) -> Answer:
        self._require_id(arguments)
        post = self._find(arguments.get("ts"), "message_not_found")
        post.text, post.blocks = str(arguments.get("text") or ""), _accepted_blocks(arguments)
        post.metadata = dict(arguments.get("metadata") or post.metadata)
        post.edits += 1
        return {"channel": CHANNEL, "ts": post.ts, "text": post.text}

    def _history(self, arguments: Mapping[str, Any]) -> Answer:
        self._require_id(arguments)
        # Replies stand in their thread alone; the newest comes first.
        return _page([p for p in reversed(self.posts) if p.thread_ts is None], arguments)

    def _replies(self, arguments: Mapping[str, Any]) -> Answer:
        self._require_id(arguments)
        head = self._find(arguments.get("ts"), "thread_not_found")
        return _page([p for p in self.posts if head.ts in (p.ts, p.thread_ts)], arguments)

    @staticmethod
    def _require_id(arguments: Mapping[str, Any]) -> None:
        if arguments.get("channel") != CHANNEL:
            raise SlackRefusal("channel_not_found")

    def _find(self, ts: object, otherwise: str) -> Post:
        found = next((post for post in self.posts if post.ts == ts), None)
        if found is None:
            raise SlackRefusal(otherwise)
        return found

    def threads(self) -> list[tuple[Post, list[Post]]]:
        """Return every thread: its head and its replies, oldest first."""
        with self._lock:
            heads = [post for post in self.posts if post.thread_ts is None]
            return [(head, [p for p in self.posts if p.thread_ts == head.ts]) for head in heads]


def _page(found: list[Post], arguments: Mapping[str, Any]) -> Answer:
    oldest = float(arguments.get("oldest") or 0)
    start, size = int(arguments.get("cursor") or 0), int(arguments.get("limit") or DEFAULT_PAGE)
    fitting = [post for post in found if float(post.ts) >= oldest]
    with_metadata = str(arguments.get("include_all_metadata", "")).lower() in ("true", "1")
    following = str(start + size) if start + size < len(fitting) else ""
    return {
        "messages": [
            p.as_listed(with_metadata=with_metadata) for p in fitting[start : start + size]
        ],
        "has_more": bool(following),
        "response_metadata": {"next_cursor": following},
    }


def _accepted_blocks(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a message's blocks, checked against what Slack accepts."""
    blocks = list(arguments.get("blocks") or [])
    if not blocks and not arguments.get("text"):
        raise SlackRefusal("no_text")
    if len(blocks) > MOST_BLOCKS or any(_too_long(block) for block in blocks):
        raise SlackRefusal("invalid_blocks")
    return blocks


def _too_long(block: Mapping[str, Any]) -> bool:
    fields = block.get("fields") or []
    text = (block.get("text") or {}).get("text", "")
    longest = LONGEST.get(str(block.get("type")), LONGEST["section"])
    return (
        len(fields) > MOST_FIELDS
        or len(text) > longest
        or any(not f["text"] or len(f["text"]) > LONGEST["field"] for f in fields)
    )


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
