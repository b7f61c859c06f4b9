"""Policies judge real requests: what is let through, what is refused, and in which words."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError
from moto import mock_aws

from core.ground.errors import InvalidInput
from local.environment import ACCOUNT, REGION
from local.iam import accounts
from local.iam.guard import check_delivery, may_assume
from local.iam.policy import decide, trusts
from local.iam.resources import needs
from local.journal import FILE_NAME, Journal
from local.place import Place
from tests.integration import denials
from tests.unit.infra.rights import CALLS
from tests.unit.local import iam_examples
from tests.unit.local.iam_account import Account

QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/tick/test"


@pytest.fixture
def account() -> Iterator[Account]:
    with mock_aws():
        yield Account()


def allow(actions: Any, resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resource, **more}


def refused(call: Any, **arguments: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    answer: Any = caught.value.response
    return {**answer["Error"], "Status": answer["ResponseMetadata"]["HTTPStatusCode"]}


REFUSED = [
    ("autoscaling", "describe_auto_scaling_groups", {}, "AccessDenied", 403),
    ("cloudwatch", "list_metrics", {}, "AccessDeniedException", 400),
    (
        "dynamodb",
        "get_item",
        {"TableName": "t", "Key": {"pk": {"S": "x"}}},
        "AccessDeniedException",
        400,
    ),
    ("ec2", "describe_instances", {}, "UnauthorizedOperation", 403),
    ("eks", "describe_cluster", {"name": "orders"}, "AccessDeniedException", 403),
    ("elbv2", "describe_target_groups", {}, "AccessDenied", 403),
    ("iam", "get_instance_profile", {"InstanceProfileName": "nodes"}, "AccessDenied", 403),
    ("s3", "get_object", {"Bucket": "b", "Key": "k"}, "AccessDenied", 403),
    ("secretsmanager", "get_secret_value", {"SecretId": "s"}, "AccessDeniedException", 400),
]


@pytest.mark.parametrize(("service", "call", "given", "code", "status"), REFUSED)
def test_every_service_refuses_in_its_own_words(
    account: Account, service: str, call: str, given: dict[str, Any], code: str, status: int
) -> None:
    client = account.client(service, account.session("tick"))
    answer = refused(getattr(client, call), **given)
    assert (answer["Code"], answer["Status"]) == (code, status)
    sentence = f"User: {ARN} is not authorized to perform: "
    assert sentence in answer["Message"]
    assert "because no identity-based policy allows the " in answer["Message"]
    begins = "You are not authorized to perform this operation. " if service == "ec2" else ""
    assert answer["Message"].startswith(begins + sentence)


def test_a_key_nobody_was_given_is_refused(account: Account) -> None:
    stranger = SimpleNamespace(access_key_id="ASIASTRANGER", secret_access_key="x")
    assert refused(account.client("ec2", stranger).describe_vpcs)["Code"] == "AuthFailure"
    answer = refused(account.client("sqs", stranger).list_queues)
    assert answer["Message"] == "The security token included in the request is invalid."


def test_a_call_of_which_nobody_knows_what_it_needs_is_refused_and_said(account: Account) -> None:
    everything = account.client("ssm", account.session("tick", allow("*")))
    assert (
        "does not know what this call needs" in refused(everything.describe_parameters)["Message"]
    )
    assert account.facts[-1]["event"] == "iam_unjudged"
    assert account.facts[-1]["action"] == "ssm:DescribeParameters"


def test_everybody_may_ask_who_they_are(account: Account) -> None:
    identity = account.client("sts", account.session("tick")).get_caller_identity()
    assert identity["Arn"] == ARN


def test_a_queues_own_policy_denies_whom_the_role_allows(account: Account) -> None:
    sqs = account.client("sqs")
    queue = sqs.create_queue(QueueName="orders")["QueueUrl"]
    only_rules = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:SendMessage",
        "Resource": QUEUE_ARN,
        "Condition": {
            "ArnNotEquals": {"aws:SourceArn": [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/ours"]},
            "BoolIfExists": {"aws:ViaAWSService": "false"},
        },
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [only_rules]})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    tick = account.client("sqs", account.session("tick", allow("sqs:*")))
    answer = refused(tick.send_message, QueueUrl=queue, MessageBody="x")
    assert answer["Message"].endswith("with an explicit deny in a resource-based policy")


def test_eventbridge_delivers_where_the_queue_lets_this_rule_in(account: Account) -> None:
    sqs = account.client("sqs")
    queue = sqs.create_queue(QueueName="orders")["QueueUrl"]
    ours, other = (f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{name}" for name in ("ours", "other"))
    service = "events.amazonaws.com"
    with pytest.raises(PermissionError):  # a queue without a policy
        check_delivery(service, "sqs:SendMessage", QUEUE_ARN, ours)
    statement = {
        **allow("sqs:SendMessage", QUEUE_ARN),
        "Principal": {"Service": service},
        "Condition": {"ArnEquals": {"aws:SourceArn": [ours]}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    check_delivery(service, "sqs:SendMessage", QUEUE_ARN, ours)
    with pytest.raises(PermissionError, match="rule/other"):
        check_delivery(service, "sqs:SendMessage", QUEUE_ARN, other)


def test_a_role_is_assumed_by_whom_its_trust_names(account: Account) -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/tick"
    trust = allow("sts:AssumeRole", Principal={"Service": "lambda.amazonaws.com"})
    del trust["Resource"]
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    account.client("iam").create_role(RoleName="tick", AssumeRolePolicyDocument=document)
    assert may_assume("lambda.amazonaws.com", role)
    assert not may_assume("pods.eks.amazonaws.com", role)
    assert not may_assume("lambda.amazonaws.com", f"{role}-gone")
    # Pod Identity tags its sessions, which is a right of its own.
    actions = ("sts:AssumeRole", "sts:TagSession")
    assert not trusts({"Statement": [trust]}, "lambda.amazonaws.com", role, *actions)
    key = "aws:RequestTag/kubernetes-service-account"
    tagged = {**trust, "Action": list(actions), "Condition": {"StringEquals": {key: "nth"}}}
    for account_name, assumed in {"nth": True, "other": False}.items():
        tags = {"kubernetes-service-account": account_name}
        document_ = {"Statement": [tagged]}
        assert trusts(document_, "lambda.amazonaws.com", role, *actions, tags=tags) is assumed


def test_a_role_reads_the_items_whose_keys_it_may_and_no_others(account: Account) -> None:
    account.client("dynamodb").create_table(
        TableName="ledger",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    keys = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["story#*"]}}
    table = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/ledger"
    slack = account.session("slack", allow("dynamodb:*", table, Condition=keys))
    dynamodb = account.client("dynamodb", slack)
    dynamodb.put_item(TableName="ledger", Item={"pk": {"S": "story#1"}})
    assert dynamodb.get_item(TableName="ledger", Key={"pk": {"S": "story#1"}})["Item"]
    stranger = {"TableName": "ledger", "Key": {"pk": {"S": "incident#1"}}}
    assert refused(dynamodb.get_item, **stranger)["Code"] == "AccessDeniedException"


def test_a_volume_is_attached_by_its_tags_alone(account: Account) -> None:
    ec2 = account.client("ec2")
    mine = [{"ResourceType": "volume", "Tags": [{"Key": "driver", "Value": "true"}]}]
    zone = f"{REGION}a"
    made = allow("ec2:CreateVolume", Condition={"StringEquals": {"aws:RequestTag/driver": "true"}})
    tagged = allow(
        "ec2:CreateTags", Condition={"StringEquals": {"ec2:CreateAction": "CreateVolume"}}
    )
    kept = allow("ec2:DeleteVolume", Condition={"StringEquals": {"ec2:ResourceTag/driver": "true"}})
    driver = account.client("ec2", account.session("driver", made, tagged, kept))
    volume = driver.create_volume(AvailabilityZone=zone, Size=1, TagSpecifications=mine)["VolumeId"]
    assert refused(driver.create_volume, AvailabilityZone=zone, Size=1)["Status"] == 403
    driver.delete_volume(VolumeId=volume)
    other = ec2.create_volume(AvailabilityZone=zone, Size=1)["VolumeId"]
    assert other in refused(driver.delete_volume, VolumeId=other)["Message"]
    without = account.client("ec2", account.session("without", made))
    answer = refused(without.create_volume, AvailabilityZone=zone, Size=1, TagSpecifications=mine)
    assert "ec2:CreateTags" in answer["Message"]


@pytest.mark.parametrize(
    ("case", "answer"), [pytest.param(*each, id=each[0].name) for each in iam_examples.examples()]
)
def test_iams_documented_rules(case: iam_examples.Case, answer: str) -> None:
    assert case.answer == answer


def test_an_operator_nobody_knows_is_an_error_and_no_condition_that_holds() -> None:
    unknown = {"StringResembles": {"aws:PrincipalArn": "x"}}
    question = iam_examples.asked(iam_examples.allow(Condition=unknown))
    with pytest.raises(
        InvalidInput, match="does not know the condition operator 'StringResembles'"
    ):
        decide(*question)


def test_every_call_of_ours_is_read_from_its_request_as_the_table_has_it(account: Account) -> None:
    """From boto3's own requests, in every protocol, to the action and the resource."""
    tick, facts = account.session("tick", allow("*")), accounts.AccountFacts()
    account.judge_only()
    clients: dict[str, Any] = {}
    wrong: list[Any] = []
    for call in itertools.chain.from_iterable(CALLS.values()):
        client = clients.setdefault(call.service, account.client(call.service, tick))
        account.facts.clear()
        with contextlib.suppress(ClientError, ResponseParserError):
            getattr(client, xform_name(call.operation))(**call.parameters)
        judged = {(each["action"], each.get("resource")) for each in account.facts}
        needed = {(need.action, need.resource) for need in needs(call, facts)}
        if judged != needed:
            wrong.append((call.operation, judged, needed))
    assert wrong == []


