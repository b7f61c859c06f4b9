"""A container's variables and command line."""

import base64
from typing import Any

import pytest

from local.kubernetes.environment import (
    MissingReference,
    command_line,
    data_of,
    expand,
    resolve,
)

POD: dict[str, Any] = {
    "metadata": {
        "name": "demo-0",
        "namespace": "kafka",
        "uid": "u-1",
        "labels": {"strimzi.io/cluster": "demo", "app": "a"},
    },
    "spec": {"nodeName": "ip-10-11-0-4.ec2.internal"},
}
OBJECTS = {
    ("ConfigMap", "settings"): {"data": {"size": "3", "host": "h"}},
    ("Secret", "keys"): {"data": {"token": base64.b64encode(b"s3cret").decode()}},
}


def environment(*env: dict[str, Any], env_from: list[dict[str, Any]] | None = None) -> Any:
    return resolve(
        POD,
        {"name": "main", "env": list(env), "envFrom": env_from or []},
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
    found = environment(
        {"name": "PATH", "value": "/opt:$(PATH)"},
        {"name": "COPY", "value": "$(PATH)"},
        {"name": "EMPTY"},
    )
    assert found == {"PATH": "/opt:/bin", "COPY": "/opt:/bin", "EMPTY": ""}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "demo-0"),
        ("metadata.namespace", "kafka"),
        ("metadata.labels['strimzi.io/cluster']", "demo"),
        ("metadata.labels['absent']", ""),
        ("spec.nodeName", "ip-10-11-0-4.ec2.internal"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "10.11.5.6"),
        ("status.hostIP", "10.11.0.4"),
        ("metadata.labels", 'app="a"\nstrimzi.io/cluster="demo"'),
    ],
)
def test_a_field_of_the_pod_becomes_a_value(path: str, value: str) -> None:
    assert environment(from_field(path))["X"] == value


def test_keys_of_config_maps_and_secrets_become_values() -> None:
    assert environment(from_key("configMapKeyRef", "settings", "size"))["X"] == "3"
    assert environment(from_key("secretKeyRef", "keys", "token"))["X"] == "s3cret"


def test_a_whole_config_map_becomes_variables_with_its_prefix() -> None:
    found = environment(
        {"name": "C_host", "value": "mine"},
        env_from=[{"configMapRef": {"name": "settings"}, "prefix": "C_"}],
    )
    assert (found["C_size"], found["C_host"]) == ("3", "mine")


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
        environment(entry)


def test_what_is_optional_may_be_absent() -> None:
    assert "X" not in environment(from_key("secretKeyRef", "absent", "t", optional=True))
    assert environment(env_from=[{"secretRef": {"name": "absent", "optional": True}}]) == {
        "PATH": "/bin"
    }


def test_binary_entries_of_a_config_map_are_decoded() -> None:
    item = {"data": {"a": "text"}, "binaryData": {"b": base64.b64encode(b"\xff").decode()}}
    assert data_of(item) == {"a": b"text", "b": b"\xff"}
