"""core.events on every announcement that is kept, and on prose about zones."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events import (
    Advisory,
    GroupChange,
    GroupNotice,
    Ignored,
    Interruption,
    Kind,
    VolumeChange,
    VolumeNotice,
    ZoneNotice,
    ZoneSource,
    parse,
)
from core.events.instances import NOTICES
from core.events.prose import says_resolved, zone_words
from tests.announcements import BODIES, load
from tests.every_case import every_case

ROOT = Path(__file__).resolve().parents[4]
GROUP = "test-orders-broker-a"
# Name of the announcement -> what it says, in a word per result.
TABLE: dict[str, list[object]] = {
    "asg-terminate": [Kind.ASG_TERMINATE],
    "asg-terminate-2020": [Kind.ASG_TERMINATE],
    "asg-terminate-direct": [Kind.ASG_TERMINATE],
    "asg-terminate-through-sns": [Kind.ASG_TERMINATE],
    "asg-to-warm-pool": ["advisory"],
    "asg-replace-root-volume": ["advisory"],
    "asg-test-notification": [None],
    "asg-launch-hook": [Kind.ASG_LAUNCH],
    "group-launched": [GroupChange.LAUNCHED],
    "group-launch-failed": [GroupChange.LAUNCH_FAILED],
    "group-terminated": [GroupChange.TERMINATED],
    "group-terminate-failed": [GroupChange.TERMINATE_FAILED],
    "refresh-started": [GroupChange.REFRESH_STARTED],
    "refresh-checkpoint": [GroupChange.REFRESH_CHECKPOINT],
    "refresh-succeeded": [GroupChange.REFRESH_SUCCEEDED],
    "refresh-failed": [GroupChange.REFRESH_FAILED],
    "refresh-cancelled": [GroupChange.REFRESH_CANCELLED],
    "refresh-rollback-started": [GroupChange.ROLLBACK_STARTED],
    "refresh-rollback-succeeded": [GroupChange.ROLLBACK_SUCCEEDED],
    "refresh-rollback-failed": [GroupChange.ROLLBACK_FAILED],
    "spot": [Kind.SPOT_INTERRUPTION],
    "rebalance": [Kind.REBALANCE],
    "capacity-reservation": [Kind.CAPACITY_RESERVATION],
    "capacity-reservation-listed": [Kind.CAPACITY_RESERVATION],
    "state-pending": [None],
    "state-running": [None],
    "state-stopping": [Kind.STATE_CHANGE],
    "state-stopped": [Kind.STATE_CHANGE],
    "state-shutting-down": [Kind.STATE_CHANGE],
    "state-terminated": [Kind.STATE_CHANGE],
    "health-2018": [Kind.SCHEDULED_CHANGE],
    "health-reboot": [Kind.SCHEDULED_CHANGE],
    "health-retirement": [Kind.SCHEDULED_CHANGE],
    "health-retirement-backup": [Kind.SCHEDULED_CHANGE],
    "health-retirement-closed": [Kind.SCHEDULED_CHANGE],
    "health-retirement-moved": [Kind.SCHEDULED_CHANGE],
    "health-retirement-page-2": [Kind.SCHEDULED_CHANGE] * 2,
    "health-retirement-three": [Kind.SCHEDULED_CHANGE] * 3,
    "health-instance-store": [Kind.INSTANCE_STORE_DEGRADED],
    "health-instance-issue": [Kind.INSTANCE_ISSUE],
    "health-volume-lost": [VolumeChange.LOST],
    "health-volume-degraded": [VolumeChange.DEGRADED] * 2,
    "health-operational-zone": [ZoneSource.HEALTH_ISSUE],
    "health-operational-zone-over": [ZoneSource.HEALTH_ISSUE],
    "health-operational-region": [ZoneSource.HEALTH_ISSUE],
    "health-other-service": [ZoneSource.HEALTH_ISSUE],
    "volume-attach-failed": [VolumeChange.ATTACH_FAILED],
    "volume-reattach-failed": [VolumeChange.ATTACH_FAILED],
    "volume-create-failed": [VolumeChange.CREATE_FAILED],
    "volume-created": [None],
    "volume-deleted": [None],
    "volume-initialized": [None],
    "volume-detach-cloudtrail": [None],
    "volume-modify-optimizing": [VolumeChange.MODIFICATION_STARTED],
    "volume-modify-completed": [VolumeChange.MODIFICATION_COMPLETED],
    "volume-modify-failed": [VolumeChange.MODIFICATION_FAILED],
    "zone-autoshift": [ZoneSource.AUTOSHIFT],
    "zone-autoshift-observer": [ZoneSource.AUTOSHIFT],
    "zone-autoshift-completed": [ZoneSource.AUTOSHIFT],
    "zone-fis-autoshift": [ZoneSource.AUTOSHIFT],
    "zone-fis-autoshift-completed": [ZoneSource.AUTOSHIFT],
    "zone-fis-autoshift-canceled": [ZoneSource.AUTOSHIFT],
    "zone-manual-shift-started": [ZoneSource.MANUAL_SHIFT],
    "zone-manual-shift-updated": [ZoneSource.MANUAL_SHIFT],
    "zone-manual-shift-canceled": [ZoneSource.MANUAL_SHIFT],
    "zone-practice-started": [ZoneSource.PRACTICE_RUN],
    "zone-practice-succeeded": [ZoneSource.PRACTICE_RUN],
    "zone-practice-interrupted": [ZoneSource.PRACTICE_RUN],
    "zone-practice-failed": [ZoneSource.PRACTICE_RUN],
    "alarm-stalled-volume": [VolumeChange.STALLED_IO],
    "alarm-stalled-volume-ok": [VolumeChange.STALLED_IO],
    "alarm-stalled-instance": [Kind.VOLUME_PROBLEM],
    "alarm-no-data": [None],
    "alarm-of-another-metric": [None],
}


def said(found: object) -> object:
    match found:
        case Interruption():
            return found.kind
        case VolumeNotice():
            return found.change
        case ZoneNotice():
            return found.source
        case GroupNotice():
            return found.what
        case Advisory():
            return "advisory"
        case _:
            return None


def expected(name: str) -> list[object]:
    """Return what the table has, or the kind of a notice of EC2's that has no row there."""
    return TABLE.get(name) or [NOTICES[json.loads(BODIES[name])["detail-type"]].kind]