def test_an_attached_policy_counts_by_its_default_version_and_so_does_a_boundary(
    account: Account,
) -> None:
    iam, key = account.client("iam"), account.session("worker")
    queues = account.client("sqs", key)

    def document(action: str) -> str:
        return json.dumps({"Version": "2012-10-17", "Statement": [allow(action)]})

    made = iam.create_policy(PolicyName="queues", PolicyDocument=document("sqs:ListQueues"))
    arn = made["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="worker", PolicyArn=arn)
    iam.create_policy_version(PolicyArn=arn, PolicyDocument=document("sqs:*"), SetAsDefault=True)
    url = account.client("sqs").create_queue(QueueName="orders")["QueueUrl"]
    queues.send_message(QueueUrl=url, MessageBody="x")
    other = iam.create_policy(PolicyName="nodes", PolicyDocument=document("ec2:*"))
    bound = other["Policy"]["Arn"]
    iam.put_role_permissions_boundary(RoleName="worker", PermissionsBoundary=bound)
    assert (
        "no permissions boundary allows"
        in refused(queues.send_message, QueueUrl=url, MessageBody="x")["Message"]
    )


def test_a_group_is_told_by_its_tags(account: Account) -> None:
    scaling = account.client("autoscaling")
    scaling.create_launch_configuration(
        LaunchConfigurationName="plain", ImageId="ami-12c6146b", InstanceType="m7g.large"
    )
    for name in ("ours", "theirs"):
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchConfigurationName="plain",
            MinSize=0,
            MaxSize=1,
            AvailabilityZones=[f"{REGION}a"],
            Tags=[{"Key": "cluster", "Value": name, "PropagateAtLaunch": False}],
        )
    condition = {"StringEquals": {"aws:ResourceTag/cluster": "ours"}}
    key = account.session("tick", allow("autoscaling:SetDesiredCapacity", Condition=condition))
    tick = account.client("autoscaling", key)
    tick.set_desired_capacity(AutoScalingGroupName="ours", DesiredCapacity=0)
    answer = refused(tick.set_desired_capacity, AutoScalingGroupName="theirs", DesiredCapacity=0)
    assert "not authorized to perform: autoscaling:SetDesiredCapacity" in answer["Message"]


