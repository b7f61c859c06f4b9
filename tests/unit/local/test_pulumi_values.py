"""Property values between the engine and plain Python, and the differences between two of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.pulumi.provider import ChangeKind, changes
from local.values import (
    ARCHIVE_SIGNATURE,
    OUTPUT_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE_KEY,
    UNKNOWN,
    Asset,
    from_struct,
    has_unknown,
    to_struct,
    without_assets,
)

UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
ARCHIVE = Asset(is_archive=True, sha256="ab12", content={"path": "/code"})

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcd", max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def _back(value: Any) -> Any:
    return from_struct(to_struct({"it": value}))["it"]


@given(plain)
def test_a_plain_value_survives_the_engine(value: Any) -> None:
    assert _back(value) == value


def test_whole_numbers_come_back_as_integers_and_others_as_they_are() -> None:
    assert repr(_back([3.0, 2.5])) == "[3, 2.5]"


def test_an_archive_keeps_its_hash_and_path() -> None:
    back = _back(ARCHIVE)
    assert (back, back.sha256, back.content) == (ARCHIVE, "ab12", {"path": "/code"})


def test_archives_with_one_hash_are_equal_wherever_they_lie() -> None:
    elsewhere = Asset(is_archive=True, sha256="ab12", content={"path": "/elsewhere"})
    other = Asset(is_archive=True, sha256="cd34", content={"path": "/code"})
    assert elsewhere == ARCHIVE
    assert other != ARCHIVE


def test_secrets_and_outputs_are_opened() -> None:
    marked = {
        "password": {SIGNATURE_KEY: SECRET_SIGNATURE, "value": "x"},
        "known": {SIGNATURE_KEY: OUTPUT_SIGNATURE, "value": 3, "dependencies": ["urn"]},
        "later": {SIGNATURE_KEY: OUTPUT_SIGNATURE},
    }
    assert _back(marked) == {"password": "x", "known": 3, "later": UNKNOWN}


def test_an_unknown_is_told_from_text_and_found_at_any_depth() -> None:
    value = _back({"a": [{"b": UNKNOWN_TEXT}]})
    assert value == {"a": [{"b": UNKNOWN}]}
    assert has_unknown(value)
    assert not has_unknown({"a": [{"b": "text"}]})
    assert to_struct({"x": UNKNOWN}).fields["x"].string_value == UNKNOWN_TEXT


def test_outputs_hold_an_archive_as_its_hash_alone() -> None:
    assert without_assets({"code": ARCHIVE, "list": [ARCHIVE]}) == {
        "code": "sha256:ab12",
        "list": ["sha256:ab12"],
    }
    assert ARCHIVE_SIGNATURE not in str(to_struct(without_assets({"code": ARCHIVE})))


@given(plain)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert changes({"it": value}, {"it": value}) == ()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {"a": 1}, [("a", ChangeKind.ADD)], id="added"),
        pytest.param({"a": 1}, {}, [("a", ChangeKind.DELETE)], id="removed"),
        pytest.param({"a": None}, {}, [], id="null equals missing"),
        pytest.param({"a": 1}, {"a": 2}, [("a", ChangeKind.UPDATE)], id="changed"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, [("a.b", ChangeKind.UPDATE)], id="nested"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, [("a[1]", ChangeKind.ADD)], id="longer list"),
        pytest.param(
            {"tags": {"kubernetes.io/x": "1"}},
            {"tags": {"kubernetes.io/x": "2"}},
            [('tags["kubernetes.io/x"]', ChangeKind.UPDATE)],
            id="quoted key",
        ),
        pytest.param({"a": "x"}, {"a": UNKNOWN}, [("a", ChangeKind.UPDATE)], id="not known yet"),
    ],
)
def test_each_change_is_named_by_its_path(
    old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, ChangeKind]]
) -> None:
    assert [(change.path, change.kind) for change in changes(old, new)] == expected


def test_a_change_replaces_only_at_or_below_the_properties_named_for_it() -> None:
    old = {"name": "a", "names": "a", "vpc": {"id": 1, "x": 1}, "list": [1]}
    new = {"name": "b", "names": "b", "vpc": {"id": 2, "x": 2}, "list": [2]}
    found = changes(old, new, replacing=["name", "vpc.id", "list"])
    assert {change.path for change in found if change.replaces} == {"name", "vpc.id", "list[0]"}
    assert {change.top for change in found} == {"name", "names", "vpc", "list"}
