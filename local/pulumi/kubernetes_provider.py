"""`pulumi-resource-kubernetes` of the twin: the program's Kubernetes objects on a real API server.

Objects go in by server-side apply, releases through real helm; the API server decides what is
valid, and in a preview it is asked so. The identity is the one the kubeconfig means, so a program
that lacks a right in EKS lacks it here.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from core.ground.errors import StillwaterError
from local.pulumi.kubernetes_helm import RELEASE_TYPE, TEMPLATE, HelmRelease, Releases
from local.pulumi.kubernetes_login import Login, read_kubeconfig
from local.pulumi.kubernetes_objects import (
    Objects,
    identifier,
    target,
    wanted_condition,
)
from local.pulumi.provider import (
    CheckFailed,
    Existing,
    Resource,
    State,
    UpdateDifference,
    changes,
    main,
)
from local.values import Properties, UnknownValue, has_unknown

AUTONAMED = "pulumi.com/autonamed"
IDENTITY = ("kind", "metadata.name", "metadata.namespace")
# What the API server refuses to change in place.
IMMUTABLE: Mapping[str, tuple[str, ...]] = {
    "StorageClass": (
        "provisioner",
        "parameters",
        "reclaimPolicy",
        "volumeBindingMode",
        "allowedTopologies",
    ),
    "VolumeAttributesClass": ("driverName", "parameters"),
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "Secret": ("type",),
    "Deployment": ("spec.selector",),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.storageClassName", "spec.volumeName"),
}


def _random_name(resource: Resource) -> str:
    return f"{resource.name.lower()}-{secrets.token_hex(4)}"


class KubernetesProvider:
    """Objects and Helm releases of the cluster that the provider's kubeconfig names."""

    package = "kubernetes"
    version = version("pulumi-kubernetes")

    def __init__(self) -> None:
        self._login: Login | None = None
        self._objects = Objects(lambda: self._login_or_fail.api)

    def configure(self, settings: Properties) -> None:
        kubeconfig = settings.get("kubeconfig")
        namespace = settings.get("namespace") or "default"
        self._objects = Objects(lambda: self._login_or_fail.api, namespace)
        if isinstance(kubeconfig, UnknownValue):
            return  # a preview before the cluster exists
        if not kubeconfig:
            raise StillwaterError(
                "The Kubernetes provider has no kubeconfig; give it one. The user's own "
                "~/.kube/config is never used, since it may name a cluster of theirs."
            )
        self._login = Login(read_kubeconfig(kubeconfig))

    def check(
        self, resource: Resource, old_inputs: Properties, new_inputs: Properties
    ) -> Properties:
        if resource.type == RELEASE_TYPE:
            return _checked_release(resource, old_inputs, new_inputs)
        return _checked_object(resource, old_inputs, new_inputs)

    def diff(self, existing: Existing, new_inputs: Properties) -> UpdateDifference:
        old = existing.inputs
        replacing = _replacing(existing.resource, old, new_inputs)
        found = changes(old, new_inputs, replacing=replacing)
        renamed = any(
            change.replaces and change.path in ("name", "namespace", *IDENTITY) for change in found
        )
        # Two objects of one name cannot stand side by side, not even for a moment.
        return UpdateDifference(found, delete_before_replace=not renamed)

    def create(self, resource: Resource, inputs: Properties) -> State:
        if resource.type == RELEASE_TYPE:
            return State(HelmRelease.of(inputs).id, self._install(inputs))
        live = self._objects.apply(inputs)
        return State(identifier(live), {**inputs, **live})

    def preview_create(self, resource: Resource, inputs: Properties) -> State:
        self._judge(resource, inputs)
        return State("", inputs)

    def read(self, existing: Existing) -> State | None:
        if existing.resource.type == RELEASE_TYPE:
            namespace, _, name = existing.id.rpartition("/")
            status = self._releases.status(HelmRelease(namespace or "default", name))
            if status is None:
                return None
            return State(existing.id, {**existing.outputs, "status": status}, existing.inputs)
        live = self._objects.read(target(existing.inputs, existing.id))
        if live is None:
            return None
        return State(existing.id, {**existing.inputs, **live}, existing.inputs)

    def update(self, existing: Existing, new_inputs: Properties) -> Properties:
        if existing.resource.type == RELEASE_TYPE:
            return self._install(new_inputs)
        wanted = self._leaving(existing, new_inputs)
        return {**new_inputs, **self._objects.apply(wanted)}

    def _leaving(self, existing: Existing, inputs: Properties) -> Properties:
        """Return inputs with what the program ignores as it is by now: it is another's to change.

        The engine's old inputs, applied again, would undo what the other has done since.
        """
        if not existing.ignored:
            return inputs
        live = self._objects.read(target(existing.inputs, existing.id))
        for path in existing.ignored:
            inputs = with_value_of(inputs, live or {}, path.split("."))
        return inputs

    def preview_update(self, existing: Existing, new_inputs: Properties) -> Properties:
        self._judge(existing.resource, new_inputs)
        return {**existing.outputs, **new_inputs}

    def delete(self, existing: Existing) -> None:
        if existing.resource.type == RELEASE_TYPE:
            namespace, _, name = existing.id.rpartition("/")
            self._releases.uninstall(HelmRelease(namespace or "default", name))
            return
        self._objects.delete(target(existing.inputs, existing.id), existing.inputs)

    def invoke(self, token: str, arguments: Properties) -> Properties:
        if token != TEMPLATE:
            raise StillwaterError(f"The twin's Kubernetes provider has no function {token}.")
        return {"result": self._releases.template(json.loads(arguments["jsonOpts"]))}

    def _judge(self, resource: Resource, inputs: Properties) -> None:
        if self._login is None or has_unknown(inputs):
            return
        if resource.type == RELEASE_TYPE:
            self._releases.render(inputs)
        else:
            self._objects.dry_run(inputs)

    def _install(self, inputs: Properties) -> Properties:
        status = self._releases.install(inputs)
        return {**inputs, "status": status}

    @property
    def _login_or_fail(self) -> Login:
        if self._login is None:
            raise StillwaterError(
                "The Kubernetes provider's kubeconfig is not known; the cluster it names must "
                "exist before objects can be made in it."
            )
        return self._login

    @property
    def _releases(self) -> Releases:
        return Releases(self._login_or_fail)


