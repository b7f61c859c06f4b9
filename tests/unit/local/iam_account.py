"""A twin's AWS without a socket: boto3's own requests, signed, go straight into its application."""

import io
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from moto.core.models import botocore_stubber
from moto.iam.models import iam_backends
from werkzeug.wrappers import Response

from local.aws import identity
from local.aws.server import Application
from local.environment import ACCOUNT, REGION
from local.iam.guard import Guard


class _Raw(io.BytesIO):
    def stream(self, **_: object) -> Any:
        yield self.read()


@dataclass
class Account:
    """An account of moto's with the guard before it; `facts` is what its journal heard."""

    facts: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.guard = Guard(self._write)
        self._application: Any = Application(lambda _: Response(), self.guard)
        self.admin = identity.create_admin()

    def judge_only(self) -> None:
        """Answer nothing from now on: calls are judged, and fail."""

        def judged(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            self.guard.seen.clear()
            assert self.guard.refusal(environ) is None
            start_response("404 Not Found", [])
            return []

        self._application = judged

    def _write(self, source: str, event: str, **fields: object) -> None:
        self.facts.append({"source": source, "event": event, **fields})

    def client(self, service: str, key: Any = None) -> Any:
        """Return a client of a service as somebody; as the administrator by default."""
        who = key or self.admin
        client = boto3.client(
            service,  # type: ignore[call-overload]
            region_name=REGION,
            aws_access_key_id=who.access_key_id,
            aws_secret_access_key=who.secret_access_key,
            aws_session_token=getattr(who, "session_token", None),
            config=Config(
                retries={"max_attempts": 0},
                s3={"addressing_style": "path"},
                parameter_validation=False,
            ),
        )
        # Every handler would be asked: moto's own would answer beside the guard.
        client.meta.events.unregister("before-send", botocore_stubber)
        client.meta.events.register_first("before-send", self._send)
        return client

    def session(self, role: str, *statements: Mapping[str, Any]) -> Any:
        """Return a session of a role with one inline policy, made where there is none."""
        iam = iam_backends[ACCOUNT][identity.PARTITION]
        if not any(each.name == role for each in iam.roles.values()):
            iam.create_role(role, json.dumps({"Statement": []}), "/", None, "", [], "3600")
        if statements:
            policy = {"Version": "2012-10-17", "Statement": list(statements)}
            iam.put_role_policy(role, "inline", json.dumps(policy))
        return identity.assume(f"arn:aws:iam::{ACCOUNT}:role/{role}", "test")

    def _send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        url, body = urlsplit(request.url), request.body or b""
        content = body.encode() if isinstance(body, str) else getattr(body, "read", lambda: body)()
        text = {k: v.decode() if isinstance(v, bytes) else v for k, v in request.headers.items()}
        environ = {
            "REQUEST_METHOD": request.method,
            "PATH_INFO": unquote(url.path),
            "RAW_URI": f"{url.path}?{url.query}",
            "QUERY_STRING": url.query,
            "SERVER_NAME": url.hostname,
            "SERVER_PORT": "443",
            "HTTP_HOST": url.netloc,
            "CONTENT_TYPE": text.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(content)),
            "wsgi.url_scheme": "https",
            "wsgi.version": (1, 0),
            "wsgi.input": io.BytesIO(content),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            **{f"HTTP_{k.upper().replace('-', '_')}": str(v) for k, v in text.items()},
        }
        answered: list[Any] = []
        chunks = self._application(environ, lambda *given: answered.extend(given))
        raw = b"".join(chunks)
        headers = {str(k).lower(): str(v) for k, v in answered[1]}
        return AWSResponse(request.url, int(answered[0].split()[0]), headers, _Raw(raw))
