"""Run the program against mocks and keep every registration as a plain record.

The one place that knows Pulumi's mock monitor. Each run has its own context and event loop, so that
nothing of one reaches the next; tests assert on dictionaries and never touch an Output.

Pulumi's own mock monitor is asked from a pool of threads, starts an event loop in each of them, and
reads and writes every property of every resource twice. What it answers is the same.
"""

import asyncio
import contextvars
import gc
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf import struct_pb2
from pulumi.runtime import mocks, rpc, settings, stack, sync_await
from pulumi.runtime.proto import resource_pb2

from tests.unit.infra.real_outputs import ACCOUNT, ARNS, REGION, real
from tests.unit.infra.swift_programs import swiftly

STACK_TYPE = "pulumi:pulumi:Stack"
# A registration, the URN it was given, and its inputs.
Registered = Callable[[Any, str, Mapping[str, Any]], None]


class AtOnce(asyncio.SelectorEventLoop):
    """An event loop whose executor is the caller: nobody here waits for anything outside."""

    def run_in_executor(  # type: ignore[override] # typeshed's own signature takes no Any here
        self, _executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        answered = self.create_future()
        try:
            answered.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - as of an executor, it meets who awaits it
            answered.set_exception(error)
        return answered


class Monitor(mocks.MockMonitor):
    """The mock monitor, which tells `registered` of each resource."""

    def __init__(
        self,
        mocked: mocks.Mocks,
        registered: Registered,
        exported: Callable[[Mapping[str, Any]], None],
    ) -> None:
        super().__init__(mocked)
        self._registered, self._exported = registered, exported

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - gRPC's name
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == STACK_TYPE:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        inputs = rpc.deserialize_properties(request.object, keep_unknowns=True)
        self._registered(request, urn, inputs)
        identity, answer = self._made(request, inputs, request.object, custom=request.custom)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identity or "", object=answer)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - gRPC's name
        inputs = rpc.deserialize_properties(request.properties)
        _, answer = self._made(request, inputs, request.properties, custom=True)
        urn = self.make_urn(request.parent, request.type, request.name)
        return resource_pb2.ReadResourceResponse(urn=urn, properties=answer)

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - gRPC's name
        args = rpc.deserialize_properties(request.args)
        asked = mocks.MockCallArgs(request.tok, args, request.provider)
        answer, _ = self.mocks.call(asked)
        return resource_pb2.ResourceInvokeResponse(**{"return": _struct(answer)})

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - gRPC's name
        # A component's outputs may hold references that cannot be read here; exports never do.
        if request.urn.split("::")[2] == STACK_TYPE:
            self._exported(rpc.deserialize_properties(request.outputs, keep_unknowns=True))
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]

    def _made(
        self, request: Any, inputs: Mapping[str, Any], sent: struct_pb2.Struct, *, custom: bool
    ) -> tuple[str | None, struct_pb2.Struct]:
        """Return a resource's id and outputs; what is as it was sent goes back unread."""
        asked = mocks.MockResourceArgs(request.type, request.name, dict(inputs), custom=custom)
        identity, state = self.mocks.new_resource(asked)
        kept = {key for key, value in state.items() if key in inputs and value is inputs[key]}
        answer = _struct({key: value for key, value in state.items() if key not in kept})
        for key in kept:
            answer.fields[key].CopyFrom(sent.fields[key])
        return identity, answer


def _struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update({key: value for key, value in values.items() if value is not None})
    return struct


EXISTING_VPC = "vpc-0123456789abcdef0"
ENDPOINT = "https://eks.example"
CA = "LS0tLS1CRUdJTg=="
# The subnets that EKS says a cluster's control plane is in.
CONTROL_PLANE = {
    "subnet-control-plane-a": "10.40.16.0/28",
    "subnet-control-plane-b": "10.40.48.0/28",
}
CONTROL_PLANE_IPV6 = "2600:1f13:e61:d000::/64"
# Where others check the form of an id or an ARN: definitions of Kubernetes kinds, IAM's linter.
ID_PREFIXES = {"aws:ec2/subnet:Subnet": "subnet-"}
FORMED = {
    "cloudwatch/logGroup:LogGroup", "dynamodb/table:Table", "emrserverless/application:Application",
    "iam/instanceProfile:InstanceProfile", "iam/role:Role", "kms/key:Key", "s3/bucket:Bucket",
    "secretsmanager/secret:Secret",
}  # fmt: skip
# What Secrets Manager draws; no test may meet it anywhere but in the secret.
RANDOM_PASSWORD = "drawn-by-secrets-manager"
SECRET = "4dabf18193072939515e22adb298388d"


@dataclass(frozen=True)
class Resource:
    """One registration: what the engine would have been asked for."""

    urn: str
    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    provider: str
    depends_on: frozenset[str]
    # Input -> the URNs, in the mock monitor's spelling, whose outputs it was made from.
    references: Mapping[str, frozenset[str]]
    mock_urn: str
    ignore_changes: tuple[str, ...]
    protect: bool
    retain_on_delete: bool
    delete_before_replace: bool
    # What the engine replaces it for, beside its own inputs.
    replacement_trigger: Any

    @property
    def policy(self) -> dict[str, Any]:
        """The policy document of an IAM, queue or bucket policy."""
        return dict(json.loads(self.inputs["policy"]))

    @property
    def policy_statements(self) -> list[dict[str, Any]]:
        return list(self.policy["Statement"])


