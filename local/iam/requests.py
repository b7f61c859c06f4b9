"""Reads from an HTTP request which call of AWS it is, by whom, with which parameters.

By botocore's own models of the services, through moto's parsers of their protocols. What a call
needs of IAM, and what is asked of the account to say it, is defined here too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model

from core.ground.errors import StillwaterError
from local.environment import ACCOUNT, PARTITION

ANY = "*"
Keys = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One action a call needs, on one resource, with the keys IAM sees beside it."""

    action: str
    resource: str = ANY
    keys: Keys = field(default_factory=dict)


class UnmappedCall(StillwaterError):
    """A call of which the twin's IAM does not know what it needs."""


def arn(service: str, region: str, resource: str, account: str = ACCOUNT) -> str:
    return f"arn:{PARTITION}:{service}:{region}:{account}:{resource}"


def resource_tag_keys(tags: Mapping[str, str], prefix: str = "aws") -> Keys:
    """Return the keys under which a resource's tags are compared."""
    return {f"{prefix}:ResourceTag/{name}": (value,) for name, value in tags.items()}


def request_tag_keys(tags: Mapping[str, str]) -> Keys:
    """Return the keys under which the tags of a request are compared."""
    keys: dict[str, Sequence[str]] = {
        f"aws:RequestTag/{name}": (value,) for name, value in tags.items()
    }
    return keys | {"aws:TagKeys": tuple(tags)} if tags else keys


CREDENTIAL = re.compile(r"Credential=([^/]+)/[^/]+/([^/]+)/([^/,\s]+)/aws4_request")
# botocore's name of a service where a signature's is another.
_BY_SIGNATURE = {"monitoring": "cloudwatch", "elasticloadbalancing": "elbv2"}
_CLASSIC_BALANCERS = "2012-06-01"
_SMITHY_PATH = re.compile(r"/service/[^/]+/operation/([^/?]+)")
CBOR = "smithy-rpc-v2-cbor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Whose access key a request shows, for which service and region."""

    access_key: str
    region: str
    service: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an operation, by botocore's names."""

    service: str
    operation: str
    region: str
    parameters: Mapping[str, Any]
    protocol: str = ""


def signature(environ: Mapping[str, Any]) -> Signature | None:
    """Return what a request is signed with, in its header or its query; None: it is not signed."""
    text = str(environ.get("HTTP_AUTHORIZATION", ""))
    if not text:
        query = parse_qs(str(environ.get("QUERY_STRING", "")))
        text = "".join(f"Credential={each}" for each in query.get("X-Amz-Credential", []))
    found = CREDENTIAL.search(text)
    if found is None:
        return None
    return Signature(access_key=found[1], region=found[2], service=found[3])


def service_of(signed: Signature) -> str:
    """Return botocore's name of the service a request is signed for."""
    return _BY_SIGNATURE.get(signed.service, signed.service)


def protocol_of(environ: Mapping[str, Any], service: str) -> str:
    """Return the protocol a request speaks, of those its service has."""
    if _SMITHY_PATH.search(str(environ.get("PATH_INFO", ""))):
        return CBOR
    content_type = str(environ.get("CONTENT_TYPE", ""))
    return str(determine_request_protocol(get_service_model(service), content_type))


def read(environ: dict[str, Any], signed: Signature) -> Call:
    """Return the call a request makes; its body can be read again after.

    Raises LookupError or ValueError where the service's model has no such call.
    """
    request = Request(environ)
    body = request.get_data(cache=True)
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    service = service_of(signed)
    if service == "elbv2" and request.values.get("Version") == _CLASSIC_BALANCERS:
        service = "elb"
    model, protocol = get_service_model(service), protocol_of(environ, service)
    smithy = _SMITHY_PATH.search(request.path)
    named = request.values.get("Action") or str(
        request.headers.get("X-Amz-Target") or (smithy[1] if smithy else "")
    )
    in_path: dict[str, Any] = {}
    if named:
        operation = model.operation_model(named.rpartition(".")[2])
    else:
        operation, in_path = get_service_router(service).match(request)
    # No call that is sent in CBOR takes a resource or a key from its body.
    parsed = (
        {}
        if protocol == CBOR
        else PROTOCOL_PARSERS[protocol](operation).parse(
            {
                "method": request.method,
                "values": request.values,
                "headers": request.headers,
                "body": body,
                "url_path": request.path,
                "url_params": in_path,
            }
        )
    )
    return Call(
        service=service,
        operation=operation.name,
        region=signed.region,
        parameters=parsed,
        protocol=protocol,
    )
