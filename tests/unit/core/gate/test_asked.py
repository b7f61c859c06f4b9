"""An AdmissionReview is read as the API server writes it, and answered as drainers read it."""

from typing import Any

import pytest

from core.gate import GateAnswer, Wish, asked_in, review_of
from core.ground.errors import InvalidInput
from tests.every_case import every_case

DELETED = {"operation": "DELETE", "subResource": ""}


def review(**changed: Any) -> dict[str, Any]:
    request = {
        "uid": "7d2e",
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "name": "orders-broker-a-10",
        "namespace": "kafka",
        "userInfo": {"username": "ada", "groups": ["system:masters"]},
        "object": {"kind": "Eviction", "apiVersion": "policy/v1"},
        "oldObject": None,
        "dryRun": False,
    }
    return {"kind": "AdmissionReview", "request": {**request, **changed}}


def test_an_eviction_names_its_pod_and_who_wants_it() -> None:
    asked = asked_in(review())
    assert (asked.wish, asked.name, asked.namespace) == (Wish.EVICT, "orders-broker-a-10", "kafka")
    assert (asked.username, asked.groups) == ("ada", frozenset({"system:masters"}))
    assert not asked.dry_run


@pytest.mark.parametrize(
    ("changed", "wish"),
    [
        (DELETED, Wish.DELETE_POD),
        ({**DELETED, "resource": {"resource": "nodes"}}, Wish.DELETE_NODE),
        ({"operation": "UPDATE", "subResource": ""}, Wish.OTHER),
        ({"resource": {"resource": "services"}}, Wish.OTHER),
    ],
)
def test_what_is_wanted_is_told_by_call_and_resource(changed: dict[str, Any], wish: Wish) -> None:
    assert asked_in(review(**changed)).wish is wish


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({}, None),
        ({"object": {"deleteOptions": {"gracePeriodSeconds": 0}}}, 0.0),
        ({**DELETED, "options": {"kind": "DeleteOptions", "gracePeriodSeconds": 5}}, 5.0),
        ({**DELETED, "options": None}, None),
        ({**DELETED, "options": {"gracePeriodSeconds": None}}, None),
    ],
)
def test_the_time_to_stop_in_is_read(changed: dict[str, Any], seconds: float | None) -> None:
    assert asked_in(review(**changed)).grace_seconds == seconds


@pytest.mark.parametrize(
    "changed", [{"dryRun": True}, {"object": {"deleteOptions": {"dryRun": ["All"]}}}]
)
def test_a_rehearsal_is_known_as_one(changed: dict[str, Any]) -> None:
    assert asked_in(review(**changed)).dry_run


@every_case(
    "said",
    [
        None,
        [],
        {},
        {"request": "no"},
        review(uid=""),
        review(uid=7),
        review(userInfo=None),
        review(resource="pods"),
    ],
)
def test_what_is_no_review_is_refused_in_a_sentence(said: object) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        asked_in(said)


def test_a_refusal_is_one_that_drainers_ask_again_after() -> None:
    answer = review_of("7d2e", GateAnswer(allowed=False, reason="Not yet."))["response"]
    assert (answer["uid"], answer["allowed"]) == ("7d2e", False)
    assert answer["status"]["code"] == 429
    # With a number of seconds, client-go would wait and ask again without telling anybody.
    assert "details" not in answer["status"]
    assert review_of("7d2e", GateAnswer(allowed=True, reason=""))["response"]["allowed"] is True
