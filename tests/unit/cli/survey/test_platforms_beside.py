"""More clusters as companies run them: Kafkas of others, ended logins, a namespace's limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    NoCredentialsError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)

from cli.survey import command
from core.checks.finding import Finding
from core.checks.table import findings
from infra.eks.api import ApiError
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.manifests import meta
from tests.unit.cli.survey.others import checks, own, surveyed
from tests.unit.cli.survey.test_not_strimzi import beside, container, of_it, pods
from tests.unit.cli.survey.worlds import World

Change = Callable[[World], object]


def one_claim(world: World) -> None:
    for each in world.beside:
        each["spec"]["volumes"] = [
            {"name": "d", "persistentVolumeClaim": {"claimName": "data-log-0"}}
        ]


def claims_go(**policy: str) -> Change:
    return lambda world: world.only("statefulsets")["spec"].update(
        persistentVolumeClaimRetentionPolicy=policy
    )


PORTS = [{"containerPort": 9092, "hostPort": 9092}]
BESIDE: dict[str, tuple[Callable[[], World], set[str]]] = {
    "Bitnami's versions of before its registry moved": (
        lambda: beside("docker.io/bitnami/kafka:3.7.0"),
        {"image-gone"},
    ),
    "the same without a registry's name": (
        lambda: beside("bitnami/kafka:3.9.0-debian-12-r4"),
        {"image-gone"},
    ),
    "where they were moved to": (lambda: beside("docker.io/bitnamilegacy/kafka:3.7.0"), set()),
    "a mirror of one's own": (lambda: beside("registry.example/bitnami/kafka:3.7.0"), set()),
    "apart by a port of the machine's": (
        lambda: changed_beside(pods(affinity=None), container(ports=PORTS)),
        set(),
    ),
    "apart by the machine's network": (
        lambda: changed_beside(
            pods(affinity=None, hostNetwork=True), container(ports=[{"containerPort": 9092}])
        ),
        set(),
    ),
    "one claim for all of them": (lambda: changed_beside(one_claim), {"claim-shared"}),
    "claims that end as it shrinks": (
        lambda: changed_beside(claims_go(whenScaled="Delete")),
        {"claims-deleted"},
    ),
    "claims that stay": (lambda: changed_beside(claims_go(whenScaled="Retain")), set()),
}


def changed_beside(*changes: Change) -> World:
    world = beside()
    for change in changes:
        change(world)
    return world


@pytest.mark.parametrize(("build", "said"), BESIDE.values(), ids=BESIDE.keys())
def test_a_kafka_of_somebody_else_is_told_what_hurts_it(
    build: Callable[[], World], said: set[str]
) -> None:
    assert of_it(surveyed(build())) == said


def coded(code: str, message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "DescribeIt")


SCP = "not authorized to perform: it with an explicit deny in a service control policy"
ENDED: dict[str, tuple[Exception, str]] = {
    "a session of SSO": (UnauthorizedSSOTokenError(), "log in"),
    "a token that is not renewed": (
        TokenRetrievalError(provider="sso", error_msg="expired"),
        "log in",
    ),
    "no credentials": (NoCredentialsError(), "log in"),
    "a token of STS's": (coded("ExpiredTokenException"), "log in"),
    "a region that is not enabled": (coded("AuthFailure"), "log in"),
    "a service control policy": (coded("AccessDenied", SCP), "service control policy"),
    "a permissions boundary": (
        coded("AccessDenied", "because no permissions boundary allows it"),
        "permissions boundary",
    ),
    "too many calls": (coded("ThrottlingException"), "wait a minute"),
    "too many calls to EC2": (coded("RequestLimitExceeded"), "wait a minute"),
    "a service that is away": (coded("ServiceUnavailable"), "wait a minute"),
    "an answer that nobody foresaw": (KeyError("Instances"), "tell the authors"),
    "a right": (coded("AccessDenied", "no identity-based policy allows it"), "the right"),
}


def refusing(error: Exception) -> list[Finding]:
    class Client:
        def __getattr__(self, _call: str) -> Any:
            def refuse(*_: Any, **__: Any) -> Any:
                raise error

            return refuse

    return findings(command.read(own(), lambda *_: Client(), None, CLUSTER))


@pytest.mark.parametrize(("error", "words"), ENDED.values(), ids=ENDED.keys())
def test_what_cannot_be_read_says_once_what_to_do_about_it(error: Exception, words: str) -> None:
    (said,) = refusing(error)
    assert said.check == "unread"
    assert words in said.remedy, said.remedy


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "log in"),
        (0, "reach its API server"),
        (403, "the right"),
        (429, "wait a minute"),
        (504, "wait a minute"),
    ],
)
def test_an_api_server_that_does_not_answer_is_told_from_one_that_refuses(
    status: int, words: str
) -> None:
    world = own()

    def refuse(*_: Any, **__: Any) -> Any:
        raise ApiError(status, "", "GET it was refused")

    world._request = refuse  # type: ignore[method-assign]
    found = [each for each in surveyed(world) if "GET it was refused" in each.evidence]
    assert found
    assert all(words in each.remedy for each in found), found


def limited(kind: str, most: str) -> Change:
    limits = [{"type": kind, "max": {"memory": most}}]
    item = {"metadata": meta("sizes", "shop-kafka"), "spec": {"limits": limits}}
    return lambda world: world.add("limitranges", item)


@pytest.mark.parametrize(
    ("kind", "most", "said"),
    [
        ("Container", "4Gi", {"limit-range"}),
        ("Pod", "4Gi", {"limit-range"}),
        ("Container", "16Gi", set()),
        ("PersistentVolumeClaim", "1Gi", set()),
    ],
)
def test_a_limit_below_what_brokers_have_keeps_them_from_coming_back(
    kind: str, most: str, said: set[str]
) -> None:
    world = own()
    limited(kind, most)(world)
    assert checks(world) == said


@pytest.mark.parametrize(
    ("region", "where"),
    [
        ("eu-north-1", "us-east-1"),
        ("us-gov-west-1", "us-gov-west-1"),
        ("us-gov-east-1", "us-gov-west-1"),
        ("cn-north-1", "cn-northwest-1"),
        (None, "us-east-1"),
    ],
)
def test_aws_health_is_asked_where_its_partition_answers(region: str | None, where: str) -> None:
    assert command.region_of("health", region) == where
    assert command.region_of("ec2", region) == region


def of_kruise() -> World:
    """The same three brokers under OpenKruise's StatefulSet, which is no kind of Kubernetes'."""
    world = beside()
    world.versions["apps.kruise.io"] = "v1beta1"
    asked, ours = world._request, world.kinds.pop("statefulsets")

    def request(method: str, path: str, *given: Any, **named: Any) -> Any:
        if path.endswith("/statefulsets"):
            return {"items": ours if "kruise" in path else [], "metadata": {}}
        return asked(method, path, *given, **named)

    world._request = request  # type: ignore[method-assign]
    return world


def test_a_kafka_of_another_kind_of_set_is_found_by_its_image() -> None:
    found = surveyed(of_kruise())
    assert "not-strimzi" in {each.check for each in found}
    assert of_it(found) == set()


def baseline(world: World) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    world.add("namespaces", {"metadata": meta("legacy", labels=labels)})


HOST_PATH = [{"name": "d", "hostPath": {"path": "/mnt"}}]
LAX: dict[str, tuple[tuple[Change, ...], set[str]]] = {
    "as it may be": ((), set()),
    "a port of the machine's": ((container(ports=PORTS),), {"pods-refused"}),
    "the machine's network": ((pods(hostNetwork=True),), {"pods-refused"}),
    "a directory of the machine's": (
        (lambda w: [each["spec"]["volumes"].extend(HOST_PATH) for each in w.beside],),
        {"pods-refused"},
    ),
    "all rights": ((container(securityContext={"privileged": True}),), {"pods-refused"}),
    "a capability more": (
        (container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),),
        {"pods-refused"},
    ),
    "a capability that it may have": (
        (container(securityContext={"capabilities": {"add": ["CHOWN"]}}),),
        set(),
    ),
}


@pytest.mark.parametrize(("changes", "said"), LAX.values(), ids=LAX.keys())
def test_what_pod_security_refuses_at_its_middle_level_does_not_come_back(
    changes: tuple[Change, ...], said: set[str]
) -> None:
    world = changed_beside(baseline, *changes)
    assert of_it(surveyed(world)) == said


def test_a_setting_that_stands_elsewhere_is_no_right_that_is_missing() -> None:
    world = own()
    for each in world.kinds["deployments"]:
        if each["metadata"]["name"] == "nth":
            (settings,) = (c["env"] for c in each["spec"]["template"]["spec"]["containers"])
            settings[:] = [{"name": "QUEUE_URL", "valueFrom": {"secretKeyRef": {}}}]
    (said,) = (each for each in surveyed(world) if each.check == "unread")
    assert "is set from another object" in said.evidence
    assert "right" not in said.remedy
    assert "read it there yourself" in said.remedy
