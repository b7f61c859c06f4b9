"""Judges which messages a subscription asks for, and where they are to go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from local.refusals.limits import first_of, limit
from local.refusals.refusal import Refusal, Wanted

_SNS = "https://docs.aws.amazon.com/sns/latest/"
# SNS developer guide, "Filter policy constraints".
COMBINATIONS, LARGEST_NUMBER = 150, 1e9
# API_Subscribe, Endpoint: what each protocol is delivered to.
_ENDPOINTS: Mapping[str, re.Pattern[str]] = {
    protocol: re.compile(form)
    for protocol, form in {
        "application": r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:(app|endpoint)/.+",
        # Of an e-mail address: ASCII with one @.
        "email": r"[!-?A-~]+@[!-?A-~]+",
        "email-json": r"[!-?A-~]+@[!-?A-~]+",
        "firehose": r"arn:aws[a-z-]*:firehose:[a-z0-9-]+:\d{12}:deliverystream/.+",
        "http": r"http://[^/\s]+.*",
        "https": r"https://[^/\s]+.*",
        "lambda": r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:.+",
        "sms": r"\+?[0-9][0-9 ().-]{2,19}",
        "sqs": r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:\d{12}:.+",
    }.items()
}
# What SNS says of one in another form, where it speaks of no ARN.
_ENDPOINT_WORDS = {
    **dict.fromkeys(("email", "email-json"), "Email address"),
    **dict.fromkeys(("http", "https"), "Endpoint must match the specified protocol"),
    "sms": "SMS endpoint",
}


@limit("sns/topicSubscription:TopicSubscription", source=f"{_SNS}api/API_Subscribe.html")
def endpoint_of_a_protocol(wanted: Wanted) -> Iterator[Refusal]:
    """A protocol that there is, and an endpoint in the form that it has."""
    protocol, endpoint = str(wanted.inputs.get("protocol")), str(wanted.inputs.get("endpoint"))
    form = _ENDPOINTS.get(protocol)
    said = _ENDPOINT_WORDS.get(protocol, f"{protocol.upper()} endpoint ARN")
    yield from first_of(
        "Subscribe",
        "InvalidParameter",
        (
            form is None,
            f"Invalid parameter: Does not support this protocol string: {protocol}",
            "protocol",
        ),
        (
            form is not None and form.fullmatch(endpoint) is None,
            f"Invalid parameter: {said}: {endpoint}",
            "endpoint",
        ),
        (
            protocol == "sqs"
            and endpoint.endswith(".fifo")
            and not str(wanted.inputs.get("topic")).endswith(".fifo"),
            (
                "Invalid parameter: Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be "
                "subscribed to standard SNS topics"
            ),
            "endpoint",
        ),
    )
