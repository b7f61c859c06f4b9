"""Stands in front of moto: a call of a role is answered only where its policies allow it.

Access key -> session -> role -> policies, as moto keeps them, so that what `up` attached is what
counts. The twin's administrator, whose policy allows everything, is not asked: it is the hand of
whoever tries things out. What nobody can judge is refused and said aloud in the twin's log.

A refusal is in AWS's words, in the protocol of the service that was asked. Source: IAM user guide,
"Troubleshoot access denied error messages"; the error codes of each service's reference. EC2 has
its own code and puts a sentence of its own before IAM's.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
import uuid
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket
from werkzeug.wrappers import Response

from core.ground.errors import InvalidInput
from local.environment import ACCOUNT
from local.iam import accounts, requests
from local.iam.accounts import Caller
from local.iam.policy import Policies, PolicyRequest, PolicyVerdict, Principal, decide, trusts
from local.iam.requests import ANY, CBOR, Need, UnmappedCall
from local.iam.resources import needs
from local.journal import Write

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


LOG = logging.getLogger(__name__)
# What IAM lets everybody do.
FREE = {"sts:GetCallerIdentity"}


class Guard:
    """Judges requests; `refusal` is None for one that may pass."""

    def __init__(self, journal: Write) -> None:
        self._journal, self._facts = journal, accounts.AccountFacts()
        self._administrators: set[str] = set()
        # Allowed ones are said once each: a controller asks the same every few seconds.
        self.seen: set[tuple[str, str, str]] = set()

    def refusal(self, environ: dict[str, Any]) -> Response | None:
        """Return what AWS answers to a request that IAM does not allow; None: it may pass."""
        signed = requests.signature(environ)
        if signed is None or signed.access_key in self._administrators:
            return None
        caller = accounts.caller(signed.access_key)
        service = requests.service_of(signed)
        if caller is None:
            LOG.error("refused at %s: the access key %s has no owner", service, signed.access_key)
            return unknown_key(service, requests.protocol_of(environ, service))
        if caller.administrator:
            self._administrators.add(signed.access_key)
            return None
        try:
            call = requests.read(environ, signed)
        except Exception as error:  # noqa: BLE001  # whatever cannot be read cannot be allowed
            protocol = requests.protocol_of(environ, service)
            return self._refusal_unjudged(caller, service, protocol, "Unreadable", repr(error))
        return self.judge(call, caller)

    def role_may(self, role_arn: str, session: str, call: requests.Call) -> bool:
        """Say whether an AWS service may make a call in a role's name."""
        return self.judge(call, accounts.session_of(role_arn, session)) is None

    def judge(self, call: requests.Call, caller: Caller) -> Response | None:
        """Return the refusal of a call, or None."""
        if f"{call.service}:{call.operation}" in FREE:
            return None
        try:
            for need in needs(call, self._facts):
                refused = self._refusal(call, caller, need)
                if refused is not None:
                    return refused
        except (UnmappedCall, InvalidInput, LookupError) as error:
            return self._refusal_unjudged(
                caller, call.service, call.protocol, call.operation, repr(error)
            )
        return None

    def _refusal(self, call: requests.Call, caller: Caller, need: Need) -> Response | None:
        request = PolicyRequest(
            action=need.action,
            resource=need.resource,
            principal=caller.principal,
            context=context(need, caller, call.region),
        )
        verdict = decide(request, accounts.policies(caller, need.resource))
        self._note(caller, need, verdict)
        if verdict.allowed:
            return None
        LOG.warning("%s", sentence(request, verdict.because))
        return denial(call.service, call.protocol, request, verdict.because)

    def _note(self, caller: Caller, need: Need, verdict: PolicyVerdict) -> None:
        noted = (caller.role or caller.user, need.action, need.resource)
        if verdict.allowed and noted in self.seen:
            return
        if verdict.allowed:
            self.seen.add(noted)
        self._journal(
            "iam",
            "iam_judged",
            principal=noted[0],
            action=need.action,
            resource=need.resource,
            allowed=verdict.allowed,
            because=verdict.because,
        )

    def _refusal_unjudged(
        self, caller: Caller, service: str, protocol: str, operation: str, why: str
    ) -> Response:
        """Refuse what the twin cannot judge, and say so: an unknown is never good news."""
        request = PolicyRequest(
            action=f"{service}:{operation}", resource="*", principal=caller.principal
        )
        LOG.error(
            "refused %s to %s: local/iam/resources.py does not say what it needs (%s)",
            request.action,
            caller.principal.arn,
            why,
        )
        self._journal("iam", "iam_unjudged", principal=caller.role, action=request.action, why=why)
        because = "because the twin's IAM does not know what this call needs"
        return denial(service, protocol, request, because)


def context(need: Need, caller: Caller, region: str) -> Mapping[str, tuple[str, ...]]:
    """Return the keys IAM compares: those of every request, the caller's and the call's own.

    The twin's transport stands for TLS, as its addresses stand for a VPC.
    """
    now = int(time.time())
    keys: dict[str, tuple[str, ...]] = {
        "aws:SecureTransport": ("true",),
        "aws:ViaAWSService": ("false",),
        "aws:PrincipalIsAWSService": ("false",),
        "aws:PrincipalAccount": (ACCOUNT,),
        "aws:PrincipalArn": (caller.principal.role_arn or caller.principal.arn,),
        "aws:PrincipalType": ("AssumedRole" if caller.role else "User",),
        "aws:userid": (caller.user_id,),
        "aws:RequestedRegion": (region,),
        "aws:ResourceAccount": (ACCOUNT,),
        "aws:CurrentTime": (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),),
        "aws:EpochTime": (str(now),),
        **({"aws:username": (caller.user,)} if caller.user else {}),
        **{key: tuple(values) for key, values in need.keys.items()},
    }
    return {key.lower(): values for key, values in keys.items()}


def check_delivery(service: str, action: str, target: str, source: str) -> None:
    """Raise PermissionError unless a target's own policy lets an AWS service act for `source`.

    A queue, function or topic without a policy lets no service in.
    """
    principal = Principal(arn=f"arn:aws:iam::{ACCOUNT}:{service}", account=ACCOUNT, service=service)
    keys = {
        "aws:SourceArn": source,
        "aws:SourceAccount": ACCOUNT,
        "aws:SecureTransport": "true",
        "aws:PrincipalIsAWSService": "true",
        "aws:ViaAWSService": "false",
    }
    request = PolicyRequest(
        action=action,
        resource=target,
        principal=principal,
        context={key.lower(): (value,) for key, value in keys.items()},
    )
    verdict = decide(request, Policies(resource=accounts.resource_policy(target)))
    if not verdict.allowed:
        raise PermissionError(f"{service} may not {action} at {target} for {source}")


def may_assume(service: str, role_arn: str) -> bool:
    """Say whether a role's trust lets an AWS service make sessions of it."""
    trust = accounts.trust_of(role_arn)
    return trust is not None and trusts(trust, service, role_arn, "sts:AssumeRole")


def judge_buckets() -> None:
    """Leave the judgement of bucket policies to the guard, conditions included.

    moto judges a statement by action and resource alone, so that the usual one, which denies what
    comes without TLS, would deny everything.
    """
    FakeBucket.get_permission = lambda *_: PermissionResult.NEUTRAL