DENIED = {
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


def refuse(place: Place, **changes: object) -> None:
    Journal(place).write("iam", "iam_judged", **{**DENIED, "allowed": False, **changes})


def test_the_action_the_resource_and_the_role_are_named_once(place: Place) -> None:
    denials.check(Item(place))
    refuse(place)
    refuse(place)
    refuse(place, action="sqs:ReceiveMessage", allowed=True)
    with pytest.raises(AssertionError) as caught:
        denials.check(Item(place))
    assert str(caught.value).count("\n") == 1
    assert (
        "test-orders-tick was refused sqs:SendMessage on "
        "arn:aws:sqs:us-east-1:123456789012:orders because no identity-based policy"
    ) in str(caught.value)
    denials.check(Item(place))  # it is the last test's, not the next one's


def test_what_nobody_can_judge_is_a_denial_too(place: Place) -> None:
    Journal(place).write(
        "iam", "iam_unjudged", principal="tick", action="ssm:GetParameter", why="no entry"
    )
    with pytest.raises(AssertionError, match="tick was refused ssm:GetParameter"):
        denials.check(Item(place))


@pytest.mark.parametrize(
    ("meant", "passes"), [((), True), (("sqs:*",), True), (("sns:*",), False)], ids=str
)
def test_a_test_that_means_it_says_which(
    place: Place, meant: tuple[str, ...], passes: bool
) -> None:
    refuse(place)
    item = Item(place, *meant, marked=True)
    if passes:
        denials.check(item)
    else:
        with pytest.raises(AssertionError, match="sqs:SendMessage"):
            denials.check(item)


def test_another_twin_at_the_same_place_is_read_from_its_beginning(place: Place) -> None:
    for _ in range(3):
        refuse(place, action="sns:Publish")
    with pytest.raises(AssertionError):
        denials.check(Item(place))
    place.path(FILE_NAME).unlink()
    # Its journal may be the longer one by now.
    for _ in range(9):
        refuse(place)
    with pytest.raises(AssertionError, match="sqs:SendMessage"):
        denials.check(Item(place))


def test_a_test_without_a_twin_is_left_alone() -> None:
    denials.check(SimpleNamespace(funcargs={}))