@dataclass
class Recorded:
    """Everything one program registered by its URN, and what it exported."""

    resources: list[Resource] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    invokes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def of(self, type_: str) -> list[Resource]:
        """Return the resources of a type such as `sqs/queue:Queue` or `storage.k8s.io/v1:...`."""
        return [r for r in self.resources if r.type.split(":", 1)[1] == type_]

    def one(self, type_: str, name: str | None = None) -> Resource:
        found = [r for r in self.of(type_) if name is None or r.name == name]
        assert len(found) == 1, f"{len(found)} of {type_} {name}: {[r.name for r in found]}"
        return found[0]


def run_program(
    program: Callable[[], None],
    *,
    stack_name: str = "test-foundation",
    config: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, Any]] | None = None,
    preview: bool = False,
    real_sizes: bool = False,
    rendered: Sequence[Mapping[str, Any]] = (),
) -> Recorded:
    """Run a program to its end and return what it registered; its exceptions pass through.

    `references` are the outputs of other stacks, by stack name, and `rendered` what a chart renders
    to: those of the program are in no registry that unit tests reach. With `preview`, what only AWS
    knows stays unknown, as on a first preview; with `real_sizes`, it has the form that AWS gives
    it.
    """
    recorded = Recorded()

    def run() -> None:
        loop = AtOnce()
        # A program's first exception is raised; the tasks that met the same one say nothing more.
        loop.set_exception_handler(lambda _loop, _context: None)
        asyncio.set_event_loop(loop)
        try:
            mocked = _Mocks(
                recorded, references or {}, rendered, preview=preview, real_sizes=real_sizes
            )
            record = _Record(recorded)
            mocks.set_mocks(
                mocked,
                project="stillwater",
                stack=stack_name,
                preview=preview,
                monitor=Monitor(mocked, record.registered, record.exported),
                organization="organization",
            )
            pulumi.runtime.set_all_config({f"stillwater:{k}": v for k, v in (config or {}).items()})
            # set_mocks leaves a finished root behind; the program gets one that takes exports.
            settings.set_root_resource(None)  # type: ignore[arg-type]
            with warnings.catch_warnings():
                # pulumi_aws announces its own deprecated classes while it is imported.
                warnings.filterwarnings("ignore", category=DeprecationWarning, module="pulumi_aws")
                with swiftly(preview=preview):
                    sync_await._sync_await(stack.run_in_stack(program))
        finally:
            # The one thing not kept per context: a failed program's tasks would fail the next one.
            settings.SETTINGS.outputs.clear()
            _cancel_what_is_left(loop)
            loop.close()
            asyncio.set_event_loop(None)

    # A run makes many objects that end with it; to look through all of Pulumi's types for garbage
    # meanwhile would be a tenth of it.
    gc.disable()
    try:
        contextvars.Context().run(run)
    finally:
        gc.enable()
    # Registrations are tasks of an event loop: theirs is an order of luck, a test's is not.
    recorded.resources.sort(key=lambda resource: resource.urn)
    recorded.invokes.sort(key=lambda invoke: json.dumps(invoke, sort_keys=True, default=str))
    return recorded


def _cancel_what_is_left(loop: asyncio.AbstractEventLoop) -> None:
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))


def plain(value: Any) -> Any:
    """Return a wire value without secret markers, and whole numbers as integers."""
    if isinstance(value, dict):
        if SECRET in value and "value" in value:
            return plain(value["value"])
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, pulumi.FileArchive | pulumi.FileAsset):
        return value.path  # the wire tells archives apart by a hash, objects by who they are
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


