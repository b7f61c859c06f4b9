"""Gives a container what its pod's spec says: variables, a command line, files.

Containers are processes that share this machine's files, so a mount is a mapping from the path in
the spec to a directory here. Only a program with a fixed path in it, such as a client that reads
in-cluster credentials, is given a file system of its own.

Source: the pod API and its expansion rules (kubernetes/third_party/forked/golang/expansion).
"""

from __future__ import annotations

import base64
import functools
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.ground.errors import MissingPrerequisite, StillwaterError
from local.kubernetes.client import Api, Object, find
from local.place import Place

REFERENCE = re.compile(r"\$(?:\$|\(([^()]*)\))")

# (kind, name) -> the object in the pod's namespace, or None when there is none.
Lookup = Callable[[str, str], Object | None]


class MissingReference(StillwaterError):
    """A ConfigMap, Secret or key that a container needs does not exist (yet)."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; $$ stands for one $, unknown names stay as written."""

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else variables.get(name, match.group(0))

    return REFERENCE.sub(replacement, text)


def command_line(container: Object, variables: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return a container's (command, args) with references replaced."""
    return (
        [expand(part, variables) for part in container.get("command") or []],
        [expand(part, variables) for part in container.get("args") or []],
    )


def field_value(pod: Object, path: str, *, pod_ip: str, host_ip: str) -> str:
    """Return the value of a fieldRef."""
    match path:
        case "status.podIP":
            return pod_ip
        case "status.hostIP":
            return host_ip
        case "metadata.name" | "metadata.namespace" | "metadata.uid" | "spec.nodeName":
            section, _, name = path.partition(".")
            return str(pod[section][name])
    raise MissingReference(f"The pod refers to its field {path}, which the twin does not know.")


def data_of(item: Object) -> dict[str, bytes]:
    """Return the entries of a ConfigMap or Secret."""
    if item.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in (item.get("data") or {}).items()}
    return {key: str(value).encode() for key, value in (item.get("data") or {}).items()}


def resolve(
    pod: Object,
    container: Object,
    *,
    pod_ip: str,
    host_ip: str,
    base: Mapping[str, str],
    lookup: Lookup,
) -> dict[str, str]:
    """Return a container's environment: `base`, then env, later ones winning.

    Raises MissingReference for what must exist and does not.
    """
    variables = dict(base)
    for entry in container.get("env") or []:
        value = _value(entry, pod, variables, pod_ip=pod_ip, host_ip=host_ip, lookup=lookup)
        if value is not None:
            variables[entry["name"]] = value
    return variables


def _value(
    entry: Mapping[str, Any],
    pod: Object,
    variables: Mapping[str, str],
    *,
    pod_ip: str,
    host_ip: str,
    lookup: Lookup,
) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expand(str(entry.get("value") or ""), variables)
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"], pod_ip=pod_ip, host_ip=host_ip)
    for kind, key in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if key in source:
            reference = source[key]
            found = _referred_data(kind, reference, lookup)
            if reference["key"] in found:
                return found[reference["key"]].decode()
            if reference.get("optional"):
                return None
            raise MissingReference(
                f"{kind} {reference['name']} has no key {reference['key']}, which the variable "
                f"{entry['name']} needs."
            )
    raise MissingReference(
        f"The variable {entry['name']} takes its value from {', '.join(source)}, which the twin "
        f"does not know."
    )


def _referred_data(kind: str, reference: Mapping[str, Any], lookup: Lookup) -> dict[str, bytes]:
    item = lookup(kind, reference["name"])
    if item is not None:
        return data_of({"kind": kind, **item})
    if reference.get("optional"):
        return {}
    raise MissingReference(f"{kind} {reference['name']} does not exist.")


SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"
# The kubelet asks for a new token when a fifth of its life is left, and reads ConfigMaps and
# Secrets again about once a minute.
TOKEN_RENEWAL_SHARE = 0.8
REFRESH_SECONDS = 60.0
DEFAULT_TOKEN_SECONDS = 3600

# $0 is the directory to show, the rest is the program. /var/run is a link to /run on most systems;
# the new, empty file system on it belongs to this process alone.
PRIVATE_MOUNTS = (
    'run=$(readlink -f /var/run) && exec 3<"$0" && mount -t tmpfs none "$run" && '
    'mkdir -p "$run/secrets/kubernetes.io/serviceaccount" && '
    'mount --bind "/proc/self/fd/3" "$run/secrets/kubernetes.io/serviceaccount" && '
    'exec 3<&- && exec "$@"'
)


@functools.cache
def namespace_support() -> tuple[str, ...]:
    """Return the command prefix that gives a program a mount namespace of its own.

    Raises MissingPrerequisite with what to enable where the system allows none.
    """
    probe = ["mount", "-t", "tmpfs", "none", "/run"]
    prefixes = [("unshare", "-rm"), *([("unshare", "-m")] if os.geteuid() == 0 else [])]
    if shutil.which("unshare"):
        for prefix in prefixes:
            if subprocess.run([*prefix, *probe], capture_output=True, check=False).returncode == 0:
                return prefix
    raise MissingPrerequisite(
        "The node termination handler needs a mount namespace of its own, and this system allows "
        "none (tried: " + ", ".join(" ".join(prefix) for prefix in prefixes) + "). Install "
        "util-linux if `unshare` is absent; otherwise allow unprivileged user namespaces, for "
        "example with `sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 "
        "kernel.apparmor_restrict_unprivileged_userns=0`, or run as root."
    )


def with_private_mounts(service_account: Path, argv: list[str]) -> list[str]:
    """Return a command that runs `argv` with a pod's credentials where in-cluster clients look."""
    return [*namespace_support(), "/bin/sh", "-c", PRIVATE_MOUNTS, str(service_account), *argv]


