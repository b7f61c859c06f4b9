"""Forms and ranges of what is sent, kept and encrypted: functions, queues, topics, secrets, S3."""

from __future__ import annotations

from local.refusals.bounds import enter_bounds
from local.refusals.limits import Refuser
from local.refusals.patterns import enter_patterns
from local.refusals.regions import regions
from local.refusals.words import PROVIDER, enter_words

_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/api/"
_SNS = "https://docs.aws.amazon.com/sns/latest/api/"
_SECRETS = "https://docs.aws.amazon.com/secretsmanager/latest/apireference/"
_KMS = "https://docs.aws.amazon.com/kms/latest/developerguide/concepts.html"
_BUCKETS = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_PUT = "PutBucketLifecycleConfiguration"
_LIFECYCLE = "bucketLifecycleConfiguration:BucketLifecycleConfiguration"
_FILTERS = Refuser(f"s3/{_LIFECYCLE}", _PUT, "InvalidRequest")
_LONG_PREFIX = "The maximum size of a prefix is 1024 characters"
_REGIONS = tuple(sorted(regions()))
# A key is named by its id, its alias or the ARN of one of them: none has white space.
_KEY = r"[A-Za-z0-9:/_-]{1,2048}"
# The name of a bucket that another resource is to write to.
_NAME = (r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "The bucket {0} is not valid")

for token, path, operation, code in (
    (
        *("ec2/launchTemplate:LaunchTemplate", "blockDeviceMappings.*.ebs.kmsKeyId"),
        *("RunInstances", "InvalidParameterValue"),
    ),
    ("s3/bucketObjectv2:BucketObjectv2", "kmsKeyId", "PutObject", "KMS.NotFoundException"),
    ("secretsmanager/secret:Secret", "kmsKeyId", "CreateSecret", "InvalidParameterException"),
    ("sns/topic:Topic", "kmsMasterKeyId", "SetTopicAttributes", "InvalidParameter"),
    ("sqs/queue:Queue", "kmsMasterKeyId", "CreateQueue", "KMS.NotFoundException"),
):
    message = "Invalid keyId {0}: it is neither a key's id nor an alias nor the ARN of one."
    enter_patterns(Refuser(token, operation, code), _KMS, (path, _KEY, message))
for token, operation in (
    (_LIFECYCLE, _PUT),
    ("bucketObjectv2:BucketObjectv2", "PutObject"),
    ("bucketPolicy:BucketPolicy", "PutBucketPolicy"),
    ("bucketPublicAccessBlock:BucketPublicAccessBlock", "PutPublicAccessBlock"),
    (
        "bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        "PutBucketEncryption",
    ),
    ("bucketVersioning:BucketVersioning", "PutBucketVersioning"),
):
    # What a bucket is called its own resource says; here, that no bucket is called so.
    enter_patterns(
        Refuser(f"s3/{token}", operation, "InvalidBucketName"),
        _BUCKETS,
        ("bucket", r"arn:.+|[a-z0-9.-]{1,63}", "The specified bucket is not valid: {0}"),
    )
