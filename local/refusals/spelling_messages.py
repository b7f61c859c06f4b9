"""Forms and ranges of what is sent, kept and encrypted: functions, queues, topics, secrets, S3."""

from __future__ import annotations

from local.refusals.bounds import Bounds, enter_bounds
from local.refusals.geography import regions
from local.refusals.patterns import Pattern, enter
from local.refusals.words import PROVIDER, AllowedWords, enter_words

_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/api/"
_SNS = "https://docs.aws.amazon.com/sns/latest/api/"
_SECRETS = "https://docs.aws.amazon.com/secretsmanager/latest/apireference/"
_KMS = "https://docs.aws.amazon.com/kms/latest/developerguide/concepts.html"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_PUT = "PutBucketLifecycleConfiguration"
_LIFECYCLE = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
# A key is named by its id, its alias or the ARN of one of them: none has white space.
_KEY = r"[A-Za-z0-9:/_-]{1,2048}"

enter(
    *(
        Pattern(
            token,
            path,
            _KEY,
            operation,
            code,
            "Invalid keyId {0}: it is neither a key's id nor an alias nor the ARN of one.",
            _KMS,
        )
        for token, path, operation, code in (
            (
                "ec2/launchTemplate:LaunchTemplate",
                "blockDeviceMappings.*.ebs.kmsKeyId",
                "RunInstances",
                "InvalidParameterValue",
            ),
            ("s3/bucketObjectv2:BucketObjectv2", "kmsKeyId", "PutObject", "KMS.NotFoundException"),
            (
                "secretsmanager/secret:Secret",
                "kmsKeyId",
                "CreateSecret",
                "InvalidParameterException",
            ),
            ("sns/topic:Topic", "kmsMasterKeyId", "SetTopicAttributes", "InvalidParameter"),
            ("sqs/queue:Queue", "kmsMasterKeyId", "CreateQueue", "KMS.NotFoundException"),
        )
    ),
    Pattern(
        "lambda/function:Function",
        "fileSystemConfig.localMountPath",
        r"/mnt/[a-zA-Z0-9_.-]+",
        "CreateFunction",
        "Invalid Attribute Value",
        "{0} is no path below /mnt",
        f"{_LAMBDA}API_FileSystemConfig.html",
    ),
    Pattern(
        "lambda/eventSourceMapping:EventSourceMapping",
        "eventSourceArn",
        r"arn:aws[a-z-]*:(dynamodb|kafka|kinesis|mq|rds|sqs):[a-z0-9-]+:\d{12}:.+",
        "CreateEventSourceMapping",
        "InvalidParameterValueException",
        "Unrecognized event source, must be kinesis, dynamodb stream, sqs, mq, kafka or docdb: {0}",
        f"{_LAMBDA}API_CreateEventSourceMapping.html",
    ),
    *(
        Pattern(
            "sns/topicSubscription:TopicSubscription",
            key,
            form,
            "Subscribe",
            "InvalidParameter",
            f"Invalid parameter: {key}: {{0}}",
            f"{_SNS}API_Subscribe.html",
        )
        for key, form in (
            ("topic", r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:.+"),
            ("subscriptionRoleArn", r"arn:aws[a-z-]*:iam::\d{12}:role/.+"),
        )
    ),
    *(
        Pattern(
            _LIFECYCLE,
            path,
            form,
            _PUT,
            "InvalidRequest",
            message,
            f"{_S3}API_LifecycleRuleFilter.html",
        )
        for path, form, message in (
            (
                "rules.*.filter.prefix",
                r".{0,1024}",
                "The maximum size of a prefix is 1024 characters",
            ),
            (
                "rules.*.filter.and.prefix",
                r".{0,1024}",
                "The maximum size of a prefix is 1024 characters",
            ),
            (
                "rules.*.filter.tag.key",
                r".{1,128}",
                "The TagKey you have provided is invalid: {0}",
            ),
            (
                "rules.*.filter.tag.value",
                r".{0,256}",
                "The TagValue you have provided is invalid: {0}",
            ),
        )
    ),
    Pattern(
        "s3/bucketObjectv2:BucketObjectv2",
        "websiteRedirect",
        r"(/|https?://).{0,2047}",
        "PutObject",
        "InvalidRedirectLocation",
        "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
        f"{_S3}API_PutObject.html",
    ),
    Pattern(
        "bcmdata/export:Export",
        "export.destinationConfigurations.*.s3Destinations.*.s3Bucket",
        r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
        "CreateExport",
        "ValidationException",
        "The bucket {0} is not valid",
        f"{_S3}API_CreateBucket.html",
    ),
    Pattern(
        "lb/loadBalancer:LoadBalancer",
        "accessLogs.bucket",
        r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
        "ModifyLoadBalancerAttributes",
        "InvalidConfigurationRequest",
        "The bucket {0} is not valid",
        f"{_S3}API_CreateBucket.html",
    ),
)
enter_words(
    AllowedWords(
        "lambda/functionUrl:FunctionUrl",
        "cors.allowMethods.*",
        ("*", "DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"),
        "CreateFunctionUrlConfig",
        "InvalidParameterValueException",
        f"{_LAMBDA}API_Cors.html",
    ),
    AllowedWords(
        "secretsmanager/secret:Secret",
        "replicas.*.region",
        tuple(sorted(regions())),
        "CreateSecret",
        "InvalidParameterException",
        f"{_SECRETS}API_ReplicaRegionType.html",
    ),
    AllowedWords(
        "route53/zone:Zone",
        "vpcs.*.vpcRegion",
        tuple(sorted(regions())),
        "CreateHostedZone",
        "InvalidInput",
        "https://docs.aws.amazon.com/Route53/latest/APIReference/API_VPC.html",
    ),
    AllowedWords(
        "dynamodb/table:Table",
        "replicas.*.regionName",
        tuple(sorted(regions())),
        "UpdateTable",
        PROVIDER,
        "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateReplicationGroupMemberAction.html",
    ),
)
enter_bounds(
    Bounds(
        "lb/targetGroup:TargetGroup",
        "stickiness.cookieDuration",
        0,
        604_800,
        "ModifyTargetGroupAttributes",
        PROVIDER,
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_TargetGroupAttribute.html",
    ),
)
