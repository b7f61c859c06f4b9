"""Says no to a call in AWS's words, in the protocol of the service that was asked.

Source: IAM user guide, "Troubleshoot access denied error messages"; the error codes of each
service's reference. EC2 has its own code and puts a sentence of its own before IAM's.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from xml.sax.saxutils import escape

from werkzeug.wrappers import Response

from local.iam.need import ANY
from local.iam.policy import PolicyRequest
from local.iam.requests import CBOR

SPEAKING_JSON = {"json", "rest-json", CBOR}
# JSON services whose code is that of the days when they spoke Query.
SHORT_CODES = {"sqs"}
INVALID_TOKEN = "The security token included in the request is invalid."  # noqa: S105
UNKNOWN_KEY_CODES = {
    "ec2": "AuthFailure",
    "s3": "InvalidAccessKeyId",
    "query": "InvalidClientTokenId",
}


def sentence(request: PolicyRequest, because: str) -> str:
    """Return IAM's sentence about a request it refuses.

    An action without a resource is refused without one.
    """
    about = "" if request.resource == ANY else f" on resource: {request.resource}"
    return (
        f"User: {request.principal.arn} is not authorized to perform: {request.action}{about} "
        f"{because}"
    )


def denial(service: str, protocol: str, request: PolicyRequest, because: str) -> Response:
    """Return a service's refusal of a call that IAM does not allow."""
    text = sentence(request, because)
    if service == "ec2":
        # AWS encodes the decision there; ours only has a name to find it by.
        blob = hashlib.sha256(text.encode()).hexdigest()
        whole = (
            f"You are not authorized to perform this operation. {text}. "
            f"Encoded authorization failure message: {blob}"
        )
        return answer(service, protocol, "UnauthorizedOperation", whole, 403)
    short = protocol not in SPEAKING_JSON or service in SHORT_CODES
    code = "AccessDenied" if short else "AccessDeniedException"
    return answer(service, protocol, code, text, 403 if short or protocol == "rest-json" else 400)


def unknown_key(service: str, protocol: str) -> Response:
    """Return a service's refusal of an access key nobody was given."""
    code = UNKNOWN_KEY_CODES.get(service) or UNKNOWN_KEY_CODES.get(protocol)
    return answer(service, protocol, code or "UnrecognizedClientException", INVALID_TOKEN, 403)


def answer(service: str, protocol: str, code: str, message: str, status: int) -> Response:
    """Return an error in the form that the service's clients read."""
    request_id = str(uuid.uuid4())
    if protocol in SPEAKING_JSON:
        headers = [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-ErrorType", code)]
        if service == "sqs":
            headers.append(("x-amzn-query-error", f"{code};Sender"))
        body = json.dumps({"__type": code, "message": message, "Message": message}).encode()
        if protocol == CBOR:
            headers[0] = ("Content-Type", "application/cbor")
            headers.append(("smithy-protocol", "rpc-v2-cbor"))
            body = _cbor({"__type": code, "message": message})
        return Response(body, status, [*headers, ("x-amzn-RequestId", request_id)])
    error = f"<Code>{code}</Code><Message>{escape(message)}</Message>"
    if protocol == "ec2":
        inner = f"<Errors><Error>{error}</Error></Errors><RequestID>{request_id}</RequestID>"
        text = f"<Response>{inner}</Response>"
    elif protocol == "rest-xml":
        text = f"<Error>{error}<RequestId>{request_id}</RequestId></Error>"
    else:
        inner = f"<Error><Type>Sender</Type>{error}</Error><RequestId>{request_id}</RequestId>"
        text = f"<ErrorResponse>{inner}</ErrorResponse>"
    whole = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
    return Response(whole, status, content_type="text/xml")


def _cbor(texts: dict[str, str]) -> bytes:
    """Return a map of short texts in CBOR (RFC 8949): all that an error needs."""

    def text(value: str) -> bytes:
        raw = value.encode()
        return bytes([0x79]) + len(raw).to_bytes(2, "big") + raw

    return bytes([0xA0 + len(texts)]) + b"".join(text(k) + text(v) for k, v in texts.items())
