"""Lists what tables, keys, objects and messages need or rule out: a line each."""

from __future__ import annotations

from local.refusals.conditions import ABSENT, GIVEN, InputCondition, enter_conditions
from local.refusals.limits import Refuser

_DYNAMO = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
_GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
_KMS = "https://docs.aws.amazon.com/kms/latest/APIReference/"
_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
_SNS = "https://docs.aws.amazon.com/sns/latest/api/"
_DLM = "https://docs.aws.amazon.com/dlm/latest/APIReference/"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_EVENTS = "https://docs.aws.amazon.com/eventbridge/latest/APIReference/"
_WATCH = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/"
_SECRETS = "https://docs.aws.amazon.com/secretsmanager/latest/apireference/"
_POLICY = Refuser(
    "dlm/lifecyclePolicy:LifecyclePolicy", "CreateLifecyclePolicy", "InvalidRequestException"
)
_SCHEDULE = "policyDetails.schedules.*"
_TABLE = Refuser("dynamodb/table:Table", "CreateTable", "ValidationException")
_KEY = Refuser("kms/key:Key", "CreateKey", "ValidationException")
_SUBSCRIPTION = Refuser("sns/topicSubscription:TopicSubscription", "Subscribe", "InvalidParameter")
# What a kind of key is not used for, each row: kinds, usages. The usage that is ABSENT encrypts.
_MISUSED = (
    ((ABSENT, "SYMMETRIC_DEFAULT"), ("SIGN_VERIFY", "GENERATE_VERIFY_MAC", "KEY_AGREEMENT")),
    (
        ("HMAC_224", "HMAC_256", "HMAC_384", "HMAC_512"),
        (ABSENT, "ENCRYPT_DECRYPT", "SIGN_VERIFY", "KEY_AGREEMENT"),
    ),
    (
        ("ECC_NIST_P256", "ECC_NIST_P384", "ECC_NIST_P521", "ECC_SECG_P256K1"),
        (ABSENT, "ENCRYPT_DECRYPT", "GENERATE_VERIFY_MAC"),
    ),
    (("RSA_2048", "RSA_3072", "RSA_4096"), ("GENERATE_VERIFY_MAC", "KEY_AGREEMENT")),
    (
        ("ML_DSA_44", "ML_DSA_65", "ML_DSA_87", "ECC_NIST_EDWARDS25519"),
        (ABSENT, "ENCRYPT_DECRYPT", "GENERATE_VERIFY_MAC", "KEY_AGREEMENT"),
    ),
)

