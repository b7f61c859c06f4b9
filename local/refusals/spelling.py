"""Forms and ranges of inputs that no model and no documentation of the provider's states."""

from __future__ import annotations

from local.refusals.bounds import MOST, Bounds, enter_bounds
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

# Token, input, form, operation, code, source.
FORMS: tuple[tuple[str, str, str, str, str, str], ...] = (
    (
        _GROUP,
        "mixedInstancesPolicy.launchTemplate.overrides.*.weightedCapacity",
        r"[1-9]\d{0,2}",
        "CreateAutoScalingGroup",
        "ValidationError",
        f"{_SCALING}API_LaunchTemplateOverrides.html",
    ),
    (
        _GROUP,
        "waitForCapacityTimeout",
        _WAIT,
        "the provider's check",
        "Invalid Attribute Value",
        "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/autoscaling_group",
    ),
    (
        _GROUP,
        "trafficSources.*.type",
        "elb|elbv2|vpc-lattice",
        "AttachTrafficSources",
        "ValidationError",
        f"{_SCALING}API_TrafficSourceIdentifier.html",
    ),
    (
        _GROUP,
        "serviceLinkedRoleArn",
        r"arn:aws[a-z-]*:iam::\d{12}:role/.+",
        "CreateAutoScalingGroup",
        "ValidationError",
        f"{_SCALING}API_CreateAutoScalingGroup.html",
    ),
    *(
        (
            _GROUP,
            f"instanceRefresh.preferences.{key}",
            words,
            "StartInstanceRefresh",
            "ValidationError",
            f"{_SCALING}API_RefreshPreferences.html",
        )
        for key, words in (
            ("scaleInProtectedInstances", "Refresh|Ignore|Wait"),
            ("standbyInstances", "Terminate|Ignore|Wait"),
        )
    ),
    *(
        (
            _TEMPLATE,
            path,
            form,
            "RunInstances",
            "InvalidParameterValue",
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
        "ec2/eip:Eip",
        "instance",
        r"i-[0-9a-f]{8,17}",
        "AssociateAddress",
        "InvalidInstanceID.Malformed",
        f"{_EC2}API_AssociateAddress.html",
    ),
    (
        "ec2/subnet:Subnet",
        "availabilityZoneId",
        r"[a-z]{3,4}\d-[a-z]*\d*-?az\d+",
        "CreateSubnet",
        "InvalidParameterValue",
        f"{_EC2}API_CreateSubnet.html",
    ),
    (
        "ec2/subnet:Subnet",
        "ipv6CidrBlock",
        r"[0-9a-fA-F:]+/(44|48|52|56|60|64)(?<!/60)",
        "CreateSubnet",
        "InvalidSubnet.Range",
        f"{_EC2}API_CreateSubnet.html",
    ),
    (
        "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation",
        "vpcEndpointId",
        r"vpce-.+",
        "ModifyVpcEndpoint",
        "InvalidVpcEndpointId.Malformed",
        f"{_EC2}API_ModifyVpcEndpoint.html",
    ),
    (
        "ec2/vpcEndpointService:VpcEndpointService",
        "privateDnsName",
        r"[A-Za-z0-9*]([A-Za-z0-9.-]*[A-Za-z0-9])?",
        "CreateVpcEndpointServiceConfiguration",
        "InvalidParameter",
        f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
    ),
    (
        _NODES,
        "launchTemplate.version",
        r"\d+|\$Latest|\$Default",
        "CreateNodegroup",
        "InvalidParameterException",
        f"{_EKS}API_LaunchTemplateSpecification.html",
    ),
    (
        _NODES,
        "version",
        r"1\.\d{2}",
        "CreateNodegroup",
        "InvalidParameterException",
        f"{_EKS}API_CreateNodegroup.html",
    ),
    *(
        (token, path, _NOT_LINKED, operation, "InvalidParameterException", source)
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
        "eks/podIdentityAssociation:PodIdentityAssociation",
        "targetRoleArn",
        r"arn:aws[a-z-]*:iam::\d{12}:role/.+",
        "CreatePodIdentityAssociation",
        "InvalidParameterException",
        f"{_EKS}API_CreatePodIdentityAssociation.html",
    ),
    (
        "kms/alias:Alias",
        "name",
        r"alias/[A-Za-z0-9/_-]+",
        "CreateAlias",
        "ValidationException",
        f"{_KMS}API_CreateAlias.html",
    ),
    *(
        (
            token,
            path,
            r"(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/)?[A-Za-z0-9-]+",
            operation,
            "NotFoundException",
            f"{_KMS}API_{operation}.html",
        )
        for token, path, operation in (
            ("kms/alias:Alias", "targetKeyId", "CreateAlias"),
            (_GRANT, "keyId", "CreateGrant"),
        )
    ),
    *(
        (
            _GRANT,
            path,
            _PRINCIPAL,
            "CreateGrant",
            "InvalidArnException",
            f"{_KMS}API_CreateGrant.html",
        )
        for path in ("granteePrincipal", "retiringPrincipal")
    ),
    (
        "lambda/function:Function",
        "deadLetterConfig.targetArn",
        r"(?!.*\.fifo$).+",
        "CreateFunction",
        "InvalidParameterValueException",
        "https://docs.aws.amazon.com/lambda/latest/api/API_DeadLetterConfig.html",
    ),
    *(
        (_RECORD, path, form, "ChangeResourceRecordSets", "InvalidInput", f"{_DNS}{page}")
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
        _OBJECT,
        "objectLockRetainUntilDate",
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})",
        "PutObject",
        "Invalid Attribute Value",
        f"{_S3}API_PutObject.html",
    ),
    *(
        (
            token,
            path,
            r"[A-Za-z0-9+/\s]*={0,2}",
            operation,
            "Invalid Attribute Value",
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
            "sns/topic:Topic",
            f"{kind}{way}FeedbackRoleArn",
            r"arn:aws[a-z-]*:iam::\d{12}:role/.+",
            "SetTopicAttributes",
            "InvalidParameter",
            "https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html",
        )
        for kind in ("application", "firehose", "http", "lambda", "sqs")
        for way in ("Failure", "Success")
    ),
    *(
        (
            token,
            "queueUrl",
            r"https?://.+",
            "SetQueueAttributes",
            "AWS.SimpleQueueService.NonExistentQueue",
            "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
        )
        for token in (
            "sqs/queuePolicy:QueuePolicy",
            "sqs/redriveAllowPolicy:RedriveAllowPolicy",
        )
    ),
    (
        "bcmdata/export:Export",
        "export.description",
        r".{0,1024}",
        "CreateExport",
        "ValidationException",
        "https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_DataExports_Export.html",
    ),
)
# Token, input, least, most, operation, code, source.
RANGES: tuple[tuple[str, str, float, float, str, str, str], ...] = (
    *(
        (
            _GROUP,
            path,
            least,
            most,
            "CreateAutoScalingGroup",
            "ValidationError",
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
        (_TEMPLATE, path, least, most, "RunInstances", "InvalidParameterValue", f"{_EC2}{page}")
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
        "dlm/lifecyclePolicy:LifecyclePolicy",
        "policyDetails.schedules.*.retainRule.count",
        1,
        1000,
        "CreateLifecyclePolicy",
        "InvalidRequestException",
        "https://docs.aws.amazon.com/dlm/latest/APIReference/API_RetainRule.html",
    ),
    (
        _NODES,
        "scalingConfig.maxSize",
        1,
        450,
        "CreateNodegroup",
        "InvalidParameterException",
        "https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html",
    ),
    (
        _NODES,
        "diskSize",
        1,
        16_384,
        "CreateNodegroup",
        "InvalidParameterException",
        f"{_EKS}API_CreateNodegroup.html",
    ),
    (
        "lb/loadBalancer:LoadBalancer",
        "idleTimeout",
        1,
        4000,
        "ModifyLoadBalancerAttributes",
        "ValidationError",
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_LoadBalancerAttribute.html",
    ),
)

enter(
    *(
        Pattern(
            token, path, form, operation, code, f"Value '{{0}}' at '{path}' is not valid", source
        )
        for token, path, form, operation, code, source in FORMS
    )
)
enter_bounds(*(Bounds(*row) for row in RANGES))
