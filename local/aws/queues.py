"""SQS in the twin: a message goes to one receiver at a time, and a wait ends when one is visible.

moto picks and marks a message in two steps without a lock, so two receivers in two threads can
get the same one (seen once in 600), and its long poll looks once a second.
"""

from __future__ import annotations

import time
from typing import Any

from moto.sqs.models import SQSBackend

POLL_SECONDS = 0.1


def install() -> None:
    """Serialise each queue on its own lock."""
    moto_receive = SQSBackend.receive_message
    moto_delete = SQSBackend.delete_message
    moto_change = SQSBackend.change_message_visibility

    def receive_message(  # moto's signature
        backend: Any,
        queue_name: str,
        count: int,
        wait_seconds_timeout: int,
        visibility_timeout: int,
        message_attribute_names: list[str] | None = None,
    ) -> list[Any]:
        queue = backend.get_queue(queue_name)
        deadline = time.monotonic() + (wait_seconds_timeout or 0)
        while True:
            with queue._messages_lock:  # noqa: SLF001  # the queue's own, re-entrant
                found: list[Any] = moto_receive(
                    backend, queue_name, count, 0, visibility_timeout, message_attribute_names
                )
                left = deadline - time.monotonic()
                if found or left <= 0:
                    return found
                # Delayed messages become visible without a word, so nothing but looking helps.
                queue._messages_lock.wait(min(left, POLL_SECONDS))  # noqa: SLF001  # as above

    def delete_message(backend: Any, queue_name: str, receipt_handle: str) -> None:
        with backend.get_queue(queue_name)._messages_lock:  # noqa: SLF001  # as above
            moto_delete(backend, queue_name, receipt_handle)

    def change_message_visibility(
        backend: Any, queue_name: str, receipt_handle: str, visibility_timeout: int
    ) -> None:
        with backend.get_queue(queue_name)._messages_lock:  # noqa: SLF001  # as above
            moto_change(backend, queue_name, receipt_handle, visibility_timeout)

    SQSBackend.receive_message = receive_message
    SQSBackend.delete_message = delete_message
    SQSBackend.change_message_visibility = change_message_visibility
