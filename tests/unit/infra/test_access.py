"""Kubeconfigs of other people and a busy API server: what works, and a sentence for the rest."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.ground.errors import StillwaterError
from infra.eks.access import connect, files
from infra.eks.api import TRIES, Api, ApiError
from infra.eks.cluster import kubeconfig
from tests.unit.certificates import issue

PLUGIN = "import os, sys; print(sys.argv[1] + os.environ['A'])"
# A time that is none yet, as Go writes it, but for the zone.
OVER = '{"status": {"token": "two", "expirationTimestamp": "0001-01-01T00:00:00"}}'


def written(path: Path, *, cluster: Any = None, user: Any = None, **changes: Any) -> Path:
    document = {
        "current-context": "shop",
        "contexts": [{"name": "shop", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://shop.example", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": {"token": "one"} if user is None else user}],
        **changes,
    }
    path.write_text(yaml.safe_dump({k: v for k, v in document.items() if v is not None}))
    return path


def plugin(answer: str, version: str = "client.authentication.k8s.io/v1beta1") -> dict[str, Any]:
    said = {"command": sys.executable, "args": ["-c", PLUGIN, answer], "env": [{"name": "A"}]}
    return {"exec": {"apiVersion": version, **said}}


def authorization(path: Path, context: str | None = None) -> str | None:
    _, api = connect([path], context)
    return api._headers().get("Authorization")


def test_a_token_an_exec_plugin_and_a_token_file_authenticate(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("three\n")
    path = tmp_path / "config"
    assert authorization(written(path)) == "Bearer one"
    assert authorization(written(path, user=plugin(OVER))) == "Bearer two"
    assert authorization(written(path, user={"tokenFile": "token"})) == "Bearer three"


def test_a_client_certificate_authenticates_without_a_token(tmp_path: Path) -> None:
    authority = issue("authority", None)
    ann = issue("ann", authority)
    encoded = {
        name: base64.b64encode(pem.encode()).decode()
        for name, pem in (
            ("client-certificate-data", ann.certificate_pem),
            ("client-key-data", ann.key_pem),
            ("certificate-authority-data", authority.certificate_pem),
        )
    }
    cluster = {"certificate-authority-data": encoded.pop("certificate-authority-data")}
    path = written(tmp_path / "config", cluster=cluster, user=encoded)
    assert authorization(path) is None
    other = base64.b64encode(issue("bob", authority).key_pem.encode()).decode()
    with pytest.raises(StillwaterError, match="cannot be used"):
        connect([written(path, cluster=cluster, user={**encoded, "client-key-data": other})])


def test_a_context_is_found_by_name_over_several_files_and_the_first_wins(tmp_path: Path) -> None:
    first = written(tmp_path / "first", **{"current-context": None}, users=[])
    second = written(tmp_path / "second")
    (tmp_path / "empty").touch()
    name, api = connect([first, tmp_path / "absent", tmp_path / "empty", second])
    assert (name, api.server) == ("shop", "https://shop.example")
    other = written(tmp_path / "other", cluster={"server": "https://other.example"})
    assert connect([other, second], "shop")[1].server == "https://other.example"


def test_kubeconfig_may_list_several_files() -> None:
    assert files(None, {"KUBECONFIG": "/a:/b:"}) == [Path("/a"), Path("/b")]
    assert files(Path("/c"), {"KUBECONFIG": "/a"}) == [Path("/c")]
    assert files(None, {})[0].parts[-2:] == (".kube", "config")


UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "insecure": ({"cluster": {"insecure-skip-tls-verify": True}}, "insecure-skip-tls-verify"),
    "plain": ({"cluster": {"server": "http://shop.example"}}, "https://"),
    "proxy": ({"cluster": {"proxy-url": "http://proxy"}}, "proxy-url"),
    "authorities": ({"cluster": {"certificate-authority-data": "???"}}, "not base64"),
    "authority's file": ({"cluster": {"certificate-authority": "none.pem"}}, "cannot be read"),
    "no certificate": (
        {"cluster": {"certificate-authority-data": base64.b64encode(b"x").decode()}},
        "cannot be used",
    ),
    "password": ({"user": {"username": "ann", "password": "secret"}}, "username"),
    "provider": ({"user": {"auth-provider": {"name": "gcp"}}}, "auth-provider"),
    "impersonation": ({"user": {"as": "bob", "token": "secret"}}, "bob"),
    "nothing": ({"user": {}}, "no token"),
    "words": ({"user": "ann"}, "no token"),
    "a cluster in words": ({"clusters": [{"name": "c", "cluster": "x"}]}, "https://"),
    "a plugin in words": ({"user": {"exec": "aws"}}, "no apiVersion"),
    "old plugin": ({"user": plugin("{}", "client.authentication.k8s.io/v1alpha1")}, "v1alpha1"),
    "silent plugin": ({"user": plugin("secret\udcff")}, "no ExecCredential"),
    "empty plugin": ({"user": plugin('{"status": {}}')}, "neither a token nor"),
    "missing plugin": (
        {"user": {"exec": {**plugin("")["exec"], "command": "no-such-plugin"}}},
        "does not run",
    ),
    "no context": ({"current-context": None}, "--context"),
    "other context": ({"current-context": "staging"}, "no context 'staging'; it has shop"),
    "no user": ({"users": []}, "no user 'u'"),
}


@pytest.mark.parametrize(("changes", "words"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_what_is_useless_is_a_sentence(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StillwaterError) as caught:
        connect([written(tmp_path / "config", **changes)])
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["- a list", "{", "just words", None])
def test_a_file_that_is_no_kubeconfig_is_one_sentence(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "config").write_text(text)
    with pytest.raises(StillwaterError, match=r"name (one|another) with --kubeconfig"):
        connect([tmp_path / "config"])


class Answer:
    def __init__(self, status: int, **headers: str) -> None:
        self.status = status
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}
        self.data = b'{"items": []}' if status == 200 else b'{"message": "too many requests"}'


class Pool:
    """Answers in turn, the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked = list(answers), 0

    def request(self, _method: str, _url: str, **_given: Any) -> Answer:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def api(*answers: Answer) -> tuple[Any, Pool, list[float]]:
    pauses: list[float] = []
    made: Any = Api("https://api.example", "token")
    made._pool, made._pause = Pool(*answers), pauses.append
    return made, made._pool, pauses


