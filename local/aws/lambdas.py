"""Lambda in the twin: functions run from their deployed zips, as their own roles.

moto would start Docker. Here each function has a few execution environments (runtime.py), reused
while its code and configuration stay the same; they are children of this process, recorded where
the warden finds them. What Lambda itself does in the name of a function's role (polls, logs,
interfaces) is asked of IAM; moto does all of it without asking, so a role that lacks the right
would work here alone. Source: the managed policies AWSLambdaSQSQueueExecutionRole,
AWSLambdaVPCAccessExecutionRole and AWSLambdaBasicExecutionRole. Log groups are made beforehand, so
that nobody needs CreateLogGroup.
"""

from __future__ import annotations

import io
import json
import logging
import shutil
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moto.awslambda.exceptions import InvalidParameterValueException, LambdaClientError
from moto.awslambda.models import LambdaBackend, LambdaFunction, lambda_backends

from local.aws import identity
from local.aws.runtime import Environment, FunctionVersion, Outcome, install_packages
from local.iam.guard import Guard, may_assume
from local.iam.requests import Call
from local.journal import Write
from local.place import Place

SERVICES = {"ec2": "EC2", "sqs": "SQS"}
POLLING = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
# What names an interface that Lambda has not made yet.
AN_INTERFACE = "eni-0"
TENDING = ("DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses")


def polling_calls(queue_arn: str) -> Iterator[Call]:
    """Yield what Lambda does at a queue that feeds a function."""
    region, account, name = queue_arn.split(":")[3:6]
    url = f"https://sqs.{region}.amazonaws.com/{account}/{name}"
    for operation in POLLING:
        yield _call("sqs", operation, region, QueueUrl=url)


def logging_calls(function_name: str, region: str) -> Iterator[Call]:
    """Yield what Lambda does with what a function writes."""
    where = {"logGroupName": f"/aws/lambda/{function_name}", "logStreamName": "[$LATEST]"}
    for operation in ("CreateLogStream", "PutLogEvents"):
        yield _call("logs", operation, region, **where)


def joining_calls(network: Mapping[str, Any], region: str) -> Iterator[Call]:
    """Yield what Lambda does to put a function into the subnets of a VPC."""
    groups = list(network.get("SecurityGroupIds") or [])
    for subnet in network.get("SubnetIds") or []:
        yield _call("ec2", "CreateNetworkInterface", region, SubnetId=subnet, Groups=groups)
    if network.get("SubnetIds"):
        yield _call("ec2", "DescribeNetworkInterfaces", region)
        yield _call("ec2", "DescribeSubnets", region)
        for operation in TENDING:
            yield _call("ec2", operation, region, NetworkInterfaceId=AN_INTERFACE)


def first_refused_call(
    guard: Guard, role_arn: str, function_name: str, calls: Iterable[Call]
) -> Call | None:
    """Return the first call that a function's role does not allow; the journal has it too."""
    return next((c for c in calls if not guard.role_may(role_arn, function_name, c)), None)


def check_role(guard: Guard, role_arn: str, function_name: str, calls: Iterable[Call]) -> None:
    """Raise Lambda's own refusal of a role that lacks a right it needs."""
    missing = first_refused_call(guard, role_arn, function_name, calls)
    if missing is not None:
        raise InvalidParameterValueException(
            f"The provided execution role does not have permissions to call {missing.operation} "
            f"on {SERVICES[missing.service]}"
        )


def _call(service: str, operation: str, region: str, /, **parameters: Any) -> Call:
    return Call(service=service, operation=operation, region=region, parameters=parameters)


LOG = logging.getLogger(__name__)
# Lambda starts as many as there are invocations; two cores carry this many per function.
MOST_ENVIRONMENTS = 3
PRINCIPAL = "lambda.amazonaws.com"


class TooManyRequests(LambdaClientError):  # type: ignore[misc]  # moto has no types
    """More calls at once than the function's reserved concurrency."""

    code = 429

    def __init__(self) -> None:
        super().__init__("TooManyRequestsException", "Rate Exceeded.")


