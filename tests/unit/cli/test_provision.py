"""cli.provision: what is asked before a run, changes as a person reads them, and `destroy`."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pulumi.automation import OpType
from rich.console import Console

from cli import aws, kafka_layer, provision, stack_settings
from cli.engine.events import (
    HIDDEN,
    Changes,
    EngineStep,
    LayerResult,
    Operation,
    ResourceChange,
    kind_of,
)
from cli.engine.layers import RunScope
from cli.stack_settings import DescribedEnvironment, Project
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.naming import FOUNDATION, KAFKA, LAYERS
from infra.eks.api import ApiError
from tests.every_case import every_case
from tests.person import Keyboard
from tests.unit.infra.programs import ZONES, spec

FOUND = {"eks_endpoint": "https://eks.example", "eks_ca": "Y2E=", "eks_cluster_name": "test-orders"}
CHANGE = ResourceChange(urn="urn:pulumi:t::s::aws:ec2/vpc:Vpc::vpc", operation=Operation.CREATE)
VOLUME = {
    "spec": {
        "claimRef": {"namespace": "kafka", "name": "data-0-orders-0"},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0a"},
        "capacity": {"storage": "100Gi"},
    }
}


class Stacks:
    """Layers whose operations end at once; notes which were called."""

    changes: tuple[ResourceChange, ...] = (CHANGE,)
    outputs_: Mapping[str, Any] = FOUND
    of_kafka: Mapping[str, Any] = {}
    called: list[str]

    def __init__(self, *_arguments: Any, layers: Sequence[str] = LAYERS, **_options: Any) -> None:
        self.layers = layers

    def outputs(self, layer: str) -> Mapping[str, Any]:
        assert layer in {FOUNDATION, KAFKA}
        return self.outputs_ if layer == FOUNDATION else self.of_kafka

    def preview(self) -> list[LayerResult]:
        self.called.append("preview")
        return [LayerResult(layer=x, seconds=0.0, changes=self.changes) for x in self.layers]

    def up(self, check: Callable[[LayerResult], None]) -> list[LayerResult]:
        self.called.append(f"up {' '.join(self.layers)}")
        for layer in self.layers:
            check(LayerResult(layer=layer, seconds=0.0, changes=self.changes))
        return []

    def destroy(self, teardown: kafka_layer.Teardown | None) -> list[LayerResult]:
        self.called.append("destroy")
        for layer in reversed(self.layers):
            if teardown is not None:
                teardown.prepare(layer)
                teardown.clean_up(layer)
        return []


class Api:
    def __init__(self, volumes: list[dict[str, Any]] | None) -> None:
        self._volumes = volumes

    def get(self, path: str) -> dict[str, Any]:
        assert path == "/api/v1/persistentvolumes"
        if self._volumes is None:
            raise ApiError(403, "Forbidden", "forbidden")
        return {"items": self._volumes}


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Stacks]:
    called: list[str] = []
    made = type("Made", (Stacks,), {"called": called})
    monkeypatch.setattr(provision, "Layers", made)
    project = Project(tmp_path, tmp_path)
    monkeypatch.setattr(stack_settings, "require", lambda _environment: project)
    monkeypatch.setattr(aws, "session", lambda *_: None)
    describe(monkeypatch, ephemeral=True)
    monkeypatch.setattr(provision, "_cluster_api", lambda *_: Api([VOLUME]))
    monkeypatch.setattr(provision, "wait_until_settled", lambda *_, **__: called.append("settled"))
    return made


def describe(monkeypatch: pytest.MonkeyPatch, *, ephemeral: bool) -> None:
    described = DescribedEnvironment(spec(ephemeral=ephemeral), "me")
    monkeypatch.setattr(stack_settings, "read_described", lambda _environment: described)


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What went beside the engine, in its order, and of which namespace."""
    found: list[tuple[str, str]] = []
    for what in ("let_brokers_go", "delete_retained", "delete_init_bindings"):
        monkeypatch.setattr(
            kafka_layer, what, lambda _api, namespace, what=what: found.append((what, namespace))
        )
    return found


