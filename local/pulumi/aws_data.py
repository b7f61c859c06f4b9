"""Makes what keeps things: tables, keys, log groups, and the Spark application's description."""

from __future__ import annotations

import json
from typing import Any

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    TagCalls,
    adapts,
    has_changed,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.catalogue.parameters import pick
from local.refusals.catalogue.storage import index
from local.values import Properties

MOTO_EMR_RELEASE = "emr-6.6.0"


def _throughput(inputs: Properties) -> dict[str, int]:
    return {
        "ReadCapacityUnits": int(inputs.get("readCapacity") or 1),
        "WriteCapacityUnits": int(inputs.get("writeCapacity") or 1),
    }


@adapts("dynamodb/table:Table")
class TableAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"hashKey", "rangeKey", "localSecondaryIndexes"})
    lookup = CallById("dynamodb", "describe_table", "TableName")
    deletion = CallById("dynamodb", "delete_table", "TableName")
    tagging = TagCalls("dynamodb", "tag_resource", "untag_resource", "ResourceArn")

    @staticmethod
    def _settings(aws: Aws, name: str, inputs: Properties) -> None:
        dynamodb = aws.client("dynamodb")
        ttl = inputs.get("ttl") or {}
        if ttl.get("attributeName"):
            dynamodb.update_time_to_live(
                TableName=name,
                TimeToLiveSpecification={
                    "Enabled": bool(ttl.get("enabled", True)),
                    "AttributeName": ttl["attributeName"],
                },
            )
        recovery = inputs.get("pointInTimeRecovery")
        if recovery:
            enabled = {"PointInTimeRecoveryEnabled": bool(recovery["enabled"])}
            dynamodb.update_continuous_backups(
                TableName=name, PointInTimeRecoverySpecification=enabled
            )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        provisioned = inputs.get("billingMode", "PROVISIONED") == "PROVISIONED"
        more: dict[str, Any] = {"BillingMode": inputs.get("billingMode", "PROVISIONED")}
        indexes = inputs.get("globalSecondaryIndexes") or ()
        if provisioned:
            more["ProvisionedThroughput"] = _throughput(inputs)
        if provisioned and indexes:
            more["GlobalSecondaryIndexes"] = [
                {**index(each), "ProvisionedThroughput": _throughput(each)} for each in indexes
            ]
        if inputs.get("streamEnabled"):
            more["StreamSpecification"] = {
                "StreamEnabled": True,
                "StreamViewType": inputs.get("streamViewType", "NEW_AND_OLD_IMAGES"),
            }
        made = self.make(aws, inputs, **more)["TableDescription"]
        self._settings(aws, inputs["name"], inputs)
        return State(inputs["name"], {"arn": made["TableArn"], **self._stream(made)})

    @staticmethod
    def _stream(table: Properties) -> Properties:
        return pick(
            {"arn": table.get("LatestStreamArn"), "label": table.get("LatestStreamLabel")},
            {"arn": "streamArn", "label": "streamLabel"},
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        dynamodb, arn = aws.client("dynamodb"), existing.outputs["arn"]
        if has_changed(existing, inputs, "billingMode", "readCapacity", "writeCapacity"):
            mode = inputs.get("billingMode", "PROVISIONED")
            throughput = (
                {"ProvisionedThroughput": _throughput(inputs)} if mode == "PROVISIONED" else {}
            )
            dynamodb.update_table(TableName=existing.id, BillingMode=mode, **throughput)
        if has_changed(existing, inputs, "deletionProtectionEnabled"):
            dynamodb.update_table(
                TableName=existing.id,
                DeletionProtectionEnabled=bool(inputs.get("deletionProtectionEnabled")),
            )
        if has_changed(existing, inputs, "ttl", "pointInTimeRecovery"):
            self._settings(aws, existing.id, inputs)
        self.tagging.bring(aws, arn, existing, inputs)
        return {}


@adapts("dynamodb/tableItem:TableItem")
class TableItemAdapter(Adapter):
    replaces = frozenset({"tableName", "hashKey", "rangeKey"})

    @staticmethod
    def _key(inputs: Properties) -> dict[str, Any]:
        item = json.loads(inputs["item"])
        names = (inputs["hashKey"], inputs.get("rangeKey"))
        return {name: item[name] for name in names if name}

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self.make(aws, inputs)
        key = "|".join(str(next(iter(each.values()))) for each in self._key(inputs).values())
        return State(f"{inputs['tableName']}|{key}", {})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self.make(aws, inputs)
        if self._key(existing.inputs) != self._key(inputs):
            self.delete(aws, existing)
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        answer = aws.client("dynamodb").get_item(
            TableName=existing.inputs["tableName"], Key=self._key(existing.inputs)
        )
        return {} if "Item" in answer else None

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("dynamodb").delete_item(
            TableName=existing.inputs["tableName"], Key=self._key(existing.inputs)
        )


@adapts("kms/grant:Grant")
class GrantAdapter(Adapter):
    replaces = frozenset({"keyId", "granteePrincipal", "operations"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs)
        outputs = {"grantId": made["GrantId"], "grantToken": made["GrantToken"]}
        return State(f"{inputs['keyId']}:{made['GrantId']}", outputs)

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("kms").revoke_grant(
            KeyId=existing.inputs["keyId"], GrantId=existing.outputs["grantId"]
        )


@adapts("kms/key:Key")
class KeyAdapter(Adapter):
    replaces = frozenset({"keyUsage", "customerMasterKeySpec", "multiRegion"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs)["KeyMetadata"]
        if inputs.get("enableKeyRotation"):
            aws.client("kms").enable_key_rotation(KeyId=made["KeyId"])
        return State(made["KeyId"], {"arn": made["Arn"], "keyId": made["KeyId"]})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        kms = aws.client("kms")
        if has_changed(existing, inputs, "policy") and inputs.get("policy"):
            kms.put_key_policy(KeyId=existing.id, PolicyName="default", Policy=inputs["policy"])
        if has_changed(existing, inputs, "description"):
            kms.update_key_description(
                KeyId=existing.id, Description=inputs.get("description") or ""
            )
        if has_changed(existing, inputs, "enableKeyRotation"):
            wanted = bool(inputs.get("enableKeyRotation"))
            (kms.enable_key_rotation if wanted else kms.disable_key_rotation)(KeyId=existing.id)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        days = int(existing.inputs.get("deletionWindowInDays") or 30)
        aws.client("kms").schedule_key_deletion(KeyId=existing.id, PendingWindowInDays=days)


@adapts("kms/alias:Alias")
class AliasAdapter(Adapter):
    name_property = "name"
    deletion = CallById("kms", "delete_alias", "AliasName")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self.make(aws, inputs)
        key = str(inputs["targetKeyId"]).rsplit("/", 1)[-1]
        return State(
            inputs["name"],
            {"arn": aws.arn("kms", inputs["name"]), "targetKeyArn": aws.arn("kms", f"key/{key}")},
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        aws.client("kms").update_alias(AliasName=existing.id, TargetKeyId=inputs["targetKeyId"])
        key = str(inputs["targetKeyId"]).rsplit("/", 1)[-1]
        return {"targetKeyArn": aws.arn("kms", f"key/{key}")}


@adapts("cloudwatch/logGroup:LogGroup")
class LogGroupAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"logGroupClass"})

    @staticmethod
    def _retention(aws: Aws, name: str, inputs: Properties) -> None:
        days = inputs.get("retentionInDays")
        if days:
            aws.client("logs").put_retention_policy(logGroupName=name, retentionInDays=int(days))
        else:
            aws.client("logs").delete_retention_policy(logGroupName=name)

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        name = inputs["name"]
        aws.client("logs").create_log_group(
            logGroupName=name, **pick(inputs, {"kmsKeyId": "kmsKeyId"})
        )
        if inputs.get("retentionInDays"):
            self._retention(aws, name, inputs)
        return State(name, {"arn": aws.arn("logs", f"log-group:{name}")})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        if has_changed(existing, inputs, "retentionInDays"):
            self._retention(aws, existing.id, inputs)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        if not existing.inputs.get("skipDestroy"):
            aws.client("logs").delete_log_group(logGroupName=existing.id)


@adapts("emrserverless/application:Application")
class SparkApplicationAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"type"})
    lookup = CallById("emr-serverless", "get_application", "applicationId")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        # moto knows no label of EMR's Spark line (emr-spark-8.x); the stored value wins on read.
        made = self.make(aws, inputs, clientToken=resource.token(32), releaseLabel=MOTO_EMR_RELEASE)
        return State(made["applicationId"], {"arn": made["arn"]})

    def delete(self, aws: Aws, existing: Existing) -> None:
        emr = aws.client("emr-serverless")
        # Only a stopped application may go; stopping one that is stopped is no error.
        emr.stop_application(applicationId=existing.id)
        emr.delete_application(applicationId=existing.id)
