"""Slack through its own client: post, edit, and find what was posted but never recorded.

Nothing here waits or repeats: a refusal for now says for how long, and the caller comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Protocol

from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web import WebClient

from core.ground.errors import StillwaterError
from core.slack import Message, escape_markup

# The type of the metadata every message of ours carries; its payload is the step's key.
METADATA_TYPE = "stillwater_incident"
TIMEOUT_SECONDS = 5
# Where Slack names no time in a refusal.
DEFAULT_RETRY_SECONDS = 30.0
# How far Slack is read back for a message that was posted and not recorded.
SEARCHED_PAGE, MOST_PAGES = 200, 5
# A token that is refused may have been replaced in Secrets Manager meanwhile.
TOKEN_ERRORS = frozenset({"invalid_auth", "token_revoked", "token_expired", "not_authed"})
_LIMITED = frozenset({"ratelimited", "rate_limited"})
_PASSING = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})


class RateLimited(StillwaterError):
    """Slack took nothing and wants to be left alone for so many seconds."""

    def __init__(self, sentence: str, retry_after_seconds: float) -> None:
        super().__init__(sentence)
        self.retry_after_seconds = retry_after_seconds


class Unreachable(StillwaterError):
    """No answer, or none that counts: whether Slack took the message is not known."""


class RefusedBySlack(StillwaterError):
    """Slack will not take it, however often it is asked; `code` is Slack's word for why."""

    def __init__(self, sentence: str, code: str) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True, slots=True)
class Posted:
    """Where a message stands: Slack's id of the channel, and the message's timestamp."""

    channel: str
    ts: str


class Channel(Protocol):
    """One Slack channel."""

    def post(self, key: str, message: Message, thread: Posted | None) -> Posted:
        """Post a message, below the thread's head if one is given."""

    def edit(self, where: Posted, key: str, message: Message) -> None:
        """Replace a message."""

    def find(self, key: str, since: float, thread: Posted | None) -> Posted | None:
        """Return the message that was posted with a key since a moment, if there is one."""


class SlackChannel:
    """A channel of a workspace, by name or id."""

    def __init__(self, token: str, channel: str, api_url: str) -> None:
        self._channel = channel
        # No retries: they sleep, and a sleeping Lambda is paid for.
        self._web = WebClient(
            token=token, base_url=api_url, timeout=TIMEOUT_SECONDS, retry_handlers=[]
        )

    def post(self, key: str, message: Message, thread: Posted | None) -> Posted:
        answer = self._answer(
            "chat.postMessage",
            {
                "channel": thread.channel if thread else self._channel,
                "text": escape_markup(message.text),
                "blocks": message.blocks,
                "metadata": _metadata(key),
                "unfurl_links": False,
                **({"thread_ts": thread.ts} if thread else {}),
            },
        )
        return Posted(str(answer["channel"]), str(answer["ts"]))

    def edit(self, where: Posted, key: str, message: Message) -> None:
        self._answer(
            "chat.update",
            {
                "channel": where.channel,
                "ts": where.ts,
                "text": escape_markup(message.text),
                "blocks": message.blocks,
                "metadata": _metadata(key),
            },
        )

    def find(self, key: str, since: float, thread: Posted | None) -> Posted | None:
        method, asked = "conversations.history", {"channel": self._channel}
        if thread is not None:
            method, asked = "conversations.replies", {"channel": thread.channel, "ts": thread.ts}
        asked |= {
            "oldest": f"{since:.6f}",
            "include_all_metadata": "true",
            "limit": str(SEARCHED_PAGE),
        }
        for _ in range(MOST_PAGES):
            answer = self._answer(method, asked)
            for message in answer.get("messages") or ():
                if _key_of(message) == key:
                    return Posted(asked["channel"], str(message["ts"]))
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                break
            asked["cursor"] = cursor
        return None

    def _answer(self, method: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        # Calls that read take a form, calls that write take JSON.
        form = {"params": body} if method.startswith("conversations.") else {"json": body}
        try:
            answer = self._web.api_call(method, **form)  # type: ignore[arg-type]  # either is a dict
        except SlackApiError as error:
            raise _refusal(method, error) from None
        except (SlackClientError, HTTPException, OSError) as error:
            raise Unreachable(f"Slack did not answer {method}: {error}") from None
        return answer.data if isinstance(answer.data, Mapping) else {}


def _refusal(method: str, error: SlackApiError) -> StillwaterError:
    response = error.response
    data = response.data if isinstance(response.data, Mapping) else {}
    code = str(data.get("error") or f"HTTP {response.status_code}")
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS or code in _LIMITED:
        wait = _seconds(response.headers)
        return RateLimited(f"Slack refuses more {method} for {wait:.0f} s.", wait)
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or code in _PASSING:
        return Unreachable(f"Slack answered {method} with {code}.")
    needed = f"; it needs the scope {data['needed']}" if data.get("needed") else ""
    return RefusedBySlack(f"Slack refused {method}: {code}{needed}.", code)


def _seconds(headers: Mapping[str, Any]) -> float:
    """Return what Retry-After says; header names come in any case."""
    for name, value in headers.items():
        if name.lower() == "retry-after":
            said = value[0] if isinstance(value, Sequence) and not isinstance(value, str) else value
            return float(said) if str(said).isdigit() else DEFAULT_RETRY_SECONDS
    return DEFAULT_RETRY_SECONDS


def _metadata(key: str) -> dict[str, Any]:
    return {"event_type": METADATA_TYPE, "event_payload": {"key": key}}


def _key_of(message: Mapping[str, Any]) -> object:
    payload = (message.get("metadata") or {}).get("event_payload") or {}
    return payload.get("key")
