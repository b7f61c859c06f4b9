"""Forms and ranges of what is sent, kept and encrypted: functions, queues, topics, secrets, S3."""

from __future__ import annotations

from local.refusals.bounds import Bounds, enter_bounds
from local.refusals.limits import Refuser
from local.refusals.patterns import Pattern, enter
from local.refusals.regions import regions
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
            Refuser(token, operation, code),
            path,
            _KEY,
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
        Refuser("lambda/function:Function", "CreateFunction", "InvalidParameterValueException"),
        "imageUri",
        r"\d{12}\.dkr[.-]ecr(-fips)?[.][a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.aws)/.+",
        "Source image {0} is not valid. Provide a valid source image.",
        f"{_LAMBDA}API_FunctionCode.html",
    ),
    *(
        # What a bucket is called its own resource says; here, that no bucket is called so.
        Pattern(
            Refuser(f"s3/{token}", operation, "InvalidBucketName"),
            "bucket",
            r"arn:.+|[a-z0-9.-]{1,63}",
            "The specified bucket is not valid: {0}",
            "https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html",
        )
        for token, operation in (
            ("bucketLifecycleConfiguration:BucketLifecycleConfiguration", _PUT),
            ("bucketObjectv2:BucketObjectv2", "PutObject"),
            ("bucketPolicy:BucketPolicy", "PutBucketPolicy"),
            ("bucketPublicAccessBlock:BucketPublicAccessBlock", "PutPublicAccessBlock"),
            (
                "bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
                "PutBucketEncryption",
            ),
            ("bucketVersioning:BucketVersioning", "PutBucketVersioning"),
        )
    ),
    Pattern(
        # CloudWatch user guide, "CloudWatch concepts": namespaces.
        Refuser("cloudwatch/metricAlarm:MetricAlarm", "PutMetricAlarm", "ValidationError"),
        "namespace",
        r"[ -~]{1,255}",
        "The value {0} for parameter Namespace must contain only ASCII characters.",
        "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html",
    ),
    Pattern(
        Refuser("lambda/function:Function", "CreateFunction", "Invalid Attribute Value"),
        "fileSystemConfig.localMountPath",
        r"/mnt/[a-zA-Z0-9_.-]+",
        "{0} is no path below /mnt",
        f"{_LAMBDA}API_FileSystemConfig.html",
    ),
    Pattern(
        Refuser(
            "lambda/eventSourceMapping:EventSourceMapping",
            "CreateEventSourceMapping",
            "InvalidParameterValueException",
        ),
        "eventSourceArn",
        r"arn:aws[a-z-]*:(dynamodb|kafka|kinesis|mq|rds|sqs):[a-z0-9-]+:\d{12}:.+",
        "Unrecognized event source, must be kinesis, dynamodb stream, sqs, mq, kafka or docdb: {0}",
        f"{_LAMBDA}API_CreateEventSourceMapping.html",
    ),
    *(
        Pattern(
            Refuser("sns/topicSubscription:TopicSubscription", "Subscribe", "InvalidParameter"),
            key,
            form,
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
            Refuser(_LIFECYCLE, _PUT, "InvalidRequest"),
            path,
            form,
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
        Refuser("s3/bucketObjectv2:BucketObjectv2", "PutObject", "InvalidRedirectLocation"),
        "websiteRedirect",
        r"(/|https?://).{0,2047}",
        "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
        f"{_S3}API_PutObject.html",
    ),
    Pattern(
        Refuser("bcmdata/export:Export", "CreateExport", "ValidationException"),
        "export.destinationConfigurations.*.s3Destinations.*.s3Bucket",
        r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
        "The bucket {0} is not valid",
        f"{_S3}API_CreateBucket.html",
    ),
    Pattern(
        Refuser(
            "lb/loadBalancer:LoadBalancer",
            "ModifyLoadBalancerAttributes",
            "InvalidConfigurationRequest",
        ),
        "accessLogs.bucket",
        r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
        "The bucket {0} is not valid",
        f"{_S3}API_CreateBucket.html",
    ),
)
enter_words(
    # Every new bucket takes no other list of rights (BucketOwnerEnforced).
    AllowedWords(
        Refuser("s3/bucketObjectv2:BucketObjectv2", "PutObject", "AccessControlListNotSupported"),
        "acl",
        ("bucket-owner-full-control", "private"),
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html",
    ),
    AllowedWords(
        Refuser(
            "lambda/functionUrl:FunctionUrl",
            "CreateFunctionUrlConfig",
            "InvalidParameterValueException",
        ),
        "cors.allowMethods.*",
        ("*", "DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"),
        f"{_LAMBDA}API_Cors.html",
    ),
    AllowedWords(
        Refuser("secretsmanager/secret:Secret", "CreateSecret", "InvalidParameterException"),
        "replicas.*.region",
        tuple(sorted(regions())),
        f"{_SECRETS}API_ReplicaRegionType.html",
    ),
    AllowedWords(
        Refuser("route53/zone:Zone", "CreateHostedZone", "InvalidInput"),
        "vpcs.*.vpcRegion",
        tuple(sorted(regions())),
        "https://docs.aws.amazon.com/Route53/latest/APIReference/API_VPC.html",
    ),
    AllowedWords(
        Refuser("dynamodb/table:Table", "UpdateTable", PROVIDER),
        "replicas.*.regionName",
        tuple(sorted(regions())),
        "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateReplicationGroupMemberAction.html",
    ),
)
enter_bounds(
    *(
        Bounds(
            Refuser(_LIFECYCLE, _PUT, "InvalidRequest"),
            f"rules.*.filter.{block}{key}",
            least,
            50 * 1024**4,
            f"{_S3}API_LifecycleRuleFilter.html",
        )
        for block in ("", "and.")
        for key, least in (("objectSizeGreaterThan", 0), ("objectSizeLessThan", 1))
    ),
    Bounds(
        Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", PROVIDER),
        "stickiness.cookieDuration",
        0,
        604_800,
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_TargetGroupAttribute.html",
    ),
)