def write_if_changed(path: Path, content: bytes) -> None:
    """Replace a file in one step; a reader sees the old content or the new."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.fresh")
    fresh.write_bytes(content)
    fresh.replace(path)


class PodVolumes:
    """The volumes of one pod: below pods/<uid>/volumes, but claims in volumes/<volume id>."""

    def __init__(self, api: Api, place: Place, pod: Object) -> None:
        self._api, self._place, self._pod = api, place, pod
        self._namespace = pod["metadata"]["namespace"]
        self._root = place.path("pods", pod["metadata"]["uid"], "volumes")
        self._renew_at: dict[Path, float] = {}
        self._refresh_at = 0.0
        # Volume name in the spec -> EBS volume id; filled by claims().
        self._handles: dict[str, str] = {}

    def claims(self) -> dict[str, str] | None:
        """Return the EBS volume id of every claim by volume name, or None while one is unbound."""
        for volume in self._pod["spec"].get("volumes") or []:
            claim = volume.get("persistentVolumeClaim")
            if not claim or volume["name"] in self._handles:
                continue
            path = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims"
            bound = self._api.get(f"{path}/{claim['claimName']}")["spec"].get("volumeName")
            if not bound:
                return None
            spec = self._api.get(f"/api/v1/persistentvolumes/{bound}")["spec"]
            self._handles[volume["name"]] = spec["csi"]["volumeHandle"]
        return dict(self._handles)

    def write(self, *, pod_ip: str, host_ip: str) -> None:
        """Make every volume's directory current. Raises MissingReference for absent objects."""
        for volume in self._pod["spec"].get("volumes") or []:
            directory = self.directory(volume["name"])
            if volume["name"] in self._handles:
                # A fresh ext4 file system has it, and Kafka refuses a log directory that does.
                (directory / "lost+found").mkdir(parents=True, exist_ok=True)
                continue
            directory.mkdir(parents=True, exist_ok=True)
            if "configMap" in volume:
                source = volume["configMap"]
                self._entries(directory, "configmaps", source["name"], source)
            elif "secret" in volume:
                source = volume["secret"]
                self._entries(directory, "secrets", source["secretName"], source)
            elif "projected" in volume:
                for source in volume["projected"].get("sources") or []:
                    self._project(directory, source, pod_ip=pod_ip, host_ip=host_ip)
        self._refresh_at = time.monotonic() + REFRESH_SECONDS

    def refresh(self, *, pod_ip: str, host_ip: str) -> None:
        """Write again what may have changed, at most once a minute."""
        if time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + REFRESH_SECONDS
            self.write(pod_ip=pod_ip, host_ip=host_ip)

    def directory(self, volume_name: str) -> Path:
        handle = self._handles.get(volume_name)
        return self._place.path("volumes", handle) if handle else self._root / volume_name

    def mounts_of(self, container: Object) -> dict[str, Path]:
        """Return a container's mounts: path in the spec -> directory here."""
        found = {}
        for mount in container.get("volumeMounts") or []:
            found[mount["mountPath"]] = self.directory(mount["name"])
        return found

    def remove(self) -> None:
        """Drop what belongs to the pod alone; claims stay where they are."""
        shutil.rmtree(self._root.parent, ignore_errors=True)

    def _entries(
        self, directory: Path, resource: str, name: str, source: Mapping[str, Any]
    ) -> None:
        """Write a ConfigMap's or Secret's entries, all or those listed in `items`."""
        found = find(self._api, f"/api/v1/namespaces/{self._namespace}/{resource}/{name}")
        if found is not None:
            kind = "Secret" if resource == "secrets" else "ConfigMap"
            data = data_of({"kind": kind, **found})
        elif name == ROOT_CA_CONFIG_MAP:
            # Published by the controller-manager a moment after a namespace is made, and only
            # where it was told the authority's file.
            data = {"ca.crt": self._place.path("pki", "apiserver-ca.crt").read_bytes()}
        elif source.get("optional"):
            return
        else:
            raise MissingReference(f"The {resource[:-1]} {name} for a volume does not exist.")
        paths = {item["key"]: item["path"] for item in source.get("items") or []}
        for key, content in data.items():
            if not paths or key in paths:
                write_if_changed(directory / paths.get(key, key), content)

    def _project(
        self, directory: Path, source: Mapping[str, Any], *, pod_ip: str, host_ip: str
    ) -> None:
        if "serviceAccountToken" in source:
            self._token(directory, source["serviceAccountToken"])
        elif "configMap" in source:
            self._entries(directory, "configmaps", source["configMap"]["name"], source["configMap"])
        for item in (source.get("downwardAPI") or {}).get("items") or []:
            path = item["fieldRef"]["fieldPath"]
            value = field_value(self._pod, path, pod_ip=pod_ip, host_ip=host_ip)
            write_if_changed(directory / item["path"], value.encode())

    def _token(self, directory: Path, source: Mapping[str, Any]) -> None:
        """Ask for a ServiceAccount token bound to this pod, unless the one here is still fresh."""
        path = directory / source["path"]
        if path.exists() and time.time() < self._renew_at.get(path, 0.0):
            return
        metadata, spec = self._pod["metadata"], self._pod["spec"]
        seconds = int(source.get("expirationSeconds") or DEFAULT_TOKEN_SECONDS)
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [source["audience"]] if source.get("audience") else [],
                "expirationSeconds": seconds,
                "boundObjectRef": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
            },
        }
        account = spec.get("serviceAccountName") or "default"
        answer = self._api.post(
            f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token", request
        )
        write_if_changed(path, answer["status"]["token"].encode())
        path.chmod(0o600)
        self._renew_at[path] = time.time() + seconds * TOKEN_RENEWAL_SHARE
