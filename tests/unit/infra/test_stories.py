"""slack, archive, webhook: who listens, what is filed, who may come in."""

import base64
import json
from typing import Any

import pytest

from core.cluster import parse
from core.ground.errors import InvalidInput
from core.settings.functions import (
    InterruptionSettings,
    SlackSettings,
    SweepSettings,
    TickSettings,
    WebhookSettings,
    Writing,
)
from tests.unit.infra.programs import description, run_changed, run_layer
from tests.unit.infra.recording import ACCOUNT, RANDOM_PASSWORD, Recorded
from tests.unit.infra.told import told

FUNCTION = "lambda/function:Function"


@pytest.fixture
def operations(layers: dict[str, Recorded]) -> Recorded:
    return layers["operations"]


@pytest.fixture
def platform(layers: dict[str, Recorded]) -> Recorded:
    return layers["platform"]


def statements(recorded: Recorded, name: str) -> dict[str, dict[str, Any]]:
    found = recorded.one("iam/rolePolicy:RolePolicy", name).policy_statements
    return {statement["Sid"]: statement for statement in found}


def test_slack_reads_what_it_is_told_by_its_environment(operations: Recorded) -> None:
    settings = told(operations, "stories-slack-function", SlackSettings)
    assert settings.channel == "C0HARBOUR1"
    assert settings.secret_name == "orders/slack"
    assert settings.api_url == "https://slack.com/api/"
    assert settings.stories_queue_url.endswith("/test-orders-stories")


def test_slack_may_change_its_own_items_and_know_its_own_secret_alone(operations: Recorded) -> None:
    granted = statements(operations, "stories-slack-policy")
    keys = granted["KeepThreads"]["Condition"]["ForAllValues:StringLike"]
    assert keys == {"dynamodb:LeadingKeys": ["story#*"]}
    assert granted["KnowItsToken"]["Resource"] == [
        f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:orders/slack-??????"
    ]


def test_everybody_who_writes_the_ledger_may_ask_for_a_story(operations: Recorded) -> None:
    writing: tuple[type[Writing], ...] = (InterruptionSettings, TickSettings, SweepSettings)
    for kind in writing:
        role = kind.__name__.removesuffix("Settings").lower()
        asked = statements(operations, f"handlers-{role}-policy")["AskForAStory"]
        assert asked["Resource"][0].endswith(":test-orders-stories")
        url = told(operations, f"handlers-{role}-function", kind).stories_queue_url
        assert url.endswith("/test-orders-stories")


def test_without_a_slack_section_nothing_of_it_is_made(cache: None) -> None:
    operations = run_changed("operations", slack=None)
    assert not [f for f in operations.of(FUNCTION) if f.name.startswith("stories")]
    assert "AskForAStory" not in statements(operations, "handlers-tick-policy")
    tick = told(operations, "handlers-tick-function", TickSettings)
    assert tick.stories_queue_url is None


@pytest.mark.parametrize(
    "section",
    [
        {"channel": "#kafka", "secret_name": "s"},
        {"channel": "C0HARBOUR1", "secret_name": ""},
        {"channel": "C0HARBOUR1", "secret_name": "s", "token": "xoxb-1"},
        {"channel": "C0HARBOUR1", "secret_name": "s", "api_url": "slack.com"},
    ],
)
def test_a_slack_section_that_cannot_work_is_refused(section: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="slack"):
        parse(description(slack=section))


def test_the_archive_is_private_keeps_versions_and_forgets(operations: Recorded) -> None:
    bucket = operations.one("s3/bucket:Bucket").inputs
    assert bucket["bucket"] == f"test-orders-incidents-{ACCOUNT}"
    assert not bucket.get("forceDestroy")
    kind = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    forgets, half_written = operations.one(kind).inputs["rules"]
    assert forgets["expiration"]["days"] == 1095
    assert forgets["noncurrentVersionExpiration"]["noncurrentDays"] == 1095
    assert half_written["abortIncompleteMultipartUpload"]["daysAfterInitiation"] == 7
    assert operations.one("s3/bucketPublicAccessBlock:BucketPublicAccessBlock").inputs[
        "restrictPublicBuckets"
    ]
    versions = operations.one("s3/bucketVersioning:BucketVersioning").inputs
    assert versions["versioningConfiguration"]["status"] == "Enabled"
    assert operations.outputs["incidents_bucket"] == bucket["bucket"]


