"""Forms and ranges of inputs that no model and no documentation of the provider's states."""

from __future__ import annotations

from local.refusals.bounds import MOST, Bounds, enter_bounds
from local.refusals.limits import Refuser
from local.refusals.patterns import Pattern, enter

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_KMS = "https://docs.aws.amazon.com/kms/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/APIReference/"
_DNS = "https://docs.aws.amazon.com/Route53/latest/APIReference/"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_GROUP, _TEMPLATE = "autoscaling/group:Group", "ec2/launchTemplate:LaunchTemplate"
_NODES, _RECORD = "eks/nodeGroup:NodeGroup", "route53/record:Record"
_GRANT, _OBJECT = "kms/grant:Grant", "s3/bucketObjectv2:BucketObjectv2"
_MIXED = "mixedInstancesPolicy.instancesDistribution"
_WAIT = r"0|(\d+(\.\d+)?(ns|us|ms|s|m|h))+"
_NOT_LINKED = r"(?!arn:aws[a-z-]*:iam::\d{12}:role/aws-service-role/).+"
_PRINCIPAL = r"arn:aws[a-z-]*:(iam|sts)::\d{12}:.+"

# Whose refusal, input, form, source.
FORMS: tuple[tuple[Refuser, str, str, str], ...] = (
    (
        Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError"),
        "mixedInstancesPolicy.launchTemplate.overrides.*.weightedCapacity",
        r"[1-9]\d{0,2}",
        f"{_SCALING}API_LaunchTemplateOverrides.html",
    ),
    (
        Refuser(_GROUP, "the provider's check", "Invalid Attribute Value"),
        "waitForCapacityTimeout",
        _WAIT,
        "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/autoscaling_group",
    ),
    (
        Refuser(_GROUP, "AttachTrafficSources", "ValidationError"),
        "trafficSources.*.type",
        "elb|elbv2|vpc-lattice",
        f"{_SCALING}API_TrafficSourceIdentifier.html",
    ),
    (
        Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError"),
        "serviceLinkedRoleArn",
        r"arn:aws[a-z-]*:iam::\d{12}:role/.+",
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    *(
        (
            Refuser(_GROUP, "StartInstanceRefresh", "ValidationError"),
            f"instanceRefresh.preferences.{key}",
            words,
            f"{_SCALING}API_RefreshPreferences.html",
        )
        for key, words in (
            ("scaleInProtectedInstances", "Refresh|Ignore|Wait"),
            ("standbyInstances", "Terminate|Ignore|Wait"),
        )
    ),
    *(
        (
            Refuser(_TEMPLATE, "RunInstances", "InvalidParameterValue"),
            path,
            form,
            f"{_EC2}API_RequestLaunchTemplateData.html",
        )
        for path, form in (
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
    ),
    (
        Refuser("ec2/eip:Eip", "AssociateAddress", "InvalidInstanceID.Malformed"),
        "instance",
        r"i-[0-9a-f]{8,17}",
        f"{_EC2}API_AssociateAddress.html",
    ),
    (
        Refuser("ec2/subnet:Subnet", "CreateSubnet", "InvalidParameterValue"),
        "availabilityZoneId",
        r"[a-z]{3,4}\d-[a-z]*\d*-?az\d+",
        f"{_EC2}API_CreateSubnet.html",
    ),
    (
        Refuser("ec2/subnet:Subnet", "CreateSubnet", "InvalidSubnet.Range"),
        "ipv6CidrBlock",
        r"[0-9a-fA-F:]+/(44|48|52|56|60|64)(?<!/60)",
        f"{_EC2}API_CreateSubnet.html",
    ),
    (
        Refuser(
            "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation",
            "ModifyVpcEndpoint",
            "InvalidVpcEndpointId.Malformed",
        ),
        "vpcEndpointId",
        r"vpce-.+",
        f"{_EC2}API_ModifyVpcEndpoint.html",
    ),
    (
        Refuser(
            "ec2/vpcEndpointService:VpcEndpointService",
            "CreateVpcEndpointServiceConfiguration",
            "InvalidParameter",
        ),
        "privateDnsName",
        r"[A-Za-z0-9*]([A-Za-z0-9.-]*[A-Za-z0-9])?",
        f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
    ),
    (
        Refuser(_NODES, "CreateNodegroup", "InvalidParameterException"),
        "launchTemplate.version",
        r"\d+|\$Latest|\$Default",
        f"{_EKS}API_LaunchTemplateSpecification.html",
    ),
    (
        Refuser(_NODES, "CreateNodegroup", "InvalidParameterException"),
        "version",
        r"1\.\d{2}",
        f"{_EKS}API_CreateNodegroup.html",
    ),
    *(
        (Refuser(token, operation, "InvalidParameterException"), path, _NOT_LINKED, source)
        for token, path, operation, source in (
            (
                "eks/accessEntry:AccessEntry",
                "principalArn",
                "CreateAccessEntry",
                f"{_EKS}API_CreateAccessEntry.html",
            ),
            (
                "eks/podIdentityAssociation:PodIdentityAssociation",
                "roleArn",
                "CreatePodIdentityAssociation",
                f"{_EKS}API_CreatePodIdentityAssociation.html",
            ),
        )
    ),
    (
        Refuser(
            "eks/podIdentityAssociation:PodIdentityAssociation",
            "CreatePodIdentityAssociation",
            "InvalidParameterException",
        ),
        "targetRoleArn",
        r"arn:aws[a-z-]*:iam::\d{12}:role/.+",
        f"{_EKS}API_CreatePodIdentityAssociation.html",
    ),
    (
        Refuser("kms/alias:Alias", "CreateAlias", "ValidationException"),
        "name",
        r"alias/[A-Za-z0-9/_-]+",
        f"{_KMS}API_CreateAlias.html",
    ),
    *(
        (
            Refuser(token, operation, "NotFoundException"),
            path,
            r"(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/)?[A-Za-z0-9-]+",
            f"{_KMS}API_{operation}.html",
        )
        for token, path, operation in (
            ("kms/alias:Alias", "targetKeyId", "CreateAlias"),
            (_GRANT, "keyId", "CreateGrant"),
        )
    ),
    *(
        (
            Refuser(_GRANT, "CreateGrant", "InvalidArnException"),
            path,
            _PRINCIPAL,
            f"{_KMS}API_CreateGrant.html",
        )
        for path in ("granteePrincipal", "retiringPrincipal")
    ),
    (
        Refuser("lambda/function:Function", "CreateFunction", "InvalidParameterValueException"),
        "deadLetterConfig.targetArn",
        r"(?!.*\.fifo$).+",
        "https://docs.aws.amazon.com/lambda/latest/api/API_DeadLetterConfig.html",
    ),
    *(
        (Refuser(_RECORD, "ChangeResourceRecordSets", "InvalidInput"), path, form, f"{_DNS}{page}")
        for path, form, page in (
            ("setIdentifier", r".{1,128}", "API_ResourceRecordSet.html"),
            ("healthCheckId", r".{1,64}", "API_ResourceRecordSet.html"),
            (
                "geolocationRoutingPolicies.*.continent",
                "AF|AN|AS|EU|NA|OC|SA",
                "API_GeoLocation.html",
            ),
        )
    ),
    (
        Refuser(_OBJECT, "PutObject", "Invalid Attribute Value"),
        "objectLockRetainUntilDate",
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})",
        f"{_S3}API_PutObject.html",
    ),
    *(
        (
            Refuser(token, operation, "Invalid Attribute Value"),
            path,
            r"[A-Za-z0-9+/\s]*={0,2}",
            source,
        )
        for token, path, operation, source in (
            (_OBJECT, "contentBase64", "PutObject", f"{_S3}API_PutObject.html"),
            (
                "secretsmanager/secretVersion:SecretVersion",
                "secretBinary",
                "PutSecretValue",
                "https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_PutSecretValue.html",
            ),
        )
    ),
    *(
        (
            Refuser("sns/topic:Topic", "SetTopicAttributes", "InvalidParameter"),
            f"{kind}{way}FeedbackRoleArn",
            r"arn:aws[a-z-]*:iam::\d{12}:role/.+",
            "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
        )
        for kind in ("application", "firehose", "http", "lambda", "sqs")
        for way in ("Failure", "Success")
    ),
    *(
        (
            Refuser(token, "SetQueueAttributes", "AWS.SimpleQueueService.NonExistentQueue"),
            "queueUrl",
            r"https?://.+",
            "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
        )
        for token in (
            "sqs/queuePolicy:QueuePolicy",
            "sqs/redriveAllowPolicy:RedriveAllowPolicy",
        )
    ),
    (
        Refuser("bcmdata/export:Export", "CreateExport", "ValidationException"),
        "export.description",
        r".{0,1024}",
        "https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_DataExports_Export.html",
    ),
)
# Whose refusal, input, least, most, source.
RANGES: tuple[tuple[Refuser, str, float, float, str], ...] = (
    *(
        (
            Refuser(_GROUP, "CreateAutoScalingGroup", "ValidationError"),
            path,
            least,
            most,
            f"{_SCALING}{page}",
        )
        for path, least, most, page in (
            ("warmPool.minSize", 0, MOST, "API_PutWarmPool.html"),
            ("warmPool.maxGroupPreparedCapacity", -1, MOST, "API_PutWarmPool.html"),
            (f"{_MIXED}.spotInstancePools", 0, 20, "API_InstancesDistribution.html"),
            (f"{_MIXED}.onDemandBaseCapacity", 0, MOST, "API_InstancesDistribution.html"),
            (
                "instanceRefresh.preferences.checkpointPercentages.*",
                1,
                100,
                "API_RefreshPreferences.html",
            ),
            (
                "instanceRefresh.preferences.checkpointDelay",
                0,
                172_800,
                "API_RefreshPreferences.html",
            ),
        )
    ),
    *(
        (
            Refuser(_TEMPLATE, "RunInstances", "InvalidParameterValue"),
            path,
            least,
            most,
            f"{_EC2}{page}",
        )
        for path, least, most, page in (
            ("cpuOptions.threadsPerCore", 1, 2, "API_LaunchTemplateCpuOptionsRequest.html"),
            ("cpuOptions.coreCount", 1, 256, "API_LaunchTemplateCpuOptionsRequest.html"),
            ("placement.partitionNumber", 1, 7, "API_LaunchTemplatePlacementRequest.html"),
            (
                "blockDeviceMappings.*.ebs.volumeSize",
                1,
                65_536,
                "API_LaunchTemplateEbsBlockDeviceRequest.html",
            ),
        )
    ),
    (
        Refuser(
            "dlm/lifecyclePolicy:LifecyclePolicy",
            "CreateLifecyclePolicy",
            "InvalidRequestException",
        ),
        "policyDetails.schedules.*.retainRule.count",
        1,
        1000,
        "https://docs.aws.amazon.com/dlm/latest/APIReference/API_RetainRule.html",
    ),
    (
        Refuser(_NODES, "CreateNodegroup", "InvalidParameterException"),
        "scalingConfig.maxSize",
        1,
        450,
        "https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html",
    ),
    (
        Refuser(_NODES, "CreateNodegroup", "InvalidParameterException"),
        "diskSize",
        1,
        16_384,
        f"{_EKS}API_CreateNodegroup.html",
    ),
    (
        Refuser("lb/loadBalancer:LoadBalancer", "ModifyLoadBalancerAttributes", "ValidationError"),
        "idleTimeout",
        1,
        4000,
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_LoadBalancerAttribute.html",
    ),
)

enter(
    *(
        Pattern(of, path, form, f"Value '{{0}}' at '{path}' is not valid", source)
        for of, path, form, source in FORMS
    )
)
enter_bounds(*(Bounds(*row) for row in RANGES))
