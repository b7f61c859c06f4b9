"""Lists what tables, keys, objects and messages need or rule out: a line each, as data."""

from __future__ import annotations

from local.refusals.conditions import ABSENT, GIVEN, InputCondition, enter
from local.refusals.limits import Refuser

_DYNAMO = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
_KMS = "https://docs.aws.amazon.com/kms/latest/APIReference/"
_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
_SNS = "https://docs.aws.amazon.com/sns/latest/api/"
_DLM = "https://docs.aws.amazon.com/dlm/latest/APIReference/"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_EVENTS = "https://docs.aws.amazon.com/eventbridge/latest/APIReference/"
_RULE = Refuser("cloudwatch/eventRule:EventRule", "PutRule", "ValidationException")
_ALARM = Refuser("cloudwatch/metricAlarm:MetricAlarm", "PutMetricAlarm", "MissingParameter")
_TARGET = Refuser("cloudwatch/eventTarget:EventTarget", "PutTargets", "ValidationException")
_POLICY = Refuser(
    "dlm/lifecyclePolicy:LifecyclePolicy", "CreateLifecyclePolicy", "InvalidRequestException"
)
_TABLE = Refuser("dynamodb/table:Table", "CreateTable", "ValidationException")
_KEY = Refuser("kms/key:Key", "CreateKey", "ValidationException")
_GRANT = Refuser("kms/grant:Grant", "CreateGrant", "ValidationException")
_OBJECT = Refuser("s3/bucketObjectv2:BucketObjectv2", "PutObject", "InvalidArgument")
_TOPIC = Refuser("sns/topic:Topic", "SetTopicAttributes", "InvalidParameter")
_SUBSCRIPTION = Refuser("sns/topicSubscription:TopicSubscription", "Subscribe", "InvalidParameter")
_QUEUE = Refuser("sqs/queue:Queue", "CreateQueue", "InvalidAttributeName")
_SECRET = Refuser(
    "secretsmanager/secretVersion:SecretVersion", "PutSecretValue", "InvalidParameterException"
)

