"""AWS adapters: their calls, tags, what is gone, archives, and entries of a cluster's access."""

from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from core.ground.errors import InvalidInput, StillwaterError
from local.kubernetes.client import ApiError
from local.place import Place
from local.pulumi import aws_eks
from local.pulumi.aws_adapter import missing, tag_changes
from local.pulumi.aws_data import zip_bytes
from local.pulumi.aws_rows import ROWS
from local.pulumi.provider import Existing, Resource
from local.refusals.catalogue import TYPES
from local.values import Asset

ROLE = "arn:aws:iam::123456789012:role/nodes"


def client(service: str) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )


def test_tags_change_with_what_differs_alone() -> None:
    before = Existing(
        Resource("urn:pulumi:d::p::t::n"), "id", {"tagsAll": {"a": "1", "b": "1", "c": "1"}}, {}
    )
    assert tag_changes(before, {"tagsAll": {"a": "1", "b": "2", "d": "1"}}) == (
        {"b": "2", "d": "1"},
        ["c"],
    )
    assert tag_changes(before, {"tagsAll": {"a": "1", "b": "1", "c": "1"}}) == ({}, [])


def test_every_call_of_the_table_is_one_of_aws_with_parameters_that_it_has() -> None:
    for token, row in ROWS.items():
        assert f"aws:{token}" in TYPES
        assert {"id"} <= row.keys() or row["stored"]
        kinds = ("after", "update", "settings", "delete")
        told = [call for kind in kinds for call in row.get(kind, ())]
        for each in [*told, *([row["read"]] if "read" in row else [])]:
            if "again" in each:
                assert each["again"] < len(TYPES[f"aws:{token}"].calls)
                continue
            service, _, name = each["call"].partition(".")
            model = client(service).meta
            shape = model.service_model.operation_model(model.method_to_api_mapping[name])
            given = each.keys() - {"call", "when", "unless", "inputs", "there"}
            assert given <= shape.input_shape.members.keys(), each
            assert each.get("inputs") or {*shape.input_shape.required_members} <= given, each


@pytest.mark.parametrize(
    ("code", "message", "gone"),
    [
        ("InvalidVpcID.NotFound", "", True),
        ("NoSuchEntity", "", True),
        ("AWS.SimpleQueueService.NonExistentQueue", "", True),
        ("ValidationError", "AutoScalingGroup name not found - x", True),
        ("ValidationError", "The group is being deleted", False),
        ("DependencyViolation", "", False),
    ],
)
def test_an_error_that_means_gone_is_told_from_others(code: str, message: str, gone: bool) -> None:
    error = Exception()
    error.response = {"Error": {"Code": code, "Message": message}}  # type: ignore[attr-defined]
    assert missing(error) is gone


def test_a_missing_archive_is_one_sentence() -> None:
    archive = Asset(is_archive=True, sha256="", content={"path": "/nowhere/function.zip"})
    with pytest.raises(InvalidInput, match=r"^/nowhere/function.zip cannot be read"):
        zip_bytes(archive)


class Cluster:
    """An API server that holds one ConfigMap, and lets others write in between."""

    def __init__(self, conflicts: int = 0) -> None:
        self.stored: dict[str, Any] | None = None
        self.conflicts = conflicts

    def get(self, path: str) -> dict[str, Any]:
        if self.stored is None:
            raise ApiError(404, "NotFound", "There is none.")
        return self.stored

    def post(self, path: str, body: dict[str, Any]) -> None:
        self._write(body)

    def put(self, path: str, body: dict[str, Any]) -> None:
        self._write(body)

    def _write(self, body: dict[str, Any]) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise ApiError(409, "Conflict", "The object has been modified.")
        self.stored = body

    @property
    def rows(self) -> Any:
        assert self.stored is not None
        return yaml.safe_load(self.stored["data"]["mapRoles"])


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Any:
    def to(cluster: Cluster) -> Cluster:
        monkeypatch.setattr(aws_eks, "administrator", lambda _place: cluster)
        return cluster

    return to


def entry(groups: list[str]) -> aws_eks.Row:
    return aws_eks.entry_row(ROLE, "STANDARD", groups, None)


def test_an_access_entry_is_one_row_that_changes_in_place(connect: Any, tmp_path: Path) -> None:
    cluster, place = connect(Cluster()), Place(75, tmp_path)
    aws_eks.put_entry(place, entry(["a"]))
    aws_eks.put_entry(
        place, aws_eks.entry_row("arn:aws:iam::1:role/other", "STANDARD", ["x"], "other")
    )
    aws_eks.put_entry(place, entry(["b"]))
    assert [row["groups"] for row in cluster.rows] == [["x"], ["b"]]
    aws_eks.remove_entry(place, ROLE)
    assert [row["username"] for row in cluster.rows] == ["other"]


def test_a_writer_in_between_makes_the_entry_read_again(connect: Any, tmp_path: Path) -> None:
    cluster = connect(Cluster(conflicts=3))
    aws_eks.put_entry(Place(75, tmp_path), entry(["a"]))
    assert [row["rolearn"] for row in cluster.rows] == [ROLE]


def test_writers_without_end_are_reported(connect: Any, tmp_path: Path) -> None:
    connect(Cluster(conflicts=1000))
    with pytest.raises(StillwaterError, match="aws-auth changed 20 times in a row"):
        aws_eks.put_entry(Place(75, tmp_path), entry(["a"]))


def test_a_nodes_entry_gets_what_eks_grants_nodes() -> None:
    assert aws_eks.entry_row(ROLE, "EC2_LINUX", [], None) == {
        "rolearn": ROLE,
        "username": "system:node:{{EC2PrivateDNSName}}",
        "groups": ["system:bootstrappers", "system:nodes"],
    }
    assert "userarn" in aws_eks.entry_row("arn:aws:iam::1:user/me", "STANDARD", [], None)