def version_of(function: Any) -> FunctionVersion:
    """Return what decides about a function's environments, from moto's record of it."""
    return FunctionVersion(
        name=function.function_name,
        arn=function.function_arn,
        handler=function.handler,
        role_arn=function.role,
        code_sha256=function.code_sha_256,
        timeout_seconds=float(function.timeout),
        memory_mib=int(function.memory_size),
        region=function.region,
        runtime=function.run_time,
        variables=tuple(sorted((function.environment_vars or {}).items())),
    )


class _Pool:
    """The environments of one function."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.idle: list[Environment] = []
        self.busy: list[Environment] = []
        self.starting = 0

    def take_outdated(self, version: FunctionVersion) -> list[Environment]:
        """Take the idle environments that are dead or of another version out of the pool."""
        old = [e for e in self.idle if not e.alive or e.function != version]
        self.idle = [e for e in self.idle if e not in old]
        return old


class InvokedFunctions:
    """Invokes the functions moto knows."""

    def __init__(self, place: Place, journal: Write, guard: Guard) -> None:
        self.guard = guard
        self._place = place
        self._journal = journal
        self._pools: dict[str, _Pool] = {}
        self._lock = threading.Lock()
        self._workers = ThreadPoolExecutor(8, thread_name_prefix="lambda-async")
        self._closed = False
        shutil.rmtree(place.path("lambda"), ignore_errors=True)
        self._packages = install_packages(place.path("lambda-runtime"))

    def invoke(self, function: Any, payload: bytes) -> Outcome:
        """Run a function and return its answer or its error."""
        version = version_of(function)
        with self._environment(function, version) as environment:
            outcome = environment.invoke(payload)
        self._journal(
            "lambda",
            "lambda_invoked",
            function=version.name,
            request_id=outcome.request_id,
            ok=outcome.error_type is None,
            error=None if outcome.error_type is None else outcome.payload.decode()[:500],
            cold=outcome.cold,
            duration_ms=round(outcome.seconds * 1000),
        )
        return outcome

    def invoke_later(self, arn: str, event: Any) -> None:
        """Queue an asynchronous invocation; unlike Lambda, nothing repeats a failed one."""
        function = find(arn)
        if function is None:
            raise LookupError(f"The function {arn} does not exist.")
        if not self._closed:
            self._workers.submit(self._invoke_quietly, function, json.dumps(event).encode())

    def _invoke_quietly(self, function: Any, payload: bytes) -> None:
        try:
            outcome = self.invoke(function, payload)
        except Exception:
            LOG.exception("asynchronous invocation of %s failed", function.function_name)
            return
        if outcome.error_type is not None:
            LOG.warning("%s failed: %s", function.function_name, outcome.payload.decode()[:500])

    @contextmanager
    def _environment(self, function: Any, version: FunctionVersion) -> Iterator[Environment]:
        with self._lock:
            pool = self._pools.setdefault(version.name, _Pool())
        environment = self._take(pool, function, version)
        try:
            yield environment
        finally:
            with pool.changed:
                pool.busy.remove(environment)
                if environment.alive and not self._closed:
                    pool.idle.append(environment)
                pool.changed.notify_all()

    def _take(self, pool: _Pool, function: Any, version: FunctionVersion) -> Environment:
        reserved = function.reserved_concurrency
        limit = int(reserved) if reserved else MOST_ENVIRONMENTS
        with pool.changed:
            while True:
                for old in pool.take_outdated(version):
                    old.close()
                if pool.idle:
                    environment = pool.idle.pop()
                    pool.busy.append(environment)
                    return environment
                if len(pool.busy) + pool.starting < limit:
                    pool.starting += 1
                    break
                if reserved:
                    raise TooManyRequests
                pool.changed.wait()
        try:
            environment = self._start(function, version)
        finally:
            with pool.changed:
                pool.starting -= 1
        with pool.changed:
            pool.busy.append(environment)
        return environment

    def _start(self, function: Any, version: FunctionVersion) -> Environment:
        check_trust(version.role_arn)
        # Without the right its log stays empty; the function runs.
        first_refused_call(
            self.guard,
            version.role_arn,
            version.name,
            logging_calls(version.name, version.region),
        )
        role = identity.assume(version.role_arn, version.name)
        return Environment(
            version,
            host=self._place.host("lambda"),
            code=self._extract(function),
            packages=self._packages,
            variables={
                **dict(version.variables),
                "AWS_ENDPOINT_URL": self._place.url("moto"),
                "AWS_ACCESS_KEY_ID": role.access_key_id,
                "AWS_SECRET_ACCESS_KEY": role.secret_access_key,
                "AWS_SESSION_TOKEN": str(role.session_token),
            },
            log=self._place.path("logs", f"lambda-{version.name}.log"),
            pids=self._place.path("pids"),
        )

    def _extract(self, function: Any) -> Path:
        name = function.code_sha_256.replace("/", "_").replace("+", "-")[:16]
        directory = self._place.path("lambda", function.function_name, name)
        with self._lock:
            if not directory.exists():
                unfinished = directory.with_suffix(".unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                with zipfile.ZipFile(io.BytesIO(function.code_bytes)) as archive:
                    archive.extractall(unfinished)
                unfinished.rename(directory)
        return directory

    def retire(self, name: str) -> None:
        """End the environments of a deleted function."""
        with self._lock:
            pool = self._pools.pop(name, None)
        for environment in [*pool.idle, *pool.busy] if pool else ():
            environment.close()

    def close(self) -> None:
        """End every environment."""
        self._closed = True
        self._workers.shutdown(wait=False, cancel_futures=True)
        for name in list(self._pools):
            self.retire(name)


def check_trust(role_arn: str) -> None:
    """Raise Lambda's own refusal of a role that does not let it in."""
    if not may_assume(PRINCIPAL, role_arn):
        raise InvalidParameterValueException(
            "The role defined for the function cannot be assumed by Lambda."
        )


