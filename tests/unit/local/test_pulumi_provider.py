"""Providers speak the engine's protocol: values both ways, changes, failures in one sentence."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from botocore.exceptions import ClientError
from pulumi.runtime.proto import provider_pb2

from core.ground.errors import StillwaterError
from local.pulumi.aws_adapter import ADAPTERS, Adapter, Aws
from local.pulumi.aws_provider import AwsProvider
from local.pulumi.provider import Existing, Resource, Servicer, State, changes, one_sentence
from local.refusals import calls
from local.store import ResourceStore
from local.values import (
    ARCHIVE_SIGNATURE,
    OUTPUT_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE_KEY,
    UNKNOWN,
    Asset,
    Properties,
    from_struct,
    has_unknown,
    to_struct,
    without_assets,
)

UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
ARCHIVE = Asset(is_archive=True, sha256="ab12", content={"path": "/code"})


def _back(value: Any) -> Any:
    return from_struct(to_struct({"it": value}))["it"]


def test_an_archive_keeps_its_hash_by_which_it_is_told_and_its_path() -> None:
    back = _back(ARCHIVE)
    assert (back, back.sha256, back.content) == (ARCHIVE, "ab12", {"path": "/code"})
    assert Asset(is_archive=True, sha256="ab12", content={"path": "/elsewhere"}) == ARCHIVE
    assert Asset(is_archive=True, sha256="cd34", content={"path": "/code"}) != ARCHIVE


def test_secrets_and_outputs_are_opened() -> None:
    marked = {
        "password": {SIGNATURE_KEY: SECRET_SIGNATURE, "value": "x"},
        "known": {SIGNATURE_KEY: OUTPUT_SIGNATURE, "value": 3, "dependencies": ["urn"]},
        "later": {SIGNATURE_KEY: OUTPUT_SIGNATURE},
    }
    assert _back(marked) == {"password": "x", "known": 3, "later": UNKNOWN}


def test_an_unknown_is_told_from_text_and_found_at_any_depth() -> None:
    value = _back({"a": [{"b": UNKNOWN_TEXT}]})
    assert value == {"a": [{"b": UNKNOWN}]}
    assert has_unknown(value)
    assert not has_unknown({"a": [{"b": "text"}]})
    assert to_struct({"x": UNKNOWN}).fields["x"].string_value == UNKNOWN_TEXT


def test_outputs_hold_an_archive_as_its_hash_alone() -> None:
    assert without_assets({"code": ARCHIVE, "list": [ARCHIVE]}) == {
        "code": "sha256:ab12",
        "list": ["sha256:ab12"],
    }
    assert ARCHIVE_SIGNATURE not in str(to_struct(without_assets({"code": ARCHIVE})))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {"a": 1}, [("a", "ADD")], id="added"),
        pytest.param({"a": 1}, {}, [("a", "DELETE")], id="removed"),
        pytest.param({"a": None}, {}, [], id="null equals missing"),
        pytest.param({"a": 1}, {"a": 2}, [("a", "UPDATE")], id="changed"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, [("a.b", "UPDATE")], id="nested"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, [("a[1]", "ADD")], id="longer list"),
        pytest.param(
            {"tags": {"kubernetes.io/x": "1"}},
            {"tags": {"kubernetes.io/x": "2"}},
            [('tags["kubernetes.io/x"]', "UPDATE")],
            id="quoted key",
        ),
        pytest.param({"a": "x"}, {"a": UNKNOWN}, [("a", "UPDATE")], id="not known yet"),
    ],
)
def test_each_change_is_named_by_its_path(
    old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert [(change.path, change.kind) for change in changes(old, new)] == expected


def test_a_change_replaces_only_at_or_below_the_properties_named_for_it() -> None:
    old = {"name": "a", "names": "a", "vpc": {"id": 1, "x": 1}, "list": [1]}
    new = {"name": "b", "names": "b", "vpc": {"id": 2, "x": 2}, "list": [2]}
    found = changes(old, new, replacing=["name", "vpc.id", "list"])
    assert {change.path for change in found if change.replaces} == {"name", "vpc.id", "list[0]"}
    assert {change.top for change in found} == {"name", "names", "vpc", "list"}


THING = "aws:fake/thing:Thing"
ADDON = "aws:eks/addon:Addon"
DiffResponse = provider_pb2.DiffResponse


def resource(kind: str = THING, name: str = "it") -> Resource:
    return Resource(f"urn:pulumi:dev::project::stillwater:infra:Box${kind}::{name}")


def refused(code: str, message: str = "No such thing.") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "DeleteThing")


class Thing(Adapter):
    """A type of a made-up service that keeps its state in a dictionary."""

    name_property = "name"
    replaces = frozenset({"zone"})

    def __init__(self) -> None:
        self.live: dict[str, Properties] = {}

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        self.live[inputs["name"]] = inputs
        return State(inputs["name"], {"arn": aws.arn("fake", inputs["name"]), "size": 1})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self.live[existing.id] = inputs
        return {"size": 2}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        if existing.id not in self.live:
            raise refused("ResourceNotFoundException")
        return {"size": 7}

    def delete(self, aws: Aws, existing: Existing) -> None:
        if self.live.pop(existing.id, None) is None:
            raise refused("NoSuchThing")


OTHER = "aws:other/kind:Kind"


@pytest.fixture
def thing(monkeypatch: pytest.MonkeyPatch) -> Thing:
    adapter = Thing()
    monkeypatch.setitem(ADAPTERS, THING, adapter)
    for kind in (THING, OTHER):
        monkeypatch.setitem(calls.TYPES, kind, calls.TypeCalls(calls=()))
    return adapter


@pytest.fixture
def provider(tmp_path: Path, thing: Thing) -> AwsProvider:
    return AwsProvider(Aws(), ResourceStore(tmp_path))


def existing(state: State, inputs: Properties, kind: str = THING) -> Existing:
    return Existing(resource(kind), state.id, inputs, state.outputs)


def test_an_unnamed_resource_gets_one_name_and_keeps_it(provider: AwsProvider) -> None:
    first = provider.check(resource(), {}, {})
    assert first["name"].startswith("it-")
    assert provider.check(resource(), {}, {}) == first
    assert provider.check(resource(), {"name": "it-before"}, {})["name"] == "it-before"
    assert provider.check(resource(), {}, {"name": "mine"})["name"] == "mine"


def test_own_tags_lie_over_the_providers_default_tags(provider: AwsProvider) -> None:
    provider.configure({"defaultTags": {"tags": {"team": "a", "env": "x"}}})
    checked = provider.check(resource(), {}, {"name": "n", "tags": {"team": "b"}})
    assert checked["tagsAll"] == {"team": "b", "env": "x"}
    assert provider.check(resource(), {}, {"tags": UNKNOWN})["tagsAll"] is UNKNOWN


def test_tags_that_are_a_list_are_left_to_the_type(provider: AwsProvider) -> None:
    provider.configure({"defaultTags": {"tags": {"team": "a"}}})
    assert "tagsAll" not in provider.check(resource(), {}, {"tags": [{"key": "k", "value": "v"}]})


def test_an_update_keeps_computed_outputs_and_drops_inputs_that_are_gone(
    provider: AwsProvider,
) -> None:
    inputs = {"name": "n", "colour": "red"}
    made = provider.create(resource(), inputs)
    outputs = provider.update(existing(made, inputs), {"name": "n", "shape": "round"})
    assert "colour" not in outputs
    assert (outputs["shape"], outputs["size"], outputs["arn"]) == ("round", 2, made.outputs["arn"])


def test_a_preview_of_an_update_touches_nothing(provider: AwsProvider, thing: Thing) -> None:
    inputs = {"name": "n", "colour": "red"}
    made = provider.create(resource(), inputs)
    outputs = provider.preview_update(existing(made, inputs), {"name": "n", "colour": "blue"})
    assert (outputs["colour"], outputs["size"]) == ("blue", 1)
    assert thing.live["n"]["colour"] == "red"


def test_a_resource_deleted_behind_our_back_reads_as_gone(
    provider: AwsProvider, thing: Thing
) -> None:
    made = provider.create(resource(), {"name": "n"})
    thing.live.clear()
    assert provider.read(existing(made, {"name": "n"})) is None


def test_deleting_what_is_gone_already_is_no_error(provider: AwsProvider, thing: Thing) -> None:
    made = provider.create(resource(), {"name": "n"})
    thing.live.clear()
    provider.delete(existing(made, {"name": "n"}))
    assert provider.store.get(THING, "n") is None


def test_a_refused_delete_is_an_error(
    provider: AwsProvider, thing: Thing, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = provider.create(resource(), {"name": "n"})

    def in_use(aws: Aws, existing: Existing) -> None:
        raise refused("DependencyViolation", "It is in use.")

    monkeypatch.setattr(thing, "delete", in_use)
    with pytest.raises(ClientError):
        provider.delete(existing(made, {"name": "n"}))
    assert provider.store.get(THING, "n") is not None


def test_a_type_without_an_adapter_is_stored_under_the_real_providers_id(
    provider: AwsProvider,
) -> None:
    inputs = {"clusterName": "c", "addonName": "coredns"}
    made = provider.create(resource(ADDON), inputs)
    assert made.id == "c:coredns"
    arn = made.outputs["arn"]
    assert arn.startswith("arn:aws:eks:us-east-1:123456789012:addon/c/coredns/")
    read = provider.read(existing(made, inputs, ADDON))
    assert read is not None
    assert read.outputs == made.outputs


def test_unnamed_resources_of_a_stored_type_do_not_share_an_id(provider: AwsProvider) -> None:
    ids = {provider.create(resource(OTHER, name), {}).id for name in ("a", "b")}
    assert len(ids) == 2


class Aborted(Exception):
    pass


class Context:
    """What gRPC hands a servicer's method."""

    def __init__(self) -> None:
        self.code: Any = None
        self.sentence = ""

    def abort(self, code: grpc.StatusCode, sentence: str) -> None:
        self.code, self.sentence = code, sentence
        raise Aborted


