"""What IAM calls the methods of boto3."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import botocore.session
from botocore import xform_name

# IAM's name of a service where boto3's is another.
IAM_NAMES = {"cloudwatch": "cloudwatch", "events": "events", "elbv2": "elasticloadbalancing"}


# IAM's name of an operation where the API's is another.
IAM_ACTIONS = {"ListObjectsV2": "ListBucket"}


@functools.cache
def operations(service: str) -> Mapping[str, str]:
    """Return a service's operations by the names that boto3 gives them."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(operation): operation for operation in model.operation_names}


@functools.cache
def iam_action(service: str, method: str) -> str:
    """Return the IAM action of a boto3 method.

    >>> iam_action("sqs", "send_message")
    'sqs:SendMessage'
    """
    model = botocore.session.get_session().get_service_model(service)
    operation = operations(service)[method]
    return f"{IAM_NAMES.get(service, model.signing_name)}:{IAM_ACTIONS.get(operation, operation)}"
