"""Forms and ranges of inputs that no model and no documentation of the provider's states."""

from __future__ import annotations

from local.refusals.bounds import MOST, enter_bounds
from local.refusals.limits import Refuser
from local.refusals.patterns import enter_forms

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_KMS = "https://docs.aws.amazon.com/kms/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/APIReference/"
_DNS = "https://docs.aws.amazon.com/Route53/latest/APIReference/"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
_GROUP = "autoscaling/group:Group"
_LAUNCH = Refuser("ec2/launchTemplate:LaunchTemplate", "RunInstances", "InvalidParameterValue")
_SCALED = Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError")
_NODES = Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException")
_IDENTITY = Refuser(
    "eks/podIdentityAssociation:PodIdentityAssociation",
    "CreatePodIdentityAssociation",
    "InvalidParameterException",
)
_RECORD = Refuser("route53/record:Record", "ChangeResourceRecordSets", "InvalidInput")
_OBJECT = Refuser("s3/bucketObjectv2:BucketObjectv2", "PutObject", "Invalid Attribute Value")
_MIXED = "mixedInstancesPolicy.instancesDistribution"
_REFRESH = "instanceRefresh.preferences"
_WAIT = r"0|(\d+(\.\d+)?(ns|us|ms|s|m|h))+"
_ROLE = r"arn:aws[a-z-]*:iam::\d{12}:role/.+"
_NOT_LINKED = r"(?!arn:aws[a-z-]*:iam::\d{12}:role/aws-service-role/).+"
_PRINCIPAL = r"arn:aws[a-z-]*:(iam|sts)::\d{12}:.+"
_KEY = r"(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/)?[A-Za-z0-9-]+"
_BASE64 = r"[A-Za-z0-9+/\s]*={0,2}"

enter_forms(
    _SCALED,
    f"{_SCALING}API_LaunchTemplateOverrides.html",
    ("mixedInstancesPolicy.launchTemplate.overrides.*.weightedCapacity", r"[1-9]\d{0,2}"),
)
enter_forms(
    Refuser(_GROUP, "the provider's check", "Invalid Attribute Value"),
    "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/autoscaling_group",
    ("waitForCapacityTimeout", _WAIT),
)
enter_forms(
    Refuser(_GROUP, "AttachTrafficSources", "ValidationError"),
    f"{_SCALING}API_TrafficSourceIdentifier.html",
    ("trafficSources.*.type", "elb|elbv2|vpc-lattice"),
)
enter_forms(_SCALED, f"{_SCALING}API_CreateAutoScalingGroup.html", ("serviceLinkedRoleArn", _ROLE))
enter_forms(
    Refuser(_GROUP, "StartInstanceRefresh", "ValidationError"),
    f"{_SCALING}API_RefreshPreferences.html",
    (f"{_REFRESH}.scaleInProtectedInstances", "Refresh|Ignore|Wait"),
    (f"{_REFRESH}.standbyInstances", "Terminate|Ignore|Wait"),
)
enter_forms(
    _LAUNCH,
    f"{_EC2}API_RequestLaunchTemplateData.html",
    ("blockDeviceMappings.*.ebs.snapshotId", r"snap-[0-9a-f]{8,17}"),
    ("blockDeviceMappings.*.virtualName", r"ephemeral\d+"),
    ("blockDeviceMappings.*.deviceName", r"/dev/[a-z0-9]+|xvd[a-z]+"),
    ("instanceMarketOptions.spotOptions.maxPrice", r"\d+(\.\d+)?"),
    ("keyName", r".{1,255}"),
    ("kernelId", r"aki-[0-9a-f]+"),
    ("ramDiskId", r"ari-[0-9a-f]+"),
    ("networkInterfaces.*.interfaceType", "efa|efa-only|interface"),
    ("networkInterfaces.*.associatePublicIpAddress", "(?i:true|false)"),
    ("maintenanceOptions.autoRecovery", "default|disabled"),
)
enter_forms(
    Refuser("ec2/eip:Eip", "AssociateAddress", "InvalidInstanceID.Malformed"),
    f"{_EC2}API_AssociateAddress.html",
    ("instance", r"i-[0-9a-f]{8,17}"),
)
enter_forms(
    Refuser("ec2/subnet:Subnet", "CreateSubnet", "InvalidParameterValue"),
    f"{_EC2}API_CreateSubnet.html",
    ("availabilityZoneId", r"[a-z]{3,4}\d-[a-z]*\d*-?az\d+"),
)
enter_forms(
    Refuser("ec2/subnet:Subnet", "CreateSubnet", "InvalidSubnet.Range"),
    f"{_EC2}API_CreateSubnet.html",
    ("ipv6CidrBlock", r"[0-9a-fA-F:]+/(44|48|52|56|60|64)(?<!/60)"),
)
enter_forms(
    Refuser(
        "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation",
        "ModifyVpcEndpoint",
        "InvalidVpcEndpointId.Malformed",
    ),
    f"{_EC2}API_ModifyVpcEndpoint.html",
    ("vpcEndpointId", r"vpce-.+"),
)
enter_forms(
    Refuser(
        "ec2/vpcEndpointService:VpcEndpointService",
        "CreateVpcEndpointServiceConfiguration",
        "InvalidParameter",
    ),
    f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
    ("privateDnsName", r"[A-Za-z0-9*]([A-Za-z0-9.-]*[A-Za-z0-9])?"),
)
enter_forms(
    _NODES,
    f"{_EKS}API_LaunchTemplateSpecification.html",
    ("launchTemplate.version", r"\d+|\$Latest|\$Default"),
)
enter_forms(_NODES, f"{_EKS}API_CreateNodegroup.html", ("version", r"1\.\d{2}"))
enter_forms(
    Refuser("eks/accessEntry:AccessEntry", "CreateAccessEntry", "InvalidParameterException"),
    f"{_EKS}API_CreateAccessEntry.html",
    ("principalArn", _NOT_LINKED),
)
enter_forms(
    _IDENTITY,
    f"{_EKS}API_CreatePodIdentityAssociation.html",
    ("roleArn", _NOT_LINKED),
    ("targetRoleArn", _ROLE),
)
enter_forms(
    Refuser("kms/alias:Alias", "CreateAlias", "ValidationException"),
    f"{_KMS}API_CreateAlias.html",
    ("name", r"alias/[A-Za-z0-9/_-]+"),
)
enter_forms(
    Refuser("kms/alias:Alias", "CreateAlias", "NotFoundException"),
    f"{_KMS}API_CreateAlias.html",
    ("targetKeyId", _KEY),
)
enter_forms(
    Refuser("kms/grant:Grant", "CreateGrant", "NotFoundException"),
    f"{_KMS}API_CreateGrant.html",
    ("keyId", _KEY),
)
enter_forms(
    Refuser("kms/grant:Grant", "CreateGrant", "InvalidArnException"),
    f"{_KMS}API_CreateGrant.html",
    ("granteePrincipal", _PRINCIPAL),
    ("retiringPrincipal", _PRINCIPAL),
)
enter_forms(
    Refuser("lambda/function:Function", "CreateFunction", "InvalidParameterValueException"),
    "https://docs.aws.amazon.com/lambda/latest/api/API_DeadLetterConfig.html",
    ("deadLetterConfig.targetArn", r"(?!.*\.fifo$).+"),
)
enter_forms(
    _RECORD,
    f"{_DNS}API_ResourceRecordSet.html",
    ("setIdentifier", r".{1,128}"),
    ("healthCheckId", r".{1,64}"),
)
enter_forms(
    _RECORD,
    f"{_DNS}API_GeoLocation.html",
    ("geolocationRoutingPolicies.*.continent", "AF|AN|AS|EU|NA|OC|SA"),
)
enter_forms(
    _OBJECT,
    f"{_S3}API_PutObject.html",
    (
        "objectLockRetainUntilDate",
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})",
    ),
    ("contentBase64", _BASE64),
)
enter_forms(
    Refuser(
        "secretsmanager/secretVersion:SecretVersion", "PutSecretValue", "Invalid Attribute Value"
    ),
    "https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_PutSecretValue.html",
    ("secretBinary", _BASE64),
)
enter_forms(
    Refuser("sns/topic:Topic", "SetTopicAttributes", "InvalidParameter"),
    "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
    *(
        (f"{kind}{way}FeedbackRoleArn", _ROLE)
        for kind in ("application", "firehose", "http", "lambda", "sqs")
        for way in ("Failure", "Success")
    ),
)
for policy in ("queuePolicy:QueuePolicy", "redriveAllowPolicy:RedriveAllowPolicy"):
    enter_forms(
        Refuser(f"sqs/{policy}", "SetQueueAttributes", "AWS.SimpleQueueService.NonExistentQueue"),
        f"{_SQS}API_SetQueueAttributes.html",
        ("queueUrl", r"https?://.+"),
    )