BUSY, PAGE = Answer(429, Retry_After="1"), Answer(200)
PAGE.data = b"<html>Log in</html>"


def test_a_listing_that_is_turned_away_is_asked_for_again_when_the_server_says() -> None:
    asked, _, pauses = api(BUSY, Answer(503, Retry_After="3600"), Answer(200))
    assert asked.get("/api/v1/nodes") == {"items": []}
    # Nobody waits for an hour in front of a terminal.
    assert pauses == [1.0, 10.0]


@pytest.mark.parametrize(
    ("method", "answer", "tries"),
    [
        ("get", PAGE, 1),
        ("get", BUSY, TRIES),
        ("get", Answer(429), 1),
        ("get", Answer(503, Retry_After="tomorrow"), 1),
        ("get", Answer(403, Retry_After="1"), 1),
        # A budget's answer to an eviction is one that the asker waits for.
        ("delete", BUSY, 1),
    ],
    ids=["a login's page", "for ever", "without a time", "an odd time", "refused", "a change"],
)
def test_what_stays_busy_is_said_with_its_status(method: str, answer: Answer, tries: int) -> None:
    asked, pool, _ = api(answer)
    with pytest.raises(ApiError) as error:
        getattr(asked, method)("/api/v1/nodes")
    assert (error.value.status, pool.asked) == (answer.status, tries)


def login(profile: str | None) -> dict[str, Any]:
    config = json.loads(kubeconfig("test-orders", "us-east-1", "https://eks", "Y2E=", profile))
    (user,) = config["users"]
    # It holds no secret.
    assert set(user["user"]) == {"exec"}
    return dict(user["user"]["exec"])


def test_a_token_is_asked_for_each_time_and_none_is_kept() -> None:
    asked = ["aws", "eks", "get-token", "--cluster-name", "test-orders"]
    assert [login(None)["command"], *login(None)["args"][:4]] == asked
    assert "env" not in login(None)


def test_the_stacks_profile_reaches_the_cluster_too() -> None:
    assert login("team")["env"] == [{"name": "AWS_PROFILE", "value": "team"}]