@every_case("name", sorted(BODIES))
def test_an_announcement_says_what_it_says(name: str) -> None:
    assert [said(found) for found in parse(BODIES[name])] == expected(name)


@every_case("name", sorted(BODIES))
def test_what_is_ignored_has_a_reason_and_keeps_its_body(name: str) -> None:
    for found in parse(BODIES[name]):
        if isinstance(found, Ignored):
            assert found.reason.endswith(".")
            assert found.body == BODIES[name]


def interruption(name: str) -> Interruption:
    (found,) = parse(BODIES[name])
    assert isinstance(found, Interruption)
    return found


def volume(event: dict[str, Any]) -> VolumeNotice:
    (found,) = parse(json.dumps(event))
    assert isinstance(found, VolumeNotice)
    return found


def zone(name: str) -> ZoneNotice:
    (found,) = parse(BODIES[name])
    assert isinstance(found, ZoneNotice)
    return found


def group(name: str) -> GroupNotice:
    (found,) = parse(BODIES[name])
    assert isinstance(found, GroupNotice)
    return found


def test_a_launch_that_failed_names_its_zone_and_awss_reason_and_no_instance() -> None:
    notice = group("group-launch-failed")
    assert (notice.group, notice.instance_id, notice.zone) == (GROUP, None, "us-east-1a")
    assert notice.cause.startswith("We currently do not have sufficient r7g.xlarge capacity")


def test_two_attempts_to_launch_are_two_announcements() -> None:
    event = load("group-launch-failed")
    event["detail"]["ActivityId"] = "another"
    (again,) = parse(json.dumps(event))
    assert isinstance(again, GroupNotice)
    assert again.dedupe_key != group("group-launch-failed").dedupe_key


