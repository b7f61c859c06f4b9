"""A client of Kafka's protocol that says whom it asks, and what the answer's error is called.

kafka-python's own admin methods ask whichever broker is idle and drop errors inside an answer (of a
log directory, a topic's configuration, a broker's refusal to tell). A reading must know both, so it
sends requests and reads the answers itself; encoding and connections stay the library's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, for_code


class Wire(Protocol):
    """Whoever can be sent a request of Kafka's protocol."""

    def ask(self, request: Any, broker: int | None = None) -> Any:
        """Return a broker's answer, of any broker where none is named; raises KafkaError."""

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> Iterator[Any]:
        """Yield the answer of each broker to its request, or the KafkaError in its place.

        One at a time: those of 200 brokers are more than a function's memory holds.
        """


class WireAdmin(KafkaAdminClient):  # type: ignore[misc]  # kafka-python carries no types
    """kafka-python's admin client, asked request by request."""

    def ask(self, request: Any, broker: int | None = None) -> Any:
        return self._manager.run(self._sent, request, broker)

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> Iterator[Any]:
        return (self._asked(broker, request) for broker, request in requests)

    def _asked(self, broker: int, request: Any) -> Any:
        try:
            return self.ask(request, broker)
        except KafkaError as error:
            return error

    async def _sent(self, request: Any, broker: int | None) -> Any:
        return await self._manager.send(request, node_id=broker)


def error_name(code: int) -> str:
    """Return Kafka's name of an error code without the library's ending; none for 0.

    >>> error_name(29), error_name(0)
    ('TopicAuthorizationFailed', '')
    """
    return name_of(for_code(code)) if code else ""


def name_of(error: type[BaseException]) -> str:
    return error.__name__.removesuffix("Error")
