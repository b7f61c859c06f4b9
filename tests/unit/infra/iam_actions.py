"""What IAM calls the methods of boto3."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import botocore.session
from botocore import xform_name

# IAM's name of a service where boto3's is another.
IAM_NAMES = {"cloudwatch": "cloudwatch", "events": "events", "elbv2": "elasticloadbalancing"}


# IAM's name of an operation where the API's is another.
IAM_ACTIONS = {"ListObjectsV2": "ListBucket"}


@functools.cache
def _model(service: str) -> Any:
    return _session().get_service_model(service)


@functools.cache
def _session() -> Any:
    return botocore.session.get_session()


@functools.cache
def operations(service: str) -> Mapping[str, str]:
    """Return a service's operations by the names that boto3 gives them."""
    return {xform_name(operation): operation for operation in _model(service).operation_names}


@functools.cache
def iam_action(service: str, method: str) -> str:
    """Return the IAM action of a boto3 method.

    >>> iam_action("sqs", "send_message")
    'sqs:SendMessage'
    """
    operation = operations(service)[method]
    called = IAM_NAMES.get(service, _model(service).signing_name)
    return f"{called}:{IAM_ACTIONS.get(operation, operation)}"