def test_only_the_sweep_files_and_only_incidents(operations: Recorded) -> None:
    filing = statements(operations, "handlers-sweep-policy")["FileIncidents"]
    assert filing["Action"] == ["s3:PutObject"]
    assert [arn.rpartition("/incidents/")[2] for arn in filing["Resource"]] == ["*"]
    for role in ("interruption", "tick"):
        assert "FileIncidents" not in statements(operations, f"handlers-{role}-policy")


def test_the_webhooks_url_is_public_and_only_its_own_function_behind_it(platform: Recorded) -> None:
    url = platform.one("lambda/functionUrl:FunctionUrl").inputs
    assert url["authorizationType"] == "NONE"
    permissions = [p.inputs for p in platform.of("lambda/permission:Permission")]
    assert {p["function"] for p in permissions} == {"test-orders-webhook"}
    by_url, invoke = sorted(permissions, key=lambda p: str(p["action"]), reverse=True)
    assert by_url["action"] == "lambda:InvokeFunctionUrl"
    assert by_url["functionUrlAuthType"] == "NONE"
    assert invoke["action"] == "lambda:InvokeFunction"
    # Else anybody could invoke the function past its URL.
    assert invoke["invokedViaFunctionUrl"] is True


def test_strangers_make_five_of_the_webhook_run_at_the_most(platform: Recorded) -> None:
    function = platform.one(FUNCTION, "webhook-function-function").inputs
    assert function["reservedConcurrentExecutions"] == 5
    assert function["timeout"] <= 5


def test_where_the_account_has_no_room_nothing_is_reserved(layers: dict[str, Recorded]) -> None:
    references = {"test-foundation": layers["foundation"].outputs}
    without = run_layer("platform", description(webhook_concurrency=0), references)
    function = without.one(FUNCTION, "webhook-function-function").inputs
    assert "reservedConcurrentExecutions" not in function


def test_the_webhook_writes_incidents_and_what_it_ignored(platform: Recorded) -> None:
    granted = statements(platform, "webhook-function-policy")
    keys = granted["NoteReports"]["Condition"]["ForAllValues:StringLike"]
    assert keys == {"dynamodb:LeadingKeys": ["incident#*", "ignored#*"]}


def test_the_webhook_knows_table_and_queue_above(platform: Recorded, operations: Recorded) -> None:
    settings = told(platform, "webhook-function-function", WebhookSettings)
    assert settings.ledger_table == operations.outputs["ledger_table"]
    assert settings.ticks_queue_url == operations.outputs["ticks_queue_url"]


def test_the_token_is_drawn_once_and_kept(platform: Recorded) -> None:
    version = platform.one("secretsmanager/secretVersion:SecretVersion")
    assert version.inputs["secretString"] == RANDOM_PASSWORD
    assert version.ignore_changes == ("secretString",)


def test_nth_shows_the_token_from_a_secret_and_its_values_hold_none(platform: Recorded) -> None:
    release = platform.one("helm.sh/v3:Release", "nth-release")
    values = release.inputs["values"]
    assert RANDOM_PASSWORD not in json.dumps(values)
    (variable,) = values["extraEnv"]
    secret = platform.one("core/v1:Secret").inputs
    assert variable["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
    held = secret.get("stringData") or {
        key: base64.b64decode(value).decode() for key, value in secret["data"].items()
    }
    headers = json.loads(held[variable["valueFrom"]["secretKeyRef"]["key"]])
    assert headers["x-stillwater-token"] == RANDOM_PASSWORD
    assert values["webhookURL"].startswith("https://webhook-url.lambda-url.")
    assert "webhook-secret" in release.depends_on


def test_the_token_stands_in_the_secret_alone(layers: dict[str, Recorded]) -> None:
    for recorded in layers.values():
        assert RANDOM_PASSWORD not in json.dumps(recorded.outputs, default=str)
        holding = {
            r.name
            for r in recorded.resources
            if RANDOM_PASSWORD in json.dumps(r.inputs, default=str)
        }
        assert holding <= {"webhook-token-value", "webhook-secret"}
