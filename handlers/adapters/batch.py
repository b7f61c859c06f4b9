"""Answers a batch of an SQS queue: a message that fails is delivered again, and it alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord


def answer(event: dict[str, Any], context: Any, take: Callable[[SQSRecord], None]) -> Any:
    """Give each record of a batch to `take`, and return those that failed."""
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(
        event=event, record_handler=take, processor=processor, context=context
    )