class _Record:
    """Keeps what a program registers, under the URNs that the engine would give."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        # The monitor's URN of a component -> its type after those of its parents.
        self._qualified: dict[str, str] = {}

    def registered(self, request: Any, urn: str, inputs: Mapping[str, Any]) -> None:
        above = self._qualified.get(request.parent, "")
        qualified = f"{above}${request.type}" if above else request.type
        self._qualified[urn] = qualified
        self._recorded.resources.append(_resource(request, urn, qualified, inputs))

    def exported(self, outputs: Mapping[str, Any]) -> None:
        self._recorded.outputs.update(plain(outputs))


def _resource(request: Any, mock_urn: str, qualified: str, inputs: Mapping[str, Any]) -> Resource:
    # The mock monitor's own URNs name one parent; the engine's name them all, but for the stack.
    prefix = "::".join(mock_urn.split("::")[:2])
    return Resource(
        urn=f"{prefix}::{qualified}::{request.name}",
        mock_urn=mock_urn,
        type=request.type,
        name=request.name,
        inputs=plain(inputs),
        parent=request.parent.rpartition("::")[2],
        provider=request.provider.rpartition("::")[0].rpartition("::")[2],
        depends_on=frozenset(urn.rpartition("::")[2] for urn in request.dependencies),
        references={
            key: frozenset(found.urns) for key, found in request.propertyDependencies.items()
        },
        ignore_changes=tuple(request.ignoreChanges),
        protect=bool(request.protect),
        retain_on_delete=bool(request.retainOnDelete),
        delete_before_replace=bool(request.deleteBeforeReplace),
        replacement_trigger=request.replacement_trigger.string_value,
    )


class _Mocks(mocks.Mocks):
    def __init__(
        self,
        recorded: Recorded,
        references: Mapping[str, Mapping[str, Any]],
        rendered: Sequence[Mapping[str, Any]],
        *,
        preview: bool,
        real_sizes: bool,
    ) -> None:
        self._recorded, self._references, self._rendered = recorded, references, rendered
        self._preview, self._real_sizes = preview, real_sizes

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            name = str(args.inputs["name"]).rpartition("/")[2]
            return name, {"name": args.inputs["name"], "outputs": self._references.get(name, {})}
        if not args.custom:
            return "", dict(args.inputs)
        if self._preview:
            return "", dict(args.inputs)
        if self._real_sizes and args.typ.startswith("aws:"):
            identity, outputs = real(args.typ, args.name, args.inputs)
            return identity, {**args.inputs, **outputs}
        prefix = ID_PREFIXES.get(args.typ)
        identity = f"{prefix}{args.name}" if prefix else f"{args.name}-id"
        return identity, {**args.inputs, **_computed(args)}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        self._recorded.invokes.append((args.token, dict(args.args)))
        answers: dict[str, dict[str, Any]] = {
            "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": ACCOUNT},
            "aws:index/getPartition:getPartition": {"partition": "aws"},
            "aws:index/getRegion:getRegion": {"region": REGION},
            # A cluster that exists; one of its groups is another Stillwater's.
            "aws:autoscaling/getGroup:getGroup": {
                "tags": [{"key": "stillwater:cluster", "value": "lab", "propagateAtLaunch": False}]
                if args.args.get("name") == "taken"
                else []
            },
            "aws:eks/getCluster:getCluster": {
                "endpoint": ENDPOINT,
                "certificateAuthorities": [{"data": CA}],
                "vpcConfig": {"subnetIds": list(CONTROL_PLANE)},
            },
            "aws:ssm/getParameter:getParameter": {"value": "ami-0123456789abcdef0"},
            "aws:secretsmanager/getRandomPassword:getRandomPassword": {
                "randomPassword": RANDOM_PASSWORD
            },
            "kubernetes:helm:template": {"result": list(self._rendered)},
            # A VPC as most are; its subnets say their zone by their last character.
            "aws:ec2/getVpc:getVpc": {
                "cidrBlock": "10.40.0.0/16",
                "enableDnsHostnames": True,
                "enableDnsSupport": True,
            },
            "aws:ec2/getSubnet:getSubnet": {
                "vpcId": EXISTING_VPC,
                "ipv6CidrBlock": CONTROL_PLANE_IPV6
                if args.args.get("id") == "subnet-control-plane-b"
                else "",
                "cidrBlock": CONTROL_PLANE.get(str(args.args.get("id")), "10.40.16.0/20"),
                "availabilityZone": f"{REGION}{str(args.args.get('id'))[-1]}",
            },
        }
        return {**args.args, **answers[args.token]}, []


def _computed(args: mocks.MockResourceArgs) -> dict[str, Any]:
    """Return what AWS would add to a resource, as far as the program reads it."""
    own_name = args.inputs.get("name") or args.inputs.get("bucket") or args.name
    token = args.typ.partition(":")[2]
    service = token.partition("/")[0]
    form = ARNS[token] if token in FORMED else f"arn:aws:{service}:{{region}}:{{account}}:{{name}}"
    # The region as it is now: a test may record a program in another.
    known = {"region": REGION, "account": ACCOUNT}
    arn = form.format(**known, name=own_name, uuid=own_name, hex=own_name)
    special: dict[str, dict[str, Any]] = {
        "aws:sqs/queue:Queue": {"url": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{own_name}"},
        "aws:lambda/functionUrl:FunctionUrl": {
            "functionUrl": f"https://{args.name}.lambda-url.{REGION}.on.aws/"
        },
        "aws:ec2/launchTemplate:LaunchTemplate": {"latestVersion": 1},
        "aws:kms/key:Key": {"keyId": f"{own_name}-key"},
        "aws:iam/role:Role": {"uniqueId": f"AROA-{own_name}"},
        "aws:eks/cluster:Cluster": {
            "endpoint": ENDPOINT,
            "certificateAuthority": {"data": CA},
            "vpcConfig": {
                **args.inputs.get("vpcConfig", {}),
                "clusterSecurityGroupId": "sg-cluster",
            },
        },
    }
    if args.typ.startswith("kubernetes:"):
        return {}
    return {"name": own_name, "arn": arn, **special.get(args.typ, {})}