def with_value_of(inputs: Properties, live: Mapping[str, Any], path: Sequence[str]) -> Properties:
    """Return inputs with the value that stands at a path of a live object, if one does."""
    name, *rest = path
    if name not in live:
        return inputs
    if not rest:
        return {**inputs, name: live[name]}
    below = inputs.get(name)
    return {
        **inputs,
        name: with_value_of(below if isinstance(below, dict) else {}, live[name], rest),
    }


def _checked_release(
    resource: Resource, old_inputs: Properties, new_inputs: Properties
) -> Properties:
    if not new_inputs.get("chart"):
        raise CheckFailed("chart", "A Helm release needs a chart: a folder or a reference.")
    name = new_inputs.get("name") or old_inputs.get("name") or _random_name(resource)
    return {**new_inputs, "name": name, "namespace": new_inputs.get("namespace") or "default"}


def _checked_object(
    resource: Resource, old_inputs: Properties, new_inputs: Properties
) -> Properties:
    for required in ("apiVersion", "kind"):
        if not new_inputs.get(required):
            raise CheckFailed(required, f"{resource.type} {resource.name} has no {required}.")
    metadata: Any = new_inputs.get("metadata") or {}
    if isinstance(metadata, UnknownValue):
        return new_inputs
    if not metadata.get("name"):
        old: Mapping[str, Any] = old_inputs.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), AUTONAMED: "true"}
        name = old.get("name") or _random_name(resource)
        metadata = {**metadata, "name": name, "annotations": annotations}
    checked = {**new_inputs, "metadata": metadata}
    if not has_unknown(metadata):
        wanted_condition(checked)
    return checked


def _group(api_version: object) -> str:
    text = str(api_version)
    return text.partition("/")[0] if "/" in text else ""


def _replacing(resource: Resource, old: Properties, new: Properties) -> Collection[str]:
    if resource.type == RELEASE_TYPE:
        return ("name", "namespace")
    paths = [*IDENTITY, *IMMUTABLE.get(str(new.get("kind")), ())]
    if _group(old.get("apiVersion")) != _group(new.get("apiVersion")):
        paths.append("apiVersion")
    return paths


if __name__ == "__main__":
    main(KubernetesProvider())
