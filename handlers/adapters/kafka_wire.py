"""A client of Kafka's protocol that says whom it asks, and what the answer's error is called.

kafka-python's own admin methods ask whichever broker is idle and drop errors inside an answer (of a
log directory, a topic's configuration, a broker's refusal to tell). A reading must know both, so it
sends requests and reads the answers itself; encoding and connections stay the library's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, for_code

# The client refuses a fifth request on a connection (max_in_flight_requests_per_connection).
MOST_AT_ONCE = 4


class Wire(Protocol):
    """Whoever can be sent a request of Kafka's protocol."""

    def ask(self, request: Any, broker: int | None = None) -> Any:
        """Return a broker's answer, of any broker where none is named; raises KafkaError."""

    def ask_undecoded(self, requests: Sequence[Any], broker: int) -> list[bytes]:
        """Return the bodies of a broker's answers as they came; raises KafkaError.

        All requests are under way at the same time, MOST_AT_ONCE of them at most.
        """

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> Iterator[Any]:
        """Yield the answer of each broker to its request, or the KafkaError in its place.

        One at a time: those of 200 brokers are more than a function's memory holds.
        """


class WireAdmin(KafkaAdminClient):  # type: ignore[misc]  # kafka-python carries no types
    """kafka-python's admin client, asked request by request."""

    def ask(self, request: Any, broker: int | None = None) -> Any:
        return self._manager.run(self._send, request, broker)

    def ask_undecoded(self, requests: Sequence[Any], broker: int) -> list[bytes]:
        answers: list[_Body] = self._manager.run(self._sent_at_once, requests, broker)
        return [answer.body for answer in answers]

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> Iterator[Any]:
        return (self._answer_or_error(broker, request) for broker, request in requests)

    def _answer_or_error(self, broker: int, request: Any) -> Any:
        try:
            return self.ask(request, broker)
        except KafkaError as error:
            return error

    async def _send(self, request: Any, broker: int | None) -> Any:
        return await self._manager.send(request, node_id=broker)

    async def _sent_at_once(self, requests: Sequence[Any], broker: int) -> list[Any]:
        sent = [self._manager.send(_Undecoded(each), node_id=broker) for each in requests]
        return [await each for each in sent]


class _Undecoded:
    """A request of the library's, whose answer is handed over as it came."""

    def __init__(self, request: Any) -> None:
        object.__setattr__(self, "request", request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.request, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.request, name, value)

    @property
    def header(self) -> _Header:
        return _Header(self.request.header)


class _Header:
    """What the connection keeps of a request, to know the answer by."""

    def __init__(self, header: Any) -> None:
        self._header = header

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> _Answers:
        return _Answers(self._header.get_response_class())


@dataclass(frozen=True, slots=True)
class _Body:
    """An answer as it came; the connection itself heeds the throttling that it begins with."""

    body: bytes

    @property
    def throttle_time_ms(self) -> int:
        return int.from_bytes(self.body[:4], "big", signed=True)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Stands where the library has the class of a request's answers."""

    decoding: Any

    def parse_header(self, data: Any) -> Any:
        return self.decoding.parse_header(data)

    def decode(self, data: Any) -> _Body:
        return _Body(data.read())


def error_name(code: int) -> str:
    """Return Kafka's name of an error code without the library's ending; none for 0.

    >>> error_name(29), error_name(0)
    ('TopicAuthorizationFailed', '')
    """
    return name_of(for_code(code)) if code else ""


def name_of(error: type[BaseException]) -> str:
    return error.__name__.removesuffix("Error")
