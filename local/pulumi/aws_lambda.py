"""Functions and their URLs."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

from core.ground.errors import InvalidInput
from local.environment import FUNCTION_URL_PATH, PARTITION
from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    TagCalls,
    adapts,
    has_changed,
    request,
)
from local.pulumi.provider import Existing, Resource, State
from local.values import Asset, Properties

# The earliest date a zip can hold: the same sources make the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def zip_bytes(archive: Asset) -> bytes:
    """Return a folder as a zip; a file is passed on as it is."""
    path = Path(str(archive.content.get("path")))
    if not path.is_dir():
        try:
            return path.read_bytes()
        except OSError as error:
            problem = f"{path} cannot be read ({error.strerror}); build it before the update."
            raise InvalidInput([problem]) from None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for each in sorted(path.rglob("*")):
            if each.is_file():
                info = zipfile.ZipInfo(each.relative_to(path).as_posix(), _DATE)
                info.external_attr = 0o644 << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                target.writestr(info, each.read_bytes())
    return buffer.getvalue()


def _code(inputs: Properties) -> bytes:
    code = inputs.get("code")
    if not isinstance(code, Asset) or "path" not in code.content:
        problem = "The function's code must be a zip or a folder in the twin; S3 is not read."
        raise InvalidInput([problem])
    return zip_bytes(code)


@adapts("lambda/function:Function")
class FunctionAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"packageType"})
    lookup = CallById("lambda", "get_function", "FunctionName")
    deletion = CallById("lambda", "delete_function", "FunctionName")
    tagging = TagCalls(
        "lambda", "tag_resource", "untag_resource", "Resource", by="arn", mapped=True
    )

    @staticmethod
    def _outputs(aws: Aws, made: dict[str, Any], code: bytes) -> Properties:
        arn = aws.arn("lambda", f"function:{made['FunctionName']}")
        sha256 = base64.b64encode(hashlib.sha256(code).digest()).decode()
        invoke = f"arn:{PARTITION}:apigateway:{aws.region}:lambda:path/2015-03-31/functions/{arn}"
        return {
            "arn": arn,
            "invokeArn": f"{invoke}/invocations",
            "version": made.get("Version", "$LATEST"),
            "qualifiedArn": f"{arn}:{made.get('Version', '$LATEST')}",
            "lastModified": made.get("LastModified"),
            "codeSha256": sha256,
            "sourceCodeSize": len(code),
        }

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        code = _code(inputs)
        made = self.make(aws, inputs, Code={"ZipFile": code})
        self._concurrency(aws, inputs["name"], inputs)
        return State(inputs["name"], self._outputs(aws, made, code))

    @staticmethod
    def _concurrency(aws: Aws, name: str, inputs: Properties) -> None:
        reserved = inputs.get("reservedConcurrentExecutions")
        if reserved is not None and int(reserved) >= 0:
            aws.client("lambda").put_function_concurrency(
                FunctionName=name, ReservedConcurrentExecutions=int(reserved)
            )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        client, name = aws.client("lambda"), existing.id
        fresh = super().update(aws, existing, inputs)
        settings = {*existing.inputs, *inputs} - {"code", "tags", "tagsAll", "sourceCodeHash"}
        if has_changed(existing, inputs, *settings):
            parameters = request(client, "UpdateFunctionConfiguration", inputs)
            # Left out means unchanged to the API; to a program it means none.
            none: Properties = {"Environment": {"Variables": {}}}
            client.update_function_configuration(**{**none, **parameters, "FunctionName": name})
            self._concurrency(aws, name, inputs)
        if has_changed(existing, inputs, "code", "sourceCodeHash"):
            code = _code(inputs)
            made = client.update_function_code(FunctionName=name, ZipFile=code)
            fresh = self._outputs(aws, made, code)
        return fresh


@adapts("lambda/functionUrl:FunctionUrl")
class FunctionUrlAdapter(Adapter):
    """A function's URL; local.aws.function_urls answers calls to it."""

    replaces = frozenset({"functionName", "qualifier"})
    lookup = CallById("lambda", "get_function_url_config", "FunctionName")
    deletion = CallById("lambda", "delete_function_url_config", "FunctionName")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made, name = self.make(aws, inputs), inputs["functionName"]
        url = f"{aws.client('lambda').meta.endpoint_url}{FUNCTION_URL_PATH}{name}/"
        return State(
            name,
            {"functionArn": made["FunctionArn"], "functionUrl": url, "urlId": name},
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        aws.client("lambda").update_function_url_config(
            FunctionName=existing.id, AuthType=inputs["authorizationType"]
        )
        return {}