enter(
    InputCondition(
        _RULE,
        "",
        {"state": ("ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS",)},
        f"{_EVENTS}API_PutRule.html",
        forbids=("scheduleExpression",),
    ),
    InputCondition(
        _TARGET,
        "",
        {"ecsTarget": (GIVEN,)},
        f"{_EVENTS}API_Target.html",
        needs=("roleArn",),
    ),
    InputCondition(
        _POLICY,
        "policyDetails.schedules.*.retainRule",
        {"interval": (GIVEN,)},
        f"{_DLM}API_RetainRule.html",
        needs=("intervalUnit",),
    ),
    InputCondition(
        _POLICY,
        "policyDetails.schedules.*.fastRestoreRule",
        {},
        f"{_DLM}API_FastRestoreRule.html",
        needs=("availabilityZones",),
    ),
    InputCondition(
        _POLICY,
        "policyDetails.schedules.*",
        {"createRule": (GIVEN,)},
        f"{_DLM}API_Schedule.html",
        needs=("retainRule",),
    ),
    InputCondition(
        _TABLE,
        "serverSideEncryption",
        {"enabled": ("False",)},
        f"{_DYNAMO}API_SSESpecification.html",
        forbids=("kmsKeyArn",),
    ),
    InputCondition(
        _TABLE,
        "",
        {"streamEnabled": (ABSENT, "False")},
        f"{_DYNAMO}API_StreamSpecification.html",
        forbids=("streamViewType",),
    ),
    InputCondition(
        _TABLE,
        "pointInTimeRecovery",
        {"enabled": ("False",)},
        f"{_DYNAMO}API_PointInTimeRecoverySpecification.html",
        forbids=("recoveryPeriodInDays",),
    ),
    InputCondition(
        _TABLE,
        "",
        {"streamViewType": ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE")},
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/globaltables_reqs_bestpractices.html",
        forbids=("replicas",),
    ),
    InputCondition(
        _TABLE,
        "",
        {"billingMode": (ABSENT, "PROVISIONED")},
        f"{_DYNAMO}API_OnDemandThroughput.html",
        forbids=("onDemandThroughput",),
    ),
    InputCondition(
        _TABLE,
        "",
        {"restoreToLatestTime": ("True",), "restoreSourceTableArn": (ABSENT,)},
        f"{_DYNAMO}API_RestoreTableToPointInTime.html",
        needs=("restoreSourceName",),
    ),
    *(
        InputCondition(
            _KEY,
            "",
            {"customerMasterKeySpec": specs, "keyUsage": usages},
            f"{_KMS}API_CreateKey.html",
            needs=("(a usage that this kind of key has)",),
        )
        for specs, usages in (
            (
                (ABSENT, "SYMMETRIC_DEFAULT"),
                ("SIGN_VERIFY", "GENERATE_VERIFY_MAC", "KEY_AGREEMENT"),
            ),
            (
                ("HMAC_224", "HMAC_256", "HMAC_384", "HMAC_512"),
                (ABSENT, "ENCRYPT_DECRYPT", "SIGN_VERIFY", "KEY_AGREEMENT"),
            ),
            (
                *(("ECC_NIST_P256", "ECC_NIST_P384", "ECC_NIST_P521", "ECC_SECG_P256K1"),),
                (ABSENT, "ENCRYPT_DECRYPT", "GENERATE_VERIFY_MAC"),
            ),
            (("RSA_2048", "RSA_3072", "RSA_4096"), ("GENERATE_VERIFY_MAC", "KEY_AGREEMENT")),
            (
                ("ML_DSA_44", "ML_DSA_65", "ML_DSA_87", "ECC_NIST_EDWARDS25519"),
                (ABSENT, "ENCRYPT_DECRYPT", "GENERATE_VERIFY_MAC", "KEY_AGREEMENT"),
            ),
        )
    ),
    InputCondition(
        _KEY,
        "",
        {"enableKeyRotation": (ABSENT, "False")},
        f"{_KMS}API_EnableKeyRotation.html",
        forbids=("rotationPeriodInDays",),
    ),
    InputCondition(
        _KEY,
        "",
        {"multiRegion": ("True",)},
        f"{_KMS}API_CreateKey.html",
        forbids=("customKeyStoreId",),
    ),
    InputCondition(
        _KEY,
        "",
        {"xksKeyId": (GIVEN,)},
        f"{_KMS}API_CreateKey.html",
        needs=("customKeyStoreId",),
    ),
    InputCondition(_GRANT, "", {}, f"{_KMS}API_CreateGrant.html", needs=("operations",)),
    InputCondition(
        _OBJECT,
        "",
        {"serverSideEncryption": ("AES256",)},
        f"{_S3}API_PutObject.html",
        forbids=("kmsKeyId",),
    ),
    InputCondition(
        _OBJECT,
        "",
        {"objectLockMode": (GIVEN,)},
        f"{_S3}API_PutObject.html",
        needs=("objectLockRetainUntilDate",),
    ),
    InputCondition(
        _TOPIC,
        "",
        {"fifoTopic": (ABSENT, "False")},
        f"{_SNS}API_SetTopicAttributes.html",
        forbids=("archivePolicy", "fifoThroughputScope"),
    ),
    InputCondition(
        _SUBSCRIPTION,
        "",
        {"protocol": ("application", "email", "email-json", "lambda", "sms")},
        f"{_SNS}API_SetSubscriptionAttributes.html",
        forbids=("rawMessageDelivery",),
    ),
    InputCondition(
        _ALARM,
        "",
        {"metricName": (GIVEN,)},
        "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
        needs=("namespace",),
    ),
    InputCondition(
        _SUBSCRIPTION,
        "",
        {"filterPolicy": (ABSENT,)},
        f"{_SNS}API_SetSubscriptionAttributes.html",
        forbids=("filterPolicyScope",),
    ),
    InputCondition(
        _SUBSCRIPTION,
        "",
        {"protocol": ("firehose",)},
        f"{_SNS}API_Subscribe.html",
        needs=("subscriptionRoleArn",),
    ),
    InputCondition(
        _QUEUE,
        "",
        {"fifoQueue": (ABSENT, "False")},
        f"{_SQS}API_SetQueueAttributes.html",
        forbids=("deduplicationScope", "fifoThroughputLimit"),
    ),
    InputCondition(
        _QUEUE,
        "",
        {"fifoThroughputLimit": ("perMessageGroupId",), "deduplicationScope": (ABSENT, "queue")},
        f"{_SQS}API_SetQueueAttributes.html",
        needs=("(deduplication per group of messages)",),
    ),
    InputCondition(
        _SECRET,
        "",
        {"secretBinary": (ABSENT,), "secretStringWo": (ABSENT,), "secretString": (ABSENT,)},
        "https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_PutSecretValue.html",
        needs=("secretString",),
    ),
)
