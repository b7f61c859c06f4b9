"""A test beside which a role was refused fails, and says who was refused what."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.journal import FILE_NAME, Journal
from local.place import Place
from tests.integration import denials

REFUSED = {
    "principal": "test-orders-tick",
    "action": "sqs:SendMessage",
    "resource": "arn:aws:sqs:us-east-1:123456789012:orders",
    "because": "because no identity-based policy allows the sqs:SendMessage action",
}


class Item:
    """A test on a twin, with the marker it carries."""

    def __init__(self, place: Place, *meant: str, marked: bool = False) -> None:
        self.funcargs = {"twin": SimpleNamespace(place=place)}
        self._marker = SimpleNamespace(args=meant) if meant or marked else None

    def get_closest_marker(self, name: str) -> Any:
        assert name == denials.MARKER
        return self._marker


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(11, tmp_path)


def check(item: Any) -> None:
    denials.check(item)


def refuse(place: Place, **changes: object) -> None:
    Journal(place).write("iam", "iam_judged", **{**REFUSED, "allowed": False, **changes})


def test_the_action_the_resource_and_the_role_are_named_once(place: Place) -> None:
    check(Item(place))
    refuse(place)
    refuse(place)
    refuse(place, action="sqs:ReceiveMessage", allowed=True)
    with pytest.raises(AssertionError) as caught:
        check(Item(place))
    assert str(caught.value).count("\n") == 1
    assert (
        "test-orders-tick was refused sqs:SendMessage on "
        "arn:aws:sqs:us-east-1:123456789012:orders because no identity-based policy"
    ) in str(caught.value)
    check(Item(place))  # it is the last test's, not the next one's


def test_what_nobody_can_judge_is_a_denial_too(place: Place) -> None:
    Journal(place).write(
        "iam", "iam_unjudged", principal="tick", action="ssm:GetParameter", why="no entry"
    )
    with pytest.raises(AssertionError, match="tick was refused ssm:GetParameter"):
        check(Item(place))


@pytest.mark.parametrize(
    ("meant", "passes"), [((), True), (("sqs:*",), True), (("sns:*",), False)], ids=str
)
def test_a_test_that_means_it_says_which(
    place: Place, meant: tuple[str, ...], passes: bool
) -> None:
    refuse(place)
    item = Item(place, *meant, marked=True)
    if passes:
        check(item)
    else:
        with pytest.raises(AssertionError, match="sqs:SendMessage"):
            check(item)


def test_another_twin_at_the_same_place_is_read_from_its_beginning(place: Place) -> None:
    for _ in range(3):
        refuse(place, action="sns:Publish")
    with pytest.raises(AssertionError):
        check(Item(place))
    place.path(FILE_NAME).unlink()
    # Its journal may be the longer one by now.
    for _ in range(9):
        refuse(place)
    with pytest.raises(AssertionError, match="sqs:SendMessage"):
        check(Item(place))


def test_a_test_without_a_twin_is_left_alone() -> None:
    check(SimpleNamespace(funcargs={}))
