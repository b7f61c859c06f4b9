"""Which zones a text calls troubled and which healthy, however it puts it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events.prose import says_resolved, zone_words
from tests.every_case import every_case

A, B, C = "use1-az1", "use1-az2", "use1-az4"


@every_case(
    ("text", "troubled"),
    [
        ("Power is lost in one Availability Zone (USE1-AZ4).", [C]),
        ("We see trouble in a single zone (usw2-az1)", ["usw2-az1"]),
        ("Power is lost in use1-az4; use1-az1 and use1-az2 are operating normally.", [C]),
        ("Errors in use1-az1, use1-az2 and use1-az4.", [A, B, C]),
        ("Errors in use1-az1, az2, and az4.", [A, B, C]),
        ("Errors in use1-az1/use1-az2.", [A, B]),
        ("Errors in use1-az1 through use1-az3.", [A, B, "use1-az3"]),
        ("All zones are operating normally except use1-az4.", [C]),
        ("Zones other than use1-az4 are operating normally.", [C]),
        ("While use1-az4 is impaired, use1-az1 is operating normally.", [C]),
        ("use1-az4 is impaired, and use1-az1 is healthy.", [C]),
        ("Only use1-az4 is affected, all others (use1-az1, use1-az2) remain healthy.", [C]),
        ("use1-az4 has not yet recovered.", [C]),
        ("use1-az4 is no longer operating normally.", [C]),
        ("We expect use1-az4 to be restored soon.", [C]),
        ("Most instances in use1-az4 have recovered.", [C]),
        ("use1-az4 is recovering.", [C]),
        ("We have shifted traffic away from use1-az4.", [C]),
        ("ゾーンuse1-az4で電源障害が発生しています。", [C]),
        ("Störung in der Zone (use1-az4).", [C]),
        ("Errors in use1\u2011az4 and \uff35SE1-AZ1.", [C, A]),  # hyphens of typesetters
        # Both in one sentence.
        ("use1-az1 is not impacted by this event, which is limited to use1-az4.", [C]),
        ("use1-az1 is not impacted by an event confined to use1-az4.", [C]),
        ("Connectivity to use1-az4 is degraded, no impact on use1-az1.", [C]),
        ("use1-az4 (impaired), use1-az1 (healthy)", [C]),
        ("use1-az4 has not recovered, use1-az1 has recovered.", [C]),
        ("This does not affect use1-az1 and use1-az2. Only use1-az4 is affected.", [C]),
        ("With the exception of use1-az4, all zones (use1-az1, use1-az2) are normal.", [C]),
        ("use1-az4 lost power. The others (use1-az1) operate as normal.", [C]),
        ("use1-az4 lost power. Customers that can should fail over to use1-az1.", [C]),
        ("Launches are disabled in use1-az4; use another zone such as use1-az1.", [C]),
        # What is no zone in trouble.
        ("Error rates in use1-az4 have returned to normal levels.", []),
        ("use1-az4 is back online.", []),
        ("We no longer see errors in use1-az4.", []),
        ("The issue affecting use1-az4 and use1-az1 has been resolved.", []),
        ("use1-az4 has recovered.", []),
        ("The issue in use1-az4 has been resolved.", []),
        ("use1-az1 and use1-az2 are not affected.", []),
        ("We recommend launching instances in use1-az1.", []),
        ("Errors rise in the US-EAST-1 Region.", []),
        ("az4 is affected", []),
        ("", []),
    ],
)
def test_a_text_calls_these_zones_troubled(text: str, troubled: list[str]) -> None:
    assert list(zone_words(text).troubled) == troubled


@pytest.mark.parametrize(
    ("text", "troubled", "healthy"),
    [
        ("Power is lost in US-EAST-1A.", ["us-east-1a"], []),
        ("us-east-1a is impaired, and us-east-1b is healthy.", ["us-east-1a"], ["us-east-1b"]),
        ("Errors rise in us-east-1 and in us-west-2-lax-1a.", ["us-west-2-lax-1a"], []),
    ],
)
def test_an_accounts_own_names_of_zones_are_read_where_they_mean_something(
    text: str, troubled: list[str], healthy: list[str]
) -> None:
    words = zone_words(text, names=True)
    assert (list(words.troubled), list(words.healthy)) == (troubled, healthy)
    assert zone_words(text).troubled == ()


def test_a_zone_that_is_called_both_is_troubled() -> None:
    words = zone_words("use1-az4 has recovered. Launches in use1-az4 still fail.")
    assert (words.troubled, words.healthy) == ((C,), ())


@every_case(
    ("text", "over"),
    [
        ("Current severity level: Operating normally\n\n[RESOLVED] x", True),
        ("[RESOLVED] Loss of power", True),
        ("Errors rose. The issue has been resolved and the service is operating normally.", True),
        ("[01:00 PM] The issue is resolved.\n", True),
        ("Current severity level: Degradation\n\nWe resolved a part of it.", False),
        ("The issue has been resolved for most customers.", False),
        ("The issue has not been resolved.", False),
        ("The issue has been resolved in use1-az6 and use1-az4 remains degraded.", False),
        ("The issue has been resolved. Instances in use1-az4 are still without power.", False),
        ("We work on it. It is not [RESOLVED].", False),
        ("", False),
    ],
)
def test_the_last_word_is_told_by_its_head(text: str, over: bool) -> None:
    assert says_resolved(text) is over


@given(st.text(max_size=400))
def test_no_text_raises_and_no_zone_is_both(text: str) -> None:
    words = zone_words(text)
    assert not set(words.troubled) & set(words.healthy)


@pytest.mark.parametrize(
    "hostile",
    [
        "use1-az1 " * 8000,
        "use1-az1, az2" + ", az3" * 20_000,
        "from " * 13_000,
        "and use1-az1 is " * 4000,
    ],
    ids=lambda text: text[:12],
)
def test_a_hostile_text_is_read_in_moments(hostile: str) -> None:
    begun = time.process_time()
    zone_words(hostile)
    assert time.process_time() - begun < 2