def diff(provider: AwsProvider, old: Properties, new: Properties) -> Any:
    request = provider_pb2.DiffRequest(
        id="n", urn=resource().urn, old_inputs=to_struct(old), news=to_struct(new)
    )
    return Servicer(provider).Diff(request, Context())


def test_the_engine_hears_what_updates_and_what_replaces(provider: AwsProvider) -> None:
    answer = diff(
        provider,
        {"name": "n", "a": {"b": 1}, "zone": "x"},
        {"name": "n", "a": {"b": 2}, "zone": "y"},
    )
    assert answer.changes == DiffResponse.DIFF_SOME
    assert (list(answer.diffs), list(answer.replaces)) == (["a", "zone"], ["zone"])
    assert answer.detailedDiff["a.b"].kind == provider_pb2.PropertyDiff.UPDATE
    assert answer.detailedDiff["zone"].kind == provider_pb2.PropertyDiff.UPDATE_REPLACE
    same = diff(provider, {"name": "n", "a": [1]}, {"name": "n", "a": [1]})
    assert (same.changes, dict(same.detailedDiff)) == (DiffResponse.DIFF_NONE, {})


def test_a_replacement_waits_for_a_name_both_would_have(provider: AwsProvider) -> None:
    same_name = diff(provider, {"name": "n", "zone": "x"}, {"name": "n", "zone": "y"})
    new_name = diff(provider, {"name": "n"}, {"name": "m"})
    assert (same_name.deleteBeforeReplace, new_name.deleteBeforeReplace) == (True, False)
    assert list(new_name.replaces) == ["name"]


