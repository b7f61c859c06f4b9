"""Reads other people's kubeconfigs into an Api: contexts by name, and every usual kind of user.

As kubectl does: KUBECONFIG may name several files, of which the first that has a name wins, and
paths are relative to the file they stand in. What cannot be used is said in a sentence.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from core.ground.errors import StillwaterError, one_line, passed_on
from core.ground.fields import part
from infra.eks.api import Api

PLUGIN_SECONDS = 60
# A token this close to its end is asked for again.
EXPIRY_MARGIN = timedelta(seconds=60)
CREDENTIAL_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
ANOTHER = "correct it, or name another with --kubeconfig"
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Placed:
    """An entry of a kubeconfig, and the folder its paths start from."""

    entry: Entry
    folder: Path


def files(given: Path | None, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the kubeconfigs to read: the one given, else KUBECONFIG's, else the usual one."""
    if given is not None:
        return [given]
    listed = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    return listed or [Path.home() / ".kube" / "config"]


def connect(paths: Sequence[Path], context: str | None = None) -> tuple[str, Api]:
    """Return the context's name and a client for it; raise a sentence where there can be none."""
    documents = [(path, _document(path)) for path in paths if path.exists()]
    if not documents:
        raise StillwaterError(
            f"A kubeconfig is missing at {', '.join(map(str, paths))}; name one with --kubeconfig, "
            "or write it with `aws eks update-kubeconfig`."
        )
    name = context or next(
        (str(d["current-context"]) for _, d in documents if d.get("current-context")), None
    )
    if name is None:
        raise StillwaterError("The kubeconfig has no current context; name one with --context.")
    chosen = _find(documents, "contexts", "context", name).entry
    cluster = _find(documents, "clusters", "cluster", str(chosen.get("cluster")))
    user = _find(documents, "users", "user", str(chosen.get("user")))
    return name, _api(str(chosen.get("cluster")), cluster, str(chosen.get("user")), user)


def _document(path: Path) -> Entry:
    try:
        # An empty one is one, as kubectl has it.
        found = yaml.safe_load(path.read_text()) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise StillwaterError(
            f"{path} cannot be read as a kubeconfig: {one_line(error)}; {ANOTHER}."
        ) from None
    if not isinstance(found, dict):
        raise StillwaterError(f"{path} is not a kubeconfig: it holds no mapping; {ANOTHER}.")
    return found


def _find(documents: Sequence[tuple[Path, Entry]], kind: str, key: str, name: str) -> _Placed:
    known = []
    for path, document in documents:
        for each in document.get(kind) or ():
            if isinstance(each, dict) and each.get("name") == name:
                return _Placed(part(each.get(key)), path.parent)
            if isinstance(each, dict):
                known.append(str(each.get("name")))
    raise StillwaterError(
        f"The kubeconfig has no {key} {name!r}; it has {', '.join(sorted(known)) or 'none'}."
    )


def _api(cluster_name: str, cluster: _Placed, user_name: str, user: _Placed) -> Api:
    server = cluster.entry.get("server")
    if not server or not str(server).startswith("https://"):
        raise StillwaterError(
            f"Cluster {cluster_name!r} of the kubeconfig has server {server!r}; it must begin with "
            f"https://."
        )
    if cluster.entry.get("insecure-skip-tls-verify"):
        raise StillwaterError(
            f"Cluster {cluster_name!r} of the kubeconfig sets insecure-skip-tls-verify. Any "
            "server that answers gets the credentials; set certificate-authority-data instead."
        )
    if cluster.entry.get("proxy-url"):
        raise StillwaterError(
            f"Cluster {cluster_name!r} of the kubeconfig sets proxy-url, which this client cannot "
            f"use; reach the API server without it, for example by a port forward."
        )
    authorities = _pem(cluster, "certificate-authority")
    token, certificate, key = _identity(user_name, user)
    server_name = cluster.entry.get("tls-server-name")
    try:
        with _as_files(certificate, key) as pair:
            return Api(
                str(server),
                token,
                ca_pem=authorities,
                certificate=pair,
                server_name=None if server_name is None else str(server_name),
            )
    except (ssl.SSLError, ValueError) as error:
        raise StillwaterError(
            f"A certificate of context's cluster {cluster_name!r} or user {user_name!r} cannot be "
            f"used: {one_line(error)}."
        ) from None