enter_patterns(
    Refuser("lambda/function:Function", "CreateFunction", "InvalidParameterValueException"),
    f"{_LAMBDA}API_FunctionCode.html",
    (
        "imageUri",
        r"\d{12}\.dkr[.-]ecr(-fips)?[.][a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.aws)/.+",
        "Source image {0} is not valid. Provide a valid source image.",
    ),
)
enter_patterns(
    # CloudWatch user guide, "CloudWatch concepts": namespaces.
    Refuser("cloudwatch/metricAlarm:MetricAlarm", "PutMetricAlarm", "ValidationError"),
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html",
    (
        "namespace",
        r"[ -~]{1,255}",
        "The value {0} for parameter Namespace must contain only ASCII characters.",
    ),
)
enter_patterns(
    Refuser("lambda/function:Function", "CreateFunction", "Invalid Attribute Value"),
    f"{_LAMBDA}API_FileSystemConfig.html",
    ("fileSystemConfig.localMountPath", r"/mnt/[a-zA-Z0-9_.-]+", "{0} is no path below /mnt"),
)
enter_patterns(
    Refuser(
        "lambda/eventSourceMapping:EventSourceMapping",
        "CreateEventSourceMapping",
        "InvalidParameterValueException",
    ),
    f"{_LAMBDA}API_CreateEventSourceMapping.html",
    (
        "eventSourceArn",
        r"arn:aws[a-z-]*:(dynamodb|kafka|kinesis|mq|rds|sqs):[a-z0-9-]+:\d{12}:.+",
        "Unrecognized event source, must be kinesis, dynamodb stream, sqs, mq, kafka or docdb: {0}",
    ),
)
enter_patterns(
    Refuser("sns/topicSubscription:TopicSubscription", "Subscribe", "InvalidParameter"),
    f"{_SNS}API_Subscribe.html",
    ("topic", r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:.+", "Invalid parameter: topic: {0}"),
    (
        "subscriptionRoleArn",
        r"arn:aws[a-z-]*:iam::\d{12}:role/.+",
        "Invalid parameter: subscriptionRoleArn: {0}",
    ),
)
enter_patterns(
    _FILTERS,
    f"{_S3}API_LifecycleRuleFilter.html",
    ("rules.*.filter.prefix", r".{0,1024}", _LONG_PREFIX),
    ("rules.*.filter.and.prefix", r".{0,1024}", _LONG_PREFIX),
    ("rules.*.filter.tag.key", r".{1,128}", "The TagKey you have provided is invalid: {0}"),
    ("rules.*.filter.tag.value", r".{0,256}", "The TagValue you have provided is invalid: {0}"),
)
enter_patterns(
    Refuser("s3/bucketObjectv2:BucketObjectv2", "PutObject", "InvalidRedirectLocation"),
    f"{_S3}API_PutObject.html",
    (
        "websiteRedirect",
        r"(/|https?://).{0,2047}",
        "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
    ),
)
enter_patterns(
    Refuser("bcmdata/export:Export", "CreateExport", "ValidationException"),
    f"{_S3}API_CreateBucket.html",
    ("export.destinationConfigurations.*.s3Destinations.*.s3Bucket", *_NAME),
)
enter_patterns(
    Refuser(
        "lb/loadBalancer:LoadBalancer",
        "ModifyLoadBalancerAttributes",
        "InvalidConfigurationRequest",
    ),
    f"{_S3}API_CreateBucket.html",
    ("accessLogs.bucket", *_NAME),
)

enter_words(
    # Every new bucket takes no other list of rights (BucketOwnerEnforced).
    Refuser("s3/bucketObjectv2:BucketObjectv2", "PutObject", "AccessControlListNotSupported"),
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html",
    ("acl", ("bucket-owner-full-control", "private")),
)
enter_words(
    Refuser(
        "lambda/functionUrl:FunctionUrl",
        "CreateFunctionUrlConfig",
        "InvalidParameterValueException",
    ),
    f"{_LAMBDA}API_Cors.html",
    ("cors.allowMethods.*", ("*", "DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")),
)
enter_words(
    Refuser("secretsmanager/secret:Secret", "CreateSecret", "InvalidParameterException"),
    f"{_SECRETS}API_ReplicaRegionType.html",
    ("replicas.*.region", _REGIONS),
)
enter_words(
    Refuser("route53/zone:Zone", "CreateHostedZone", "InvalidInput"),
    "https://docs.aws.amazon.com/Route53/latest/APIReference/API_VPC.html",
    ("vpcs.*.vpcRegion", _REGIONS),
)
enter_words(
    Refuser("dynamodb/table:Table", "UpdateTable", PROVIDER),
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateReplicationGroupMemberAction.html",
    ("replicas.*.regionName", _REGIONS),
)

enter_bounds(
    _FILTERS,
    f"{_S3}API_LifecycleRuleFilter.html",
    *(
        (f"rules.*.filter.{block}{key}", least, 50 * 1024**4)
        for block in ("", "and.")
        for key, least in (("objectSizeGreaterThan", 0), ("objectSizeLessThan", 1))
    ),
)
enter_bounds(
    Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", PROVIDER),
    "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_TargetGroupAttribute.html",
    ("stickiness.cookieDuration", 0, 604_800),
)