def find(arn: str) -> Any:
    """Return moto's function of an ARN, with or without a qualifier, or None."""
    region, account, _, name = arn.split(":")[3:7]
    # A function made a moment ago may be asked for before its account's backend is seen.
    return lambda_backends[account][region]._lambdas._functions.get(name, {}).get("latest")  # noqa: SLF001  # moto's public lookup raises


def install(functions: InvokedFunctions) -> None:
    """Let moto's functions run here."""
    moto_create = LambdaBackend.create_function
    moto_delete = LambdaBackend.delete_function

    def create_function(backend: Any, spec: dict[str, Any]) -> LambdaFunction:
        check_trust(spec["Role"])
        joining = joining_calls(spec.get("VpcConfig") or {}, backend.region_name)
        check_role(functions.guard, spec["Role"], spec["FunctionName"], joining)
        return moto_create(backend, spec)

    def invoke(function: Any, body: Any, request_headers: Any, response_headers: Any) -> bytes:
        payload = body.encode() if isinstance(body, str) else (body or b"{}")
        kind = request_headers.get("x-amz-invocation-type", "RequestResponse")
        response_headers["x-amz-executed-version"] = "$LATEST"
        if kind == "Event":
            functions.invoke_later(function.function_arn, json.loads(payload or b"{}"))
            return b""
        outcome = functions.invoke(function, payload or b"{}")
        if outcome.error_type is not None:
            response_headers["x-amz-function-error"] = "Unhandled"
        return outcome.payload

    def delete_function(backend: Any, function_name: str, qualifier: str | None = None) -> None:
        moto_delete(backend, function_name, qualifier)
        if qualifier is None:
            functions.retire(function_name.rpartition(":")[2])

    LambdaFunction.invoke = invoke
    LambdaBackend.create_function = create_function
    LambdaBackend.delete_function = delete_function