def _identity(name: str, user: _Placed) -> tuple[Any, str | None, str | None]:
    """Return a token and a client certificate with its key, one of which is there."""
    entry = user.entry
    for kind, remedy in (
        ("auth-provider", "replace it by an exec plugin"),
        ("username", "API servers take no passwords any more"),
    ):
        if entry.get(kind):
            raise StillwaterError(
                f"User {name!r} of the kubeconfig authenticates by {kind}, which this client "
                f"cannot use; {remedy}."
            )
    if entry.get("as"):
        raise StillwaterError(
            f"User {name!r} of the kubeconfig acts as {entry['as']!r}, which this client cannot "
            f"do; name a context of that user's own."
        )
    certificate, key = _pem(user, "client-certificate"), _pem(user, "client-key")
    if entry.get("exec"):
        plugin = _Plugin(name, _Placed(part(entry["exec"]), user.folder))
        return plugin.token if plugin.gives_token() else None, *plugin.certificate(certificate, key)
    if entry.get("tokenFile"):
        path = user.folder / str(entry["tokenFile"])
        return lambda: _text(path).strip(), certificate, key
    if entry.get("token"):
        return str(entry["token"]), certificate, key
    if certificate and key:
        return None, certificate, key
    raise StillwaterError(
        f"User {name!r} of the kubeconfig has no token, tokenFile, client certificate with its "
        "key, or exec plugin; write it again with `aws eks update-kubeconfig`."
    )


class _Plugin:
    """An exec plugin, asked once, and again when its token is about to expire."""

    def __init__(self, user: str, plugin: _Placed) -> None:
        self._user, self._plugin = user, plugin
        self._status: Entry = self._ask()

    def gives_token(self) -> bool:
        return bool(self._status.get("token"))

    def token(self) -> str:
        expires = self._status.get("expirationTimestamp")
        if expires is not None and _time(str(expires)) < datetime.now(UTC) + EXPIRY_MARGIN:
            self._status = self._ask()
        return str(self._status["token"])

    def certificate(self, pem: str | None, key: str | None) -> tuple[str | None, str | None]:
        given = self._status.get("clientCertificateData"), self._status.get("clientKeyData")
        if given[0] and given[1]:
            return str(given[0]), str(given[1])
        if not self.gives_token() and not (pem and key):
            raise StillwaterError(self._problem("gave neither a token nor a certificate"))
        return pem, key

    def _ask(self) -> Entry:
        entry = self._plugin.entry
        command, version = str(entry.get("command", "")), str(entry.get("apiVersion", ""))
        if version not in CREDENTIAL_VERSIONS:
            raise StillwaterError(
                self._problem(
                    f"speaks {version or 'no apiVersion'}, and this client "
                    f"{' and '.join(CREDENTIAL_VERSIONS)}; run `aws eks update-kubeconfig` again"
                )
            )
        # A bare name is looked up in PATH; one with a folder starts from the kubeconfig's.
        found = str(self._plugin.folder / command) if os.sep in command else command
        information = {
            "apiVersion": version,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        given = map(part, entry.get("env") or ())
        added = {str(each.get("name")): str(each.get("value") or "") for each in given}
        try:
            done = subprocess.run(
                [found, *map(str, entry.get("args") or ())],
                env={**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(information)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PLUGIN_SECONDS,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            hint = str(entry.get("installHint") or "install it, or correct the kubeconfig")
            raise StillwaterError(
                self._problem(f"does not run ({one_line(error)}); {hint}")
            ) from None
        if done.returncode:
            said = f"ended with {done.returncode}; log in again, or run it by hand until it works"
            raise StillwaterError(passed_on(self._problem(said), done.stderr))
        try:
            return dict(json.loads(done.stdout)["status"])
        except (ValueError, KeyError, TypeError):
            # What it printed may be a credential: it is shown to nobody.
            raise StillwaterError(self._problem("answered with no ExecCredential")) from None

    def _problem(self, what: str) -> str:
        command = self._plugin.entry.get("command")
        return f"The exec plugin {command!r} of the kubeconfig's user {self._user!r} {what}."


def _pem(placed: _Placed, key: str) -> str | None:
    """Return a certificate or key, from its data or from its file."""
    data = placed.entry.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise StillwaterError(f"{key}-data of the kubeconfig is not base64 text.") from None
    path = placed.entry.get(key)
    return _text(placed.folder / str(path)) if path else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise StillwaterError(
            f"{path}, which the kubeconfig names, cannot be read: {one_line(error)}."
        ) from None


@contextmanager
def _as_files(certificate: str | None, key: str | None) -> Iterator[tuple[Path, Path] | None]:
    """Give a certificate and its key as files for as long as OpenSSL reads them."""
    if not certificate or not key:
        yield None
        return
    # A temporary directory is its owner's alone.
    with tempfile.TemporaryDirectory() as folder:
        pair = Path(folder) / "certificate", Path(folder) / "key"
        pair[0].write_text(certificate)
        pair[1].write_text(key)
        yield pair


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except ValueError:
        raise StillwaterError(f"An exec plugin's token expires at {text!r}, no time.") from None