def test_a_refresh_is_told_by_its_id_and_each_checkpoint_apart() -> None:
    started = group("refresh-started")
    assert started.activity_id == "c613620e-07e2-4ed2-a9e2-ef8258911ade"
    event = load("refresh-checkpoint")
    event["detail"]["CheckpointPercentage"] = "100"
    (later,) = parse(json.dumps(event))
    assert isinstance(later, GroupNotice)
    assert later.dedupe_key != group("refresh-checkpoint").dedupe_key


def test_a_backup_copy_is_the_same_announcement() -> None:
    copy, original = interruption("health-retirement-backup"), interruption("health-retirement")
    assert copy.dedupe_key == original.dedupe_key
    assert copy.region == original.region == "us-east-1"


def test_a_moved_start_is_news_with_its_own_date() -> None:
    moved, before = interruption("health-retirement-moved"), interruption("health-retirement")
    assert moved.dedupe_key != before.dedupe_key
    assert moved.due_at is not None
    assert before.due_at is not None
    assert moved.due_at - before.due_at == 3 * 86_400
    assert (moved.updated_at or 0) > (before.updated_at or 0)


def test_the_pages_of_one_communication_name_different_instances() -> None:
    event = load("health-retirement-page-2")
    first = {
        found.dedupe_key
        for body in (json.dumps(event), BODIES["health-retirement-three"])
        for found in parse(body)
        if isinstance(found, Interruption)
    }
    assert len(first) == 5


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("AWS_EBS_VOLUME_LOST", VolumeChange.LOST),
        ("AWS_EBS_DEGRADED_EBS_VOLUME_PERFORMANCE", VolumeChange.DEGRADED),
        ("AWS_EBS_STALLED_IO", VolumeChange.STALLED_IO),
        ("AWS_EBS_SOMETHING_NEW", VolumeChange.IMPAIRED),
    ],
)
def test_an_issue_of_a_volume_is_told_by_its_code(code: str, change: VolumeChange) -> None:
    event = load("health-volume-lost")
    event["detail"]["eventTypeCode"] = code
    assert volume(event).change is change
    assert volume(event).change.harmful


def test_a_failed_attachment_gives_awss_cause() -> None:
    notice = volume(load("volume-attach-failed"))
    assert notice.volume_id == "vol-03a55cf56513fa1b6"
    assert notice.cause.endswith("is pending deletion.")


def test_a_modification_harms_nothing() -> None:
    assert not volume(load("volume-modify-completed")).change.harmful


@every_case(
    ("name", "over"),
    [
        ("zone-autoshift", False),
        ("zone-autoshift-completed", True),
        ("zone-fis-autoshift-canceled", True),
        ("zone-manual-shift-updated", False),
        ("zone-practice-interrupted", True),
        ("health-operational-zone", False),
        ("health-operational-zone-over", True),
    ],
)
def test_a_zone_is_named_by_its_id_and_its_beginning_and_end_told(name: str, over: bool) -> None:
    notice = zone(name)
    assert ({*notice.zone_ids, *notice.healthy_ids}, notice.over) == ({"use1-az4"}, over)


def test_a_manual_shift_ends_by_itself_after_three_days_at_most() -> None:
    notice = zone("zone-manual-shift-started")
    assert notice.occurred_at is not None
    assert notice.until == notice.occurred_at + 3 * 86_400
    assert zone("zone-autoshift").until is None
    assert zone("zone-manual-shift-canceled").until is None


def test_an_observers_word_is_about_no_resource() -> None:
    assert zone("zone-autoshift-observer").resource is None
    assert zone("zone-autoshift").resource == "TEST-EXAMPLE-2023-11-16-23-28-11-5"


