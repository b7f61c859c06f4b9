"""Function URLs in the twin: HTTP to a deployed function, as Lambda's own front does it.

moto keeps a URL's configuration and answers no call to it. Here a call to
`/stillwater/function-url/<function>/` becomes the event of payload format 2.0, and the function's
answer becomes the response. As on AWS, a function whose policy does not let the world call its URL
answers 403.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from http import HTTPStatus
from typing import Any

from werkzeug.wrappers import Response

from local.aws.lambdas import InvokedFunctions, TooManyRequests, find
from local.environment import ACCOUNT, FUNCTION_URL_PATH, REGION

# Lambda's own limit on a request.
LARGEST_REQUEST_BYTES = 6 * 1024 * 1024
URL_ACTIONS = {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}


def answer(functions: InvokedFunctions, environ: dict[str, Any]) -> Response:
    """Answer one call of a function's URL."""
    name = environ["PATH_INFO"].removeprefix(FUNCTION_URL_PATH).partition("/")[0]
    function = find(f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}")
    if function is None or function.url_config is None:
        return _refusal(HTTPStatus.NOT_FOUND)
    if not _open_to_all(function):
        return _refusal(HTTPStatus.FORBIDDEN)
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > LARGEST_REQUEST_BYTES:
        return _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    body = environ["wsgi.input"].read(length) if length else b""
    try:
        outcome = functions.invoke(function, json.dumps(event_of(environ, name, body)).encode())
    except TooManyRequests:
        return _refusal(HTTPStatus.TOO_MANY_REQUESTS)
    if outcome.error_type is not None:
        return _refusal(HTTPStatus.BAD_GATEWAY)
    return _response(json.loads(outcome.payload or b"null"))


def event_of(environ: dict[str, Any], name: str, body: bytes) -> dict[str, Any]:
    """Return a request as a function receives it; a body that is no text comes as base64."""
    headers = {
        key.removeprefix("HTTP_").replace("_", "-").lower(): value
        for key, value in environ.items()
        if key.startswith("HTTP_") or key in {"CONTENT_TYPE", "CONTENT_LENGTH"}
    }
    path = "/" + environ["PATH_INFO"].removeprefix(f"{FUNCTION_URL_PATH}{name}").lstrip("/")
    is_text = str(headers.get("content-type", "")).startswith(("text/", "application/json"))
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": environ.get("QUERY_STRING", ""),
        "headers": headers,
        "requestContext": {
            "accountId": "anonymous",
            "apiId": name,
            "http": {
                "method": environ["REQUEST_METHOD"],
                "path": path,
                "protocol": environ.get("SERVER_PROTOCOL", "HTTP/1.1"),
                "sourceIp": environ.get("REMOTE_ADDR", ""),
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "stage": "$default",
            "timeEpoch": int(time.time() * 1000),
        },
        "body": body.decode("utf-8", "replace") if is_text else base64.b64encode(body).decode(),
        "isBase64Encoded": not is_text,
    }


def _open_to_all(function: Any) -> bool:
    """Say whether the function's policy lets everybody use its URL: both actions are needed."""
    allowed = {
        statement["Action"]
        for statement in function.policy.statements
        if statement.get("Principal") in ("*", {"AWS": "*"})
    }
    return allowed >= URL_ACTIONS


def _response(answered: Any) -> Response:
    """Turn what a function returned into a response; anything but a status is the body of a 200."""
    if not isinstance(answered, dict) or "statusCode" not in answered:
        answered = {"statusCode": 200, "body": json.dumps(answered)}
    body = str(answered.get("body") or "")
    raw = base64.b64decode(body) if answered.get("isBase64Encoded") else body.encode()
    headers = {str(k).lower(): str(v) for k, v in (answered.get("headers") or {}).items()}
    typed = {"content-type": "application/json", **headers}
    return Response(raw, int(answered["statusCode"]), typed)


def _refusal(status: HTTPStatus) -> Response:
    return Response(json.dumps({"Message": status.phrase}), status, mimetype="application/json")
