"""cli.doctor.examine: of its own machines the doctor says what `survey` says of others'."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.doctor.examine import Machines, read, surroundings_findings
from core.checks import table
from core.checks.finding import Weight
from core.ground.instances import STANDARD_QUOTA
from tests.unit.cli.doctor.test_examine import FINDING, diagnosis
from tests.unit.cli.survey.further_changes import (
    both,
    endpoints,
    nat_gone,
    routed_to,
    template_keyed,
)
from tests.unit.cli.survey.machines import own_groups
from tests.unit.cli.survey.others import surveyed
from tests.unit.cli.survey.worlds import World, bare

Change = Callable[[World], object]
OWNED = {"Key": "kubernetes.io/cluster/shop", "Value": "owned"}


def world(change: Change = lambda _: None) -> World:
    made = own_groups(bare())
    for each in made.instances.values():
        each["Tags"] = [OWNED]
    change(made)
    return made


def checks(made: World, **wanted: Any) -> dict[str, Weight]:
    asked = Machines(
        eks_cluster="shop", region="eu-north-1", **{"groups": tuple(made.groups), **wanted}
    )
    found = table.findings(read(lambda _: made, asked))
    return {each.check: each.weight for each in found}


def full(made: World) -> None:
    made.around.subnets["subnet-a"] = ("eu-north-1a", 1)


def used_up(made: World) -> None:
    made.around.limits[STANDARD_QUOTA] = 12


def extended(made: World) -> None:
    made.around.versions[0]["versionStatus"] = "EXTENDED_SUPPORT"
    made.around.versions[0]["endOfExtendedSupportDate"] = datetime(2027, 9, 1, tzinfo=UTC)


def trouble(made: World) -> None:
    made.around.events = [
        {
            "arn": "arn:e",
            "eventTypeCode": "AWS_EC2_OPERATIONAL_ISSUE",
            "service": "EC2",
            "eventTypeCategory": "issue",
            "availabilityZone": "eu-north-1a",
        }
    ]


def shifted(made: World) -> None:
    made.around.managed = [
        {
            "arn": made.around.cluster["arn"],
            "zonalShifts": [{"awayFrom": "eun1-az1", "appliedStatus": "APPLIED"}],
        }
    ]


def denied(made: World) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        error = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
        raise ClientError(error, "ListManagedResources")

    made.around.list_managed_resources = refuse  # type: ignore[method-assign]


SAID: dict[str, tuple[Change, dict[str, Weight]]] = {
    "nothing amiss": (lambda _: None, {}),
    "a subnet without addresses": (full, {"subnet-full": Weight.PRODUCER}),
    "a quota that is used up": (used_up, {"quota-machines": Weight.PRODUCER}),
    "a version in extended support": (extended, {"support-extended": Weight.ADVICE}),
    "an issue of EC2's": (trouble, {"health-issue": Weight.PRODUCER}),
    "a zone that is shifted away": (shifted, {"zone-shifted": Weight.PRODUCER}),
    "a template's key for the account alone": (
        template_keyed("arn:aws:iam::111122223333:root"),
        {"key-grant": Weight.PRODUCER},
    ),
    "a NAT gateway that is gone": (nat_gone, {"route-gone": Weight.PRODUCER}),
    "a right that is missing": (denied, {"unread": Weight.UNKNOWN}),
}


@pytest.mark.parametrize(("change", "said"), SAID.values(), ids=SAID.keys())
def test_the_doctor_says_of_the_account_what_a_survey_says(
    change: Change, said: dict[str, Weight]
) -> None:
    made = world(change)
    assert checks(made) == said
    assert set(said) <= {each.check for each in surveyed(made)}


FUNCTIONS: dict[str, tuple[Change, dict[str, Weight]]] = {
    "behind a NAT gateway": (lambda _: None, {}),
    "behind an internet gateway alone": (
        routed_to(GatewayId="igw-1"),
        {"function-endpoints": Weight.PRODUCER},
    ),
    "by endpoints alone": (
        both(routed_to(GatewayId="igw-1"), endpoints("sqs", "dynamodb", "ec2")),
        {},
    ),
    "by some of the endpoints": (
        both(routed_to(GatewayId="igw-1"), endpoints("sqs", "ec2")),
        {"function-endpoints": Weight.PRODUCER},
    ),
    "behind a NAT gateway that is gone": (
        nat_gone,
        {"route-gone": Weight.PRODUCER, "function-route": Weight.PRODUCER},
    ),
}


@pytest.mark.parametrize(("change", "said"), FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions_in_subnets_of_others_reach_what_they_call(
    change: Change, said: dict[str, Weight]
) -> None:
    made = world(change)
    asked = Machines(
        eks_cluster="shop",
        region="eu-north-1",
        groups=tuple(made.groups),
        function_subnets=("subnet-c",),
        called=("sqs", "dynamodb", "ec2"),
    )
    found = table.findings(read(lambda _: made, asked))
    assert {each.check: each.weight for each in found} == said


def test_functions_in_a_subnet_that_is_gone_are_found() -> None:
    made = world()
    asked = Machines(
        eks_cluster="shop",
        region="eu-north-1",
        groups=tuple(made.groups),
        function_subnets=("subnet-z",),
    )
    found = table.findings(read(lambda _: made, asked))
    assert [each.check for each in found] == ["function-subnets"]


def test_the_subnets_of_somebody_elses_groups_are_not_judged() -> None:
    made = world(full)
    assert checks(made, groups=[n for n in made.groups if not n.endswith("-0")]) == {}


def karpenters(made: World) -> None:
    made.groups, made.member_of = {}, {}
    full(made)
    for each in made.instances.values():
        each["Tags"] = [OWNED, {"Key": "karpenter.sh/nodepool", "Value": "kafka"}]


@pytest.mark.parametrize(
    ("pools", "said"),
    [(None, {"subnet-full"}), (("kafka",), {"subnet-full"}), (("web",), set())],
)
def test_a_node_pool_is_judged_by_the_subnets_its_machines_stand_in(
    pools: tuple[str, ...] | None, said: set[str]
) -> None:
    assert set(checks(world(karpenters), groups=(), node_pools=pools)) == said


def test_machines_that_are_not_found_are_not_known_to_have_room() -> None:
    made = world(lambda w: w.instances.clear())
    assert checks(made, groups=(), node_groups=("quorum",))["unread"] is Weight.UNKNOWN


@pytest.mark.parametrize(
    ("change", "code"), [(full, 1), (extended, 0), (denied, 2), (lambda _: None, 0)]
)
def test_what_would_stop_a_rotation_has_the_exit_code_of_a_difference(
    change: Change, code: int
) -> None:
    made = world(change)
    asked = Machines(eks_cluster="shop", region="eu-north-1", groups=tuple(made.groups))
    found = table.findings(read(lambda _: made, asked))
    assert diagnosis(found).exit_code == code
    assert diagnosis([FINDING, *found]).exit_code == max(1, code)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://ec2.eu-north-1.amazonaws.com", True),
        ("https://vpce-0a1b.ec2.eu-north-1.vpce.amazonaws.com", True),
        ("https://ec2.cn-north-1.amazonaws.com.cn", True),
        ("https://ec2.eu-north-1.api.aws", True),
        ("http://127.0.0.1:5000", False),
        ("https://localstack.example.com", False),
    ],
)
def test_whoever_stands_in_for_aws_is_not_asked_for_its_account(url: str, asked: bool) -> None:
    made = world(full)
    made.meta = type("Meta", (), {"endpoint_url": url})  # type: ignore[attr-defined]
    session = type("Session", (), {"client": lambda *_, **__: made})()
    wanted = Machines(eks_cluster="shop", region="eu-north-1", groups=tuple(made.groups))
    assert bool(surroundings_findings(session, wanted)) == asked


def test_an_account_that_cannot_be_asked_at_all_is_unknown_and_costs_nothing_else() -> None:
    class Session:
        def client(self, *_: Any, **__: Any) -> Any:
            raise ValueError("Invalid endpoint: https://ec2..amazonaws.com")

    (said,) = surroundings_findings(Session(), Machines(eks_cluster="shop", region="eu-north-1"))
    assert (said.subject, said.weight) == ("the account around it", Weight.UNKNOWN)