@pytest.mark.parametrize("place", ["us-east-1a", "use1-az", "use1-az4 and more", "", 7])
def test_what_is_no_zone_id_is_never_guessed_at(place: object) -> None:
    event = load("zone-autoshift")
    event["detail"]["metadata"]["awayFrom"] = place
    (found,) = parse(json.dumps(event))
    assert isinstance(found, Ignored)


def test_an_issue_that_names_two_zones_is_one_notice_of_both() -> None:
    event = load("health-operational-zone")
    event["detail"]["eventMetadata"] = {"affected": "use1-az4, USE1-AZ6"}
    (found,) = parse(json.dumps(event))
    assert isinstance(found, ZoneNotice)
    assert found.zone_ids == ("use1-az4", "use1-az6")


@pytest.mark.parametrize(("service", "kind"), [("EC2", Advisory), ("RDS", ZoneNotice)])
def test_an_issue_of_another_thing_of_ours_is_told(service: str, kind: type[object]) -> None:
    event = load("health-instance-issue")
    event["detail"] |= {"service": service, "affectedEntities": [{"entityValue": "eni-0123"}]}
    (found,) = parse(json.dumps(event))
    assert isinstance(found, kind)


def test_an_alarm_that_is_ok_again_ends_the_problem() -> None:
    assert not volume(load("alarm-stalled-volume")).over
    assert volume(load("alarm-stalled-volume-ok")).over


@pytest.mark.parametrize(("size", "read"), [(900_000, True), (1_100_000, False)])
def test_a_body_is_read_as_far_as_sqs_carries_and_kept_beyond(size: int, *, read: bool) -> None:
    event = load("health-retirement")
    event["detail"]["eventDescription"][0]["latestDescription"] = "y" * size
    (found,) = parse(json.dumps(event))
    assert isinstance(found, Interruption if read else Advisory)
    if isinstance(found, Advisory):
        assert "1048576 at most" in found.sentence
        assert len(found.body) < 20_000


def test_a_capacity_block_that_ends_is_told_and_names_its_reservation() -> None:
    event = load("capacity-reservation") | {
        "detail-type": "Capacity Block Expiration Warning",
        "detail": {"capacity-reservation-id": "cr-0123", "end-date": "2026-11-20T12:00:00Z"},
    }
    (found,) = parse(json.dumps(event))
    assert isinstance(found, Advisory)
    assert "cr-0123" in found.sentence


instance_ids = st.integers(0, 2**32).map(lambda n: f"i-{n:08x}")
as_arn: Callable[[str], str] = "arn:aws:ec2:us-east-1:123456789012:instance/{}".format


@given(st.lists(st.tuples(instance_ids, st.booleans()), min_size=1, max_size=60))
def test_one_result_per_entity_however_it_is_written(named: list[tuple[str, bool]]) -> None:
    event = load("health-retirement")
    event["detail"]["affectedEntities"] = [
        {"entityValue": as_arn(id_) if arn else id_} for id_, arn in named
    ]
    found = [f for f in parse(json.dumps(event)) if isinstance(f, Interruption)]
    assert {f.instance_id for f in found} == {id_ for id_, _ in named}
    assert len({f.dedupe_key for f in found}) == len({id_ for id_, _ in named})


@given(st.sampled_from(sorted(BODIES)), st.uuids(), st.sampled_from(["us-west-2", "us-east-1"]))
def test_a_health_copy_has_its_originals_keys(name: str, event_id: object, region: str) -> None:
    event = load(name)
    if event.get("source") != "aws.health":
        return
    copy = {**event, "id": str(event_id), "region": region}
    if "communicationId" in event["detail"]:
        keys = [getattr(f, "dedupe_key", None) for f in parse(json.dumps(copy))]
        assert keys == [getattr(f, "dedupe_key", None) for f in parse(BODIES[name])]


@pytest.mark.parametrize("words", [Kind, VolumeChange, ZoneSource, GroupChange])
def test_the_reference_says_what_becomes_of_everything_that_can_be_read(words: Any) -> None:
    page = (ROOT / "docs/reference/announcements.md").read_text()
    assert [word.value for word in words if f"`{word.value}`" not in page] == []


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
