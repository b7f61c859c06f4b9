"""Gives a container its variables, command line and files as its pod's spec has them."""

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest

from core.ground.errors import MissingPrerequisite
from local.kubernetes import environment
from local.kubernetes.client import ApiError
from local.kubernetes.environment import MissingReference, PodVolumes, command_line, expand, resolve
from local.place import Place

POD: dict[str, Any] = {
    "metadata": {"name": "demo-0", "namespace": "kafka", "uid": "u-1"},
    "spec": {"nodeName": "ip-10-11-0-4.ec2.internal"},
}
OBJECTS = {
    ("ConfigMap", "settings"): {"data": {"size": "3", "host": "h"}},
    ("Secret", "keys"): {"data": {"token": base64.b64encode(b"s3cret").decode()}},
}


def variables(*env: dict[str, Any]) -> Any:
    return resolve(
        POD,
        {"name": "main", "env": list(env)},
        pod_ip="10.11.5.6",
        host_ip="10.11.0.4",
        base={"PATH": "/bin"},
        lookup=lambda kind, name: OBJECTS.get((kind, name)),
    )


def from_field(path: str) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def from_key(kind: str, name: str, key: str, **more: Any) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {kind: {"name": name, "key": key, **more}}}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)/$(B)", "1/2"),
        ("$$(A)", "$(A)"),
        ("$(UNKNOWN) stays", "$(UNKNOWN) stays"),
        ("$A and $(A", "$A and $(A"),
        ("cost: 5$", "cost: 5$"),
    ],
)
def test_references_are_replaced_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expanded


def test_command_and_arguments_see_the_variables() -> None:
    container = {"command": ["run", "--id=$(ID)"], "args": ["$(ID)", "$$(ID)"]}
    assert command_line(container, {"ID": "7"}) == (["run", "--id=7"], ["7", "$(ID)"])


def test_a_later_variable_may_refer_to_an_earlier_one_and_wins_over_the_base() -> None:
    found = variables(
        {"name": "PATH", "value": "/opt:$(PATH)"},
        {"name": "COPY", "value": "$(PATH)"},
        {"name": "EMPTY"},
    )
    assert found == {"PATH": "/opt:/bin", "COPY": "/opt:/bin", "EMPTY": ""}


def test_a_field_of_the_pod_and_keys_of_config_maps_and_secrets_become_values() -> None:
    assert variables(from_field("status.hostIP"))["X"] == "10.11.0.4"
    assert variables(from_key("configMapKeyRef", "settings", "size"))["X"] == "3"
    assert variables(from_key("secretKeyRef", "keys", "token"))["X"] == "s3cret"


@pytest.mark.parametrize(
    "entry",
    [
        from_key("configMapKeyRef", "absent", "size"),
        from_key("configMapKeyRef", "settings", "absent"),
        from_key("secretKeyRef", "absent", "token"),
        from_field("status.phase"),
        {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    ids=["config map", "key", "secret", "field", "kind of source"],
)
def test_what_must_exist_and_does_not_is_named(entry: dict[str, Any]) -> None:
    with pytest.raises(MissingReference, match=r"absent|status\.phase|resourceFieldRef"):
        variables(entry)


def test_what_is_optional_may_be_absent() -> None:
    assert "X" not in variables(from_key("secretKeyRef", "absent", "t", optional=True))


CORE = "/api/v1/namespaces/kafka"


class FakeApi:
    """Answers from a dictionary of paths, and counts the tokens it issues."""

    def __init__(self, objects: dict[str, Any]) -> None:
        self.objects = objects
        self.tokens: list[dict[str, Any]] = []

    def get(self, path: str) -> Any:
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} is not there")
        return self.objects[path]

    def post(self, path: str, body: Any) -> Any:
        assert path == f"{CORE}/serviceaccounts/nth/token"
        self.tokens.append(body["spec"])
        return {"status": {"token": f"token-{len(self.tokens)}"}}


def volumes(tmp_path: Path, api: FakeApi, *specs: dict[str, Any]) -> PodVolumes:
    pod = {
        "metadata": {"name": "demo-0", "namespace": "kafka", "uid": "u-1"},
        "spec": {"serviceAccountName": "nth", "volumes": list(specs)},
    }
    return PodVolumes(api, Place(11, tmp_path), pod)  # type: ignore[arg-type]  # the two calls it makes


def write(found: PodVolumes) -> None:
    found.write(pod_ip="10.11.5.6", host_ip="10.11.0.4")


def test_a_config_maps_entries_become_files_whole_or_as_listed_and_again_when_they_change(
    tmp_path: Path,
) -> None:
    api = FakeApi({f"{CORE}/configmaps/c": {"data": {"a": "1", "b": "2"}}})
    items = [{"key": "b", "path": "deep/b.txt"}]
    found = volumes(
        tmp_path,
        api,
        {"name": "all", "configMap": {"name": "c"}},
        {"name": "some", "configMap": {"name": "c", "items": items}},
    )
    write(found)
    assert sorted(p.name for p in found.directory("all").iterdir()) == ["a", "b"]
    assert (found.directory("some") / "deep" / "b.txt").read_text() == "2"
    assert not (found.directory("some") / "a").exists()
    api.objects[f"{CORE}/configmaps/c"]["data"]["a"] = "3"
    write(found)
    assert (found.directory("all") / "a").read_text() == "3"


def test_an_absent_secret_is_named_unless_it_is_optional(tmp_path: Path) -> None:
    api = FakeApi({})
    with pytest.raises(MissingReference, match="secret s "):
        write(volumes(tmp_path, api, {"name": "v", "secret": {"secretName": "s"}}))
    write(volumes(tmp_path, api, {"name": "v", "secret": {"secretName": "s", "optional": True}}))


def test_a_projected_token_is_bound_to_its_pod_and_kept_while_it_is_fresh(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "apiserver-ca.crt").write_text("CA")
    api = FakeApi({})
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    found = volumes(tmp_path, api, {"name": "v", "projected": {"sources": sources}})
    write(found)
    write(found)
    directory = found.directory("v")
    assert (directory / "token").read_text() == "token-1"
    assert (directory / "ca.crt").read_text() == "CA"
    assert (directory / "namespace").read_text() == "kafka"
    (asked,) = api.tokens
    assert asked["boundObjectRef"]["uid"] == "u-1"
    assert asked["expirationSeconds"] == 3607


def test_what_is_a_pods_own_goes_with_it(tmp_path: Path) -> None:
    found = volumes(tmp_path, FakeApi({}), {"name": "scratch", "emptyDir": {}})
    write(found)
    assert found.directory("scratch").is_dir()
    found.remove()
    assert not (tmp_path / "pods" / "u-1").exists()


def test_a_system_without_mount_namespaces_is_told_what_to_enable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(command: list[str], **_: Any) -> Any:
        return subprocess.CompletedProcess(command, 1, b"", b"")

    environment.namespace_support.cache_clear()
    monkeypatch.setattr(subprocess, "run", refused)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(MissingPrerequisite, match="user namespaces"):
        environment.namespace_support()
