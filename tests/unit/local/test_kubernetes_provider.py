import base64
import json
from typing import Any, cast

import pytest

from core.ground.errors import InvalidInput, StillwaterError
from local.kubernetes.client import Api, ApiError, Object
from local.pulumi.kubernetes_helm import chart_folder
from local.pulumi.kubernetes_login import KubeconfigCluster, read_kubeconfig
from local.pulumi.kubernetes_objects import Objects, ObjectTarget, target
from local.pulumi.kubernetes_provider import KubernetesProvider, with_value_of
from local.pulumi.provider import CheckFailed, Existing, Resource
from local.values import UNKNOWN

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
PROJECT = "urn:pulumi:dev::stillwater::"


def _kubeconfig(user: dict[str, Any], ca: str | None = PEM) -> dict[str, Any]:
    cluster: dict[str, Any] = {"server": "https://127.42.250.4:6443"}
    if ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca.encode()).decode()
    return {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def test_a_kubeconfig_of_eks_that_names_no_region_is_of_us_east_1() -> None:
    token = ["eks", "get-token", "--cluster-name", "one"]
    config = _kubeconfig({"exec": {"command": "aws", "args": token}})
    server = "https://127.42.250.4:6443"
    assert read_kubeconfig(json.dumps(config)) == KubeconfigCluster(
        server, PEM, eks_name="one", region="us-east-1"
    )


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (_kubeconfig({}), "has no command"),
        (_kubeconfig({"token": "t"}, ca=None), "lacks a server or a certificate-authority-data"),
        (_kubeconfig({"token": "t"}, ca="text"), "lacks a server or a certificate-authority-data"),
        (_kubeconfig({"token": "t"}) | {"users": []}, "has no user named 'u'"),
        ("just text", "is not a mapping"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_one_sentence(config: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        read_kubeconfig(config)


def _resource(kind: str, name: str = "thing") -> Resource:
    return Resource(f"{PROJECT}stillwater:infra:Parent$kubernetes:{kind}::{name}")


def _storage(name: str, parameters: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "labels": {"a": "1"}},
        "provisioner": "ebs.csi.aws.com",
        "parameters": parameters,
    }


def test_a_nameless_object_gets_a_name_once() -> None:
    provider = KubernetesProvider()
    inputs = {"apiVersion": "v1", "kind": "Namespace"}
    first = provider.check(_resource("core/v1:Namespace", "Kafka"), {}, inputs)
    again = provider.check(_resource("core/v1:Namespace", "Kafka"), first, inputs)
    other = provider.check(_resource("core/v1:Namespace", "Kafka"), {}, inputs)
    assert first["metadata"]["name"].startswith("kafka-")
    assert first["metadata"]["annotations"] == {"pulumi.com/autonamed": "true"}
    assert again == first
    assert other["metadata"]["name"] != first["metadata"]["name"]


def test_an_object_without_a_kind_is_refused() -> None:
    with pytest.raises(CheckFailed, match="has no kind"):
        KubernetesProvider().check(_resource("core/v1:Namespace"), {}, {"apiVersion": "v1"})


def test_a_wait_for_something_else_than_a_condition_is_refused_before_anything_changes() -> None:
    metadata = {"name": "k", "annotations": {"pulumi.com/waitFor": "jsonpath={.status.x}=1"}}
    inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    with pytest.raises(InvalidInput, match="waits for conditions only"):
        KubernetesProvider().check(_resource("core/v1:ConfigMap"), {}, inputs)


def test_a_name_that_is_not_known_yet_passes_the_check() -> None:
    inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": UNKNOWN}}
    checked = KubernetesProvider().check(_resource("core/v1:ConfigMap"), {}, inputs)
    assert checked["metadata"]["name"] is UNKNOWN


@pytest.mark.parametrize(
    ("new", "replaces", "delete_first"),
    [
        (_storage("gp3", {"type": "gp3"}) | {"allowVolumeExpansion": True}, [], True),
        (_storage("gp3", {"type": "io2"}), ["parameters.type"], True),
        (_storage("other", {"type": "gp3"}), ["metadata.name"], False),
        (_storage("gp3", {"type": "gp3"}) | {"apiVersion": "storage.k8s.io/v2"}, [], True),
        (_storage("gp3", {"type": "gp3"}) | {"apiVersion": "new.io/v1"}, ["apiVersion"], True),
    ],
    ids=["in place", "immutable", "renamed", "newer version", "another group"],
)
def test_a_change_replaces_only_what_the_api_server_would_refuse_in_place(
    *, new: dict[str, Any], replaces: list[str], delete_first: bool
) -> None:
    old = _storage("gp3", {"type": "gp3"})
    existing = Existing(_resource("storage.k8s.io/v1:StorageClass"), "gp3", old, old)
    difference = KubernetesProvider().diff(existing, new)
    assert [change.path for change in difference.changes if change.replaces] == replaces
    assert difference.delete_before_replace is delete_first
    assert not KubernetesProvider().diff(existing, old).changes


def test_a_release_is_upgraded_in_place_unless_its_name_or_namespace_changes() -> None:
    provider = KubernetesProvider()
    resource = _resource("helm.sh/v3:Release", "nth")
    old = provider.check(resource, {}, {"chart": "c", "values": {"a": 1}, "name": "nth"})
    assert old["namespace"] == "default"
    existing = Existing(resource, "default/nth", old, old)
    values = provider.diff(existing, {**old, "values": {"a": 2}, "chart": "d"})
    assert not any(change.replaces for change in values.changes)
    moved = provider.diff(existing, {**old, "namespace": "kube-system"})
    assert [change.path for change in moved.changes if change.replaces] == ["namespace"]


def test_a_program_without_a_kubeconfig_never_reaches_the_users_own_cluster() -> None:
    with pytest.raises(StillwaterError, match="has no kubeconfig"):
        KubernetesProvider().configure({})


def test_a_preview_before_the_cluster_exists_shows_the_inputs() -> None:
    provider = KubernetesProvider()
    provider.configure({"kubeconfig": UNKNOWN})
    inputs = _storage("gp3", {})
    resource = _resource("storage.k8s.io/v1:StorageClass")
    assert provider.preview_create(resource, inputs).outputs == inputs
    with pytest.raises(StillwaterError, match="kubeconfig is not known"):
        provider.create(resource, inputs)


def test_an_id_wins_over_metadata() -> None:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert target(item, "space/b") == ObjectTarget("v1", "ConfigMap", "b", "space")
    assert target(item, "b").namespace is None


class FakeApi:
    """A cluster that serves StorageClasses and ConfigMaps and keeps what is applied."""

    def __init__(self) -> None:
        self.stored: dict[str, Object] = {}
        self.deleted: list[tuple[str, Any]] = []
        self.lingers = False

    def get(self, path: str) -> Object:
        if path == "/apis/storage.k8s.io/v1":
            return {
                "resources": [
                    {"name": "storageclasses", "kind": "StorageClass", "namespaced": False},
                    {"name": "storageclasses/status", "kind": "StorageClass", "namespaced": False},
                ]
            }
        if path == "/api/v1":
            return {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
        if path in self.stored:
            return self.stored[path]
        raise ApiError(404, "NotFound", f"{path} not found")

    def apply(
        self, path: str, item: Object, *, field_manager: str, dry_run: bool = False
    ) -> Object:
        metadata = {**item["metadata"], "uid": "u1", "managedFields": [field_manager]}
        applied = {**item, "metadata": metadata}
        if not dry_run:
            self.stored[path] = applied
        return applied

    def delete(self, path: str, options: Any) -> Object:
        self.deleted.append((path, options))
        if not self.lingers:
            del self.stored[path]
        return {}


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


def _objects(api: FakeApi) -> Objects:
    return Objects(lambda: cast("Api", api), "kafka")


def test_a_namespaced_object_without_a_namespace_goes_to_the_providers(api: FakeApi) -> None:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    applied = _objects(api).apply(item)
    assert list(api.stored) == ["/api/v1/namespaces/kafka/configmaps/a"]
    assert "managedFields" not in applied["metadata"]


def test_a_dry_run_keeps_nothing_and_passes_what_cannot_be_judged_yet(api: FakeApi) -> None:
    _objects(api).dry_run(_storage("gp3", {}))
    custom = {"apiVersion": "later.io/v1", "kind": "Later", "metadata": {"name": "a"}}
    _objects(api).dry_run(custom)
    assert api.stored == {}


def test_a_deletion_is_of_the_very_object_and_a_second_one_is_no_error(api: FakeApi) -> None:
    objects, item = _objects(api), _storage("gp3", {})
    objects.apply(item)
    objects.delete(target(item), item)
    objects.delete(target(item), item)
    path = "/apis/storage.k8s.io/v1/storageclasses/gp3"
    options = {"propagationPolicy": "Background", "preconditions": {"uid": "u1"}}
    assert api.deleted == [(path, options)]


def test_an_object_that_will_not_go_is_explained(api: FakeApi) -> None:
    objects, item = _objects(api), _storage("gp3", {})
    item["metadata"]["annotations"] = {"pulumi.com/timeoutSeconds": "0.1"}
    item["metadata"]["finalizers"] = ["stillwater.dev/held"]
    objects.apply(item)
    api.lingers = True
    with pytest.raises(StillwaterError, match=r"StorageClass gp3 is still there .*held"):
        objects.delete(target(item), item)


def test_a_chart_that_the_twin_does_not_have_is_named() -> None:
    with pytest.raises(StillwaterError, match="The twin has no chart unheard-of"):
        chart_folder("oci://registry.invalid/unheard-of")


def test_what_a_program_ignores_is_applied_as_it_is_by_now() -> None:
    inputs = {"spec": {"replicas": 2, "storage": {"size": "100Gi"}}}
    live = {"spec": {"replicas": 1, "storage": {"size": "150Gi"}}}
    assert with_value_of(inputs, live, ["spec", "storage"]) == {
        "spec": {"replicas": 2, "storage": {"size": "150Gi"}}
    }
    assert with_value_of(inputs, {}, ["spec", "storage"]) == inputs