enter_forms(
    Refuser("bcmdata/export:Export", "CreateExport", "ValidationException"),
    "https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_DataExports_Export.html",
    ("export.description", r".{0,1024}"),
)

enter_bounds(
    _SCALED,
    f"{_SCALING}API_PutWarmPool.html",
    ("warmPool.minSize", 0, MOST),
    ("warmPool.maxGroupPreparedCapacity", -1, MOST),
)
enter_bounds(
    _SCALED,
    f"{_SCALING}API_InstancesDistribution.html",
    (f"{_MIXED}.spotInstancePools", 0, 20),
    (f"{_MIXED}.onDemandBaseCapacity", 0, MOST),
)
enter_bounds(
    _SCALED,
    f"{_SCALING}API_RefreshPreferences.html",
    (f"{_REFRESH}.checkpointPercentages.*", 1, 100),
    (f"{_REFRESH}.checkpointDelay", 0, 172_800),
)
enter_bounds(
    _LAUNCH,
    f"{_EC2}API_LaunchTemplateCpuOptionsRequest.html",
    ("cpuOptions.threadsPerCore", 1, 2),
    ("cpuOptions.coreCount", 1, 256),
)
enter_bounds(
    _LAUNCH,
    f"{_EC2}API_LaunchTemplatePlacementRequest.html",
    ("placement.partitionNumber", 1, 7),
)
enter_bounds(
    _LAUNCH,
    f"{_EC2}API_LaunchTemplateEbsBlockDeviceRequest.html",
    ("blockDeviceMappings.*.ebs.volumeSize", 1, 65_536),
)
enter_bounds(
    Refuser(
        "dlm/lifecyclePolicy:LifecyclePolicy", "CreateLifecyclePolicy", "InvalidRequestException"
    ),
    "https://docs.aws.amazon.com/dlm/latest/APIReference/API_RetainRule.html",
    ("policyDetails.schedules.*.retainRule.count", 1, 1000),
)
enter_bounds(
    _NODES,
    "https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html",
    ("scalingConfig.maxSize", 1, 450),
)
enter_bounds(_NODES, f"{_EKS}API_CreateNodegroup.html", ("diskSize", 1, 16_384))
enter_bounds(
    Refuser("lb/loadBalancer:LoadBalancer", "ModifyLoadBalancerAttributes", "ValidationError"),
    "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_LoadBalancerAttribute.html",
    ("idleTimeout", 1, 4000),
)