def wanted(*, yes: bool = False, **options: Any) -> provision.Asked:
    return provision.parse_targets(
        options.get("layers", ()), options.get("targets", ()), refresh=False, yes=yes, diff=False
    )


def pipe() -> Console:
    return Console(file=io.StringIO(), width=80)


def said(console: Console) -> str:
    return console.file.getvalue()


def answering(answer: str, monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console(
        file=io.StringIO(), force_terminal=True, force_interactive=True, no_color=True, width=200
    )
    monkeypatch.setattr("sys.stdin", Keyboard())
    monkeypatch.setattr(console, "input", lambda *_a, **_k: answer)
    return console


def test_up_shows_what_would_change_and_changes_nothing_unasked(stacks: type[Stacks]) -> None:
    console = pipe()
    with pytest.raises(StillwaterError, match="say --yes"):
        provision.up("prod", console, wanted())
    assert stacks.called == ["preview"]
    assert "+ VPC vpc" in said(console)


def test_up_goes_on_once_told_to(stacks: type[Stacks], monkeypatch: pytest.MonkeyPatch) -> None:
    provision.up("prod", answering("yes", monkeypatch), wanted())
    provision.up("prod", pipe(), wanted(yes=True, layers=("kafka", "foundation")))
    assert stacks.called == [
        *("preview", f"up {' '.join(LAYERS)}", "settled"),
        *("up foundation kafka", "settled"),
    ]


def test_where_nothing_is_to_change_nobody_is_asked(stacks: type[Stacks]) -> None:
    stacks.changes = ()
    console = pipe()
    provision.up("prod", console, wanted())
    assert "Nothing is to be done." in said(console)


def test_what_the_cluster_cannot_follow_is_refused_before_any_run(stacks: type[Stacks]) -> None:
    stacks.of_kafka = {"spec": spec(availability_zones=ZONES[::-1]).model_dump_json()}
    with pytest.raises(InvalidInput, match="A node keeps its id"):
        provision.up("prod", pipe(), wanted(yes=True))
    assert stacks.called == []
    console = pipe()
    provision.preview("prod", console, wanted())
    assert "A node keeps its id" in said(console).replace("\n", " ")


def test_what_clients_feel_is_said_before_the_question(
    stacks: type[Stacks], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = spec(kafka={"listener": {"bootstrap_port": 9200}})
    stacks.of_kafka = {"spec": before.model_dump_json()}
    console = answering("yes", monkeypatch)
    provision.up("prod", console, wanted())
    assert "kafka.listener.bootstrap_port was 9200 and is 9094" in said(console)


@pytest.mark.parametrize("written", ["{}", '{"name": "orders", "of_old": 1}', "no JSON"])
def test_what_an_older_release_wrote_stops_nobody(
    stacks: type[Stacks], monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    stacks.of_kafka = {"spec": written}
    console = answering("yes", monkeypatch)
    provision.up("prod", console, wanted())
    assert "This release cannot read the description" in said(console)
    assert stacks.called == ["preview", f"up {' '.join(LAYERS)}", "settled"]


@pytest.mark.parametrize(
    ("ephemeral", "outputs", "expected"),
    [
        pytest.param(True, FOUND, ["let_brokers_go", "delete_retained", "delete_init_bindings"],
            id="ephemeral"),
        pytest.param(False, FOUND, [], id="to be kept"),
        pytest.param(True, {}, [], id="the cluster is gone already"),
    ],
)  # fmt: skip
def test_brokers_and_volumes_go_with_an_ephemeral_environment_alone(
    stacks: type[Stacks],
    monkeypatch: pytest.MonkeyPatch,
    deleted: list[tuple[str, str]],
    ephemeral: bool,
    outputs: Mapping[str, Any],
    expected: list[str],
) -> None:
    stacks.outputs_ = outputs
    describe(monkeypatch, ephemeral=ephemeral)
    provision.destroy("test", pipe(), wanted(yes=True))
    assert deleted == [(what, "kafka") for what in expected]


@pytest.mark.parametrize(
    ("volumes", "sentence"),
    [([VOLUME], "data-0-orders-0 (100Gi, vol-0a)"), (None, "which they are could not be read")],
)
def test_a_destroy_names_the_volumes_and_asks_for_the_environments_name(
    stacks: type[Stacks],
    monkeypatch: pytest.MonkeyPatch,
    deleted: list[tuple[str, str]],
    volumes: list[dict[str, Any]] | None,
    sentence: str,
) -> None:
    monkeypatch.setattr(provision, "_cluster_api", lambda *_: Api(volumes))
    console = answering("yes", monkeypatch)
    with pytest.raises(StillwaterError, match="the answer was not 'test'"):
        provision.destroy("test", console, wanted())
    assert (stacks.called, deleted) == ([], [])
    assert sentence in said(console)
    assert "deleted for good" in said(console)
    provision.destroy("test", answering("test", monkeypatch), wanted())
    assert stacks.called == ["destroy"]


def test_an_environment_to_be_kept_says_that_the_engine_will_refuse(
    stacks: type[Stacks], monkeypatch: pytest.MonkeyPatch
) -> None:
    describe(monkeypatch, ephemeral=False)
    console = answering("no", monkeypatch)
    with pytest.raises(StillwaterError):
        provision.destroy("test", console, wanted())
    assert "is not `ephemeral`" in said(console)
    assert "are kept" in said(console)


def test_layers_and_targets_are_checked_before_anything_runs() -> None:
    with pytest.raises(InvalidInput, match="--layer kafca: there is no such layer"):
        wanted(layers=("kafca",))
    with pytest.raises(InvalidInput, match="say which by --layer"):
        wanted(targets=("vpc",))


def test_a_target_is_any_resource_of_that_name_or_the_one_of_a_urn() -> None:
    urn = "urn:pulumi:t::s::aws:ec2/vpc:Vpc::vpc"
    expected = {"target": [urn, "**::vpc"], "refresh": True}
    assert RunScope((urn, "vpc"), refresh=True).options == expected
    assert RunScope().options == {"target": None, "refresh": None}


def test_an_interruption_says_what_it_leaves(
    stacks: type[Stacks], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> list[LayerResult]:
        raise KeyboardInterrupt

    monkeypatch.setattr(stacks, "up", stop)
    console = pipe()
    with pytest.raises(KeyboardInterrupt):
        provision.up("prod", console, wanted(yes=True))
    assert "the same command again goes on with prod" in " ".join(said(console).split())


def test_piped_progress_is_a_line_for_each_resource_that_changes() -> None:
    console = pipe()
    with provision._steps(console) as on_step:
        for operation, state in ((OpType.CREATE, "done"), (OpType.SAME, "done")):
            on_step(EngineStep("kafka", "aws:ec2/vpc:Vpc", "vpc", operation.value, state))
    assert said(console) == "kafka: create vpc: done\n"


STACK = "urn:pulumi:prod-kafka::stillwater::"
NODES = "stillwater:infra:BrokerNodes$"
GROUP = "aws:autoscaling/group:Group"
SECRET = "kubernetes:core/v1:Secret"


def metadata(op: OpType, resource: str, name: str, parents: str = "", **fields: Any) -> Any:
    urn = f"{STACK}{parents}{resource}::{name}"
    return SimpleNamespace(op=op, urn=urn, type=resource, **fields)


def state(protect: bool = False, **inputs: Any) -> Any:
    return SimpleNamespace(protect=protect, inputs=inputs)


def lines(*steps: Any, diff: bool = False) -> list[str]:
    changes = Changes()
    for step in steps:
        changes.add(step)
    result = LayerResult(layer="kafka", seconds=0.0, changes=changes.all())
    return [line for line, _ in provision.lines(result, diff=diff)]


def test_resources_are_named_by_what_they_are_under_the_part_they_belong_to() -> None:
    said = lines(
        metadata(OpType.CREATE, GROUP, "broker-a", NODES, new=state(name="prod-orders-broker-a")),
        metadata(OpType.CREATE, "kubernetes:kafka.strimzi.io/v1:KafkaNodePool", "pool"),
        metadata(OpType.SAME, GROUP, "broker-b", NODES),
        metadata(OpType.CREATE, "stillwater:infra:BrokerNodes", "nodes"),
        metadata(OpType.CREATE, "pulumi:providers:aws", "aws"),
    )
    assert said == [
        "kafka: 2 to create",
        "  Broker nodes",
        "    + Auto Scaling group prod-orders-broker-a",
        "  Other",
        "    + KafkaNodePool pool",
    ]


def test_a_replacement_is_one_line_with_its_cause_and_comes_before_what_only_adds() -> None:
    said = lines(
        metadata(OpType.CREATE, GROUP, "b", NODES),
        metadata(OpType.CREATE_REPLACEMENT, GROUP, "a", NODES, keys=["name"]),
        metadata(OpType.REPLACE, GROUP, "a", NODES, keys=["name"], old=state(protect=True)),
        metadata(OpType.DELETE_REPLACED, GROUP, "a", NODES),
    )
    assert said == [
        "kafka: 1 to create, 1 to replace",
        "  Broker nodes",
        "    ! Auto Scaling group a: made anew because of name; protected: the engine refuses",
        "    + Auto Scaling group b",
    ]


def test_values_that_differ_are_shown_when_asked_for() -> None:
    step = metadata(
        OpType.UPDATE,
        GROUP,
        "a",
        old=state(maxSize=3, tags=[{"key": "x"}]),
        new=state(maxSize=6, tags=[{"key": "y"}]),
        detailed_diff={"maxSize": object(), "tags[0].key": object(), 'labels["a.b"]': object()},
    )
    assert lines(step)[-1].endswith('a: labels["a.b"], maxSize, tags[0].key')
    assert lines(step, diff=True)[-3:] == [
        '        labels["a.b"]: nothing -> nothing',
        "        maxSize: 3 -> 6",
        "        tags[0].key: x -> y",
    ]


def test_no_value_of_a_secret_is_ever_shown() -> None:
    step = metadata(
        OpType.UPDATE,
        SECRET,
        "token",
        old=state(stringData={"token": "xoxb-old"}),
        new=state(stringData={"token": "xoxb-new"}),
        detailed_diff={"stringData.token": object()},
    )
    shown = "\n".join(lines(step, diff=True))
    assert "xoxb" not in shown
    assert f"stringData.token: {HIDDEN} -> {HIDDEN}" in shown


def test_a_layer_that_could_not_be_planned_says_why() -> None:
    result = LayerResult(layer="kafka", seconds=0.0, skipped="Bring platform up first.")
    assert provision.lines(result) == [("kafka: Bring platform up first.", None)]


@every_case(
    ("resource", "words"),
    [
        ("aws:ec2/securityGroupRule:SecurityGroupRule", "security group rule"),
        ("aws:iam/rolePolicy:RolePolicy", "IAM role policy"),
        ("aws:sqs/queuePolicy:QueuePolicy", "SQS queue policy"),
        ("aws:eks/addon:Addon", "EKS add-on"),
        ("aws:ec2/vpcEndpoint:VpcEndpoint", "VPC endpoint"),
        ("aws:lb/targetGroup:TargetGroup", "load balancer target group"),
        ("aws:backup/vault:Vault", "backup vault"),
        ("kubernetes:policy/v1:PodDisruptionBudget", "PodDisruptionBudget"),
    ],
)
def test_a_type_without_an_entry_is_said_in_its_own_words(resource: str, words: str) -> None:
    assert kind_of(resource) == words


@pytest.mark.parametrize(
    ("stdin", "why"),
    [
        (Keyboard(), "Nothing was changed, because no answer came"),
        (io.StringIO("prod"), "say --yes"),
    ],
    ids=["Ctrl-D", "input that is no terminal"],
)
def test_who_answers_nothing_agrees_to_nothing(
    stdin: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    terminal = Console(file=io.StringIO(), force_terminal=True, force_interactive=True)
    with pytest.raises(StillwaterError, match=why):
        provision.ask_for_agreement("Remove prod?", "prod", terminal, yes=False)