def test_a_preview_creates_nothing(provider: AwsProvider, thing: Thing) -> None:
    request = provider_pb2.CreateRequest(
        urn=resource().urn, properties=to_struct({"name": "n", "vpc": UNKNOWN}), preview=True
    )
    answer = Servicer(provider).Create(request, Context())
    assert from_struct(answer.properties) == {"name": "n", "vpc": UNKNOWN}
    assert (answer.id, thing.live) == ("", {})


def test_a_failure_reaches_the_engine_as_one_sentence(
    provider: AwsProvider, monkeypatch: pytest.MonkeyPatch, thing: Thing
) -> None:
    def refuse(aws: Aws, resource: Resource, inputs: Properties) -> State:
        raise refused("InvalidRange", "The range\n  is wrong.")

    monkeypatch.setattr(thing, "create", refuse)
    context = Context()
    request = provider_pb2.CreateRequest(urn=resource().urn, properties=to_struct({"name": "n"}))
    with pytest.raises(Aborted):
        Servicer(provider).Create(request, context)
    assert context.sentence == "AWS refused DeleteThing (InvalidRange): The range is wrong."
    # Any other code would make the engine doubt the state of the resource.
    assert context.code == grpc.StatusCode.FAILED_PRECONDITION


def test_our_own_errors_are_shown_as_they_are() -> None:
    assert one_sentence(StillwaterError("What, and the remedy.")) == "What, and the remedy."
    assert one_sentence(KeyError("x")) == "KeyError: 'x'"


def test_a_function_the_provider_lacks_is_named(provider: AwsProvider) -> None:
    with pytest.raises(StillwaterError, match="getNonsense"):
        provider.invoke("aws:index/getNonsense:getNonsense", {})