enter_conditions(
    Refuser("cloudwatch/eventRule:EventRule", "PutRule", "ValidationException"),
    f"{_EVENTS}API_PutRule.html",
    InputCondition(
        {"state": ("ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS",)},
        forbids=("scheduleExpression",),
    ),
)
enter_conditions(
    Refuser("cloudwatch/eventTarget:EventTarget", "PutTargets", "ValidationException"),
    f"{_EVENTS}API_Target.html",
    InputCondition({"ecsTarget": (GIVEN,)}, needs=("roleArn",)),
)
enter_conditions(
    _POLICY,
    f"{_DLM}API_RetainRule.html",
    InputCondition({"interval": (GIVEN,)}, needs=("intervalUnit",), base=f"{_SCHEDULE}.retainRule"),
)
enter_conditions(
    _POLICY,
    f"{_DLM}API_FastRestoreRule.html",
    InputCondition({}, needs=("availabilityZones",), base=f"{_SCHEDULE}.fastRestoreRule"),
)
enter_conditions(
    _POLICY,
    f"{_DLM}API_Schedule.html",
    InputCondition({"createRule": (GIVEN,)}, needs=("retainRule",), base=_SCHEDULE),
)
enter_conditions(
    _TABLE,
    f"{_DYNAMO}API_SSESpecification.html",
    InputCondition({"enabled": ("False",)}, forbids=("kmsKeyArn",), base="serverSideEncryption"),
)
enter_conditions(
    _TABLE,
    f"{_DYNAMO}API_StreamSpecification.html",
    InputCondition({"streamEnabled": (ABSENT, "False")}, forbids=("streamViewType",)),
)
enter_conditions(
    _TABLE,
    f"{_DYNAMO}API_PointInTimeRecoverySpecification.html",
    InputCondition(
        {"enabled": ("False",)}, forbids=("recoveryPeriodInDays",), base="pointInTimeRecovery"
    ),
)
enter_conditions(
    _TABLE,
    f"{_GUIDE}globaltables_reqs_bestpractices.html",
    InputCondition(
        {"streamViewType": ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE")}, forbids=("replicas",)
    ),
)
enter_conditions(
    _TABLE,
    f"{_DYNAMO}API_OnDemandThroughput.html",
    InputCondition({"billingMode": (ABSENT, "PROVISIONED")}, forbids=("onDemandThroughput",)),
)
enter_conditions(
    _TABLE,
    f"{_DYNAMO}API_RestoreTableToPointInTime.html",
    InputCondition(
        {"restoreToLatestTime": ("True",), "restoreSourceTableArn": (ABSENT,)},
        needs=("restoreSourceName",),
    ),
)
enter_conditions(
    _KEY,
    f"{_KMS}API_CreateKey.html",
    *(
        InputCondition(
            {"customerMasterKeySpec": kinds, "keyUsage": usages},
            needs=("(a usage that this kind of key has)",),
        )
        for kinds, usages in _MISUSED
    ),
    InputCondition({"multiRegion": ("True",)}, forbids=("customKeyStoreId",)),
    InputCondition({"xksKeyId": (GIVEN,)}, needs=("customKeyStoreId",)),
)
enter_conditions(
    _KEY,
    f"{_KMS}API_EnableKeyRotation.html",
    InputCondition({"enableKeyRotation": (ABSENT, "False")}, forbids=("rotationPeriodInDays",)),
)
enter_conditions(
    Refuser("kms/grant:Grant", "CreateGrant", "ValidationException"),
    f"{_KMS}API_CreateGrant.html",
    InputCondition({}, needs=("operations",)),
)
enter_conditions(
    Refuser("s3/bucketObjectv2:BucketObjectv2", "PutObject", "InvalidArgument"),
    f"{_S3}API_PutObject.html",
    InputCondition({"serverSideEncryption": ("AES256",)}, forbids=("kmsKeyId",)),
    InputCondition({"objectLockMode": (GIVEN,)}, needs=("objectLockRetainUntilDate",)),
)
enter_conditions(
    Refuser("sns/topic:Topic", "SetTopicAttributes", "InvalidParameter"),
    f"{_SNS}API_SetTopicAttributes.html",
    InputCondition(
        {"fifoTopic": (ABSENT, "False")}, forbids=("archivePolicy", "fifoThroughputScope")
    ),
)
enter_conditions(
    _SUBSCRIPTION,
    f"{_SNS}API_SetSubscriptionAttributes.html",
    InputCondition(
        {"protocol": ("application", "email", "email-json", "lambda", "sms")},
        forbids=("rawMessageDelivery",),
    ),
    InputCondition({"filterPolicy": (ABSENT,)}, forbids=("filterPolicyScope",)),
)
enter_conditions(
    Refuser("cloudwatch/metricAlarm:MetricAlarm", "PutMetricAlarm", "MissingParameter"),
    f"{_WATCH}API_PutMetricAlarm.html",
    InputCondition({"metricName": (GIVEN,)}, needs=("namespace",)),
)
enter_conditions(
    _SUBSCRIPTION,
    f"{_SNS}API_Subscribe.html",
    InputCondition({"protocol": ("firehose",)}, needs=("subscriptionRoleArn",)),
)
enter_conditions(
    Refuser("sqs/queue:Queue", "CreateQueue", "InvalidAttributeName"),
    f"{_SQS}API_SetQueueAttributes.html",
    InputCondition(
        {"fifoQueue": (ABSENT, "False")}, forbids=("deduplicationScope", "fifoThroughputLimit")
    ),
    InputCondition(
        {"fifoThroughputLimit": ("perMessageGroupId",), "deduplicationScope": (ABSENT, "queue")},
        needs=("(deduplication per group of messages)",),
    ),
)
enter_conditions(
    Refuser(
        "secretsmanager/secretVersion:SecretVersion", "PutSecretValue", "InvalidParameterException"
    ),
    f"{_SECRETS}API_PutSecretValue.html",
    InputCondition(
        {"secretBinary": (ABSENT,), "secretStringWo": (ABSENT,), "secretString": (ABSENT,)},
        needs=("secretString",),
    ),
)
