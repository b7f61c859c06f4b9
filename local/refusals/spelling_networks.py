"""Forms and ranges of what nodes, addresses and names are called: EC2, EKS, load balancers, DNS."""

from __future__ import annotations

from local.refusals.bounds import Bounds, enter_bounds
from local.refusals.limits import Refuser
from local.refusals.patterns import Pattern, enter
from local.refusals.regions import regions
from local.refusals.words import AllowedWords, enter_words

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/"
_ELB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/"
_DNS = "https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/ResourceRecordTypes.html"
_TEMPLATE = "ec2/launchTemplate:LaunchTemplate"
_BYTE = r"(25[0-5]|2[0-4]\d|1\d{2}|[1-9]?\d)"
ADDRESS = rf"({_BYTE}\.){{3}}{_BYTE}"
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_INTERFACES = "networkInterfaces.*"

enter(
    *(
        Pattern(Refuser(token, operation, code), path, ADDRESS, "Invalid IPv4 address: {0}", source)
        for token, path, operation, code, source in (
            *(
                (
                    _TEMPLATE,
                    f"{_INTERFACES}.{key}",
                    "RunInstances",
                    "InvalidParameterValue",
                    f"{_EC2}API_LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.html",
                )
                for key in ("privateIpAddress", "ipv4Addresses.*")
            ),
            (
                "ec2/natGateway:NatGateway",
                "privateIp",
                "CreateNatGateway",
                "InvalidParameterValue",
                f"{_EC2}API_CreateNatGateway.html",
            ),
            (
                "ec2/eip:Eip",
                "associateWithPrivateIp",
                "AssociateAddress",
                "InvalidParameterValue",
                f"{_EC2}API_AssociateAddress.html",
            ),
            (
                "ec2/vpcEndpoint:VpcEndpoint",
                "subnetConfigurations.*.ipv4",
                "CreateVpcEndpoint",
                "InvalidParameterValue",
                f"{_EC2}API_SubnetConfiguration.html",
            ),
            (
                "lb/loadBalancer:LoadBalancer",
                "subnetMappings.*.privateIpv4Address",
                "CreateLoadBalancer",
                "ValidationError",
                f"{_ELB}APIReference/API_SubnetMapping.html",
            ),
        )
    ),
    *(
        Pattern(
            Refuser(_TEMPLATE, "RunInstances", code),
            f"{_INTERFACES}.{key}",
            rf"{prefix}-.+",
            f'Invalid id: "{{0}}" (expecting "{prefix}-...")',
            f"{_EC2}errors-overview.html",
        )
        for key, prefix, code in (
            ("networkInterfaceId", "eni", "InvalidNetworkInterfaceID.Malformed"),
            ("securityGroups.*", "sg", "InvalidGroupId.Malformed"),
            ("subnetId", "subnet", "InvalidSubnetID.Malformed"),
        )
    ),
    Pattern(
        Refuser(_TEMPLATE, "CreateLaunchTemplate", "Invalid Attribute Value"),
        "licenseSpecifications.*.licenseConfigurationArn",
        r"arn:aws[a-z-]*:license-manager:.+",
        "{0} is an invalid ARN of a license configuration",
        f"{_EC2}API_LaunchTemplateLicenseConfigurationRequest.html",
    ),
    Pattern(
        Refuser(
            "dlm/lifecyclePolicy:LifecyclePolicy",
            "CreateLifecyclePolicy",
            "InvalidRequestException",
        ),
        "policyDetails.schedules.*.crossRegionCopyRules.*.target",
        r"arn:.+|[a-z]{2}(-[a-z]+)+-\d",
        "The target {0} of a copy is no region",
        "https://docs.aws.amazon.com/dlm/latest/APIReference/API_CrossRegionCopyRule.html",
    ),
    Pattern(
        Refuser(
            "eks/podIdentityAssociation:PodIdentityAssociation",
            "CreatePodIdentityAssociation",
            "InvalidParameterException",
        ),
        "namespace",
        _LABEL,
        "The namespace {0} is no label of DNS of 63 characters at most.",
        f"{_EKS}APIReference/API_CreatePodIdentityAssociation.html",
    ),
    Pattern(
        Refuser(
            "eks/podIdentityAssociation:PodIdentityAssociation",
            "CreatePodIdentityAssociation",
            "InvalidParameterException",
        ),
        "serviceAccount",
        r".{1,253}",
        "The service account {0} has more than 253 characters.",
        f"{_EKS}APIReference/API_CreatePodIdentityAssociation.html",
    ),
    Pattern(
        Refuser(
            "eks/accessPolicyAssociation:AccessPolicyAssociation",
            "AssociateAccessPolicy",
            "InvalidParameterException",
        ),
        "accessScope.namespaces.*",
        r"[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?",
        "The namespace {0} is not valid.",
        f"{_EKS}userguide/access-policies.html",
    ),
    Pattern(
        Refuser("eks/accessEntry:AccessEntry", "CreateAccessEntry", "InvalidParameterException"),
        "kubernetesGroups.*",
        r"\S(.*\S)?",
        "The kubernetes group name {0} is invalid.",
        f"{_EKS}userguide/creating-access-entries.html",
    ),
    Pattern(
        Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
        "taints.*.key",
        r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
        "Taint key {0} is invalid",
        f"{_EKS}APIReference/API_Taint.html",
    ),
    Pattern(
        Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
        "taints.*.value",
        r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?",
        "Taint value {0} is invalid",
        f"{_EKS}APIReference/API_Taint.html",
    ),
    Pattern(
        Refuser(_TEMPLATE, "RunInstances", "InvalidParameterValue"),
        "iamInstanceProfile.name",
        r"[\w+=,.@-]{1,128}",
        "Value ({0}) for parameter iamInstanceProfile.name is invalid.",
        "https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateInstanceProfile.html",
    ),
    Pattern(
        Refuser(_TEMPLATE, "RunInstances", "InvalidParameterValue"),
        "placement.availabilityZone",
        r"[a-z]{2,4}(-[a-z]+)+-\d([a-z]|(-[a-z0-9]+)+)",
        "Invalid availability zone: [{0}]",
        f"{_EC2}API_Placement.html",
    ),
    Pattern(
        Refuser(_TEMPLATE, "RunInstances", "InvalidCapacityReservationId.Malformed"),
        "capacityReservationSpecification.capacityReservationTarget.capacityReservationId",
        r"cr-[0-9a-f]{8,17}",
        'Invalid id: "{0}" (expecting "cr-...")',
        f"{_EC2}API_CapacityReservationTarget.html",
    ),
    Pattern(
        Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", "ValidationError"),
        "stickiness.cookieName",
        r"(?!AWSALB).+",
        "The name {0} of a cookie is reserved for the load balancer's own",
        f"{_ELB}application/edit-target-group-attributes.html",
    ),
    Pattern(
        Refuser("lb/listener:Listener", "CreateListener", "CertificateNotFound"),
        "certificateArn",
        r"arn:aws[a-z-]*:(acm:[a-z0-9-]+:\d{12}:certificate/.+|iam::\d{12}:server-certificate/.+)",
        "Certificate ARN '{0}' is not valid",
        f"{_ELB}APIReference/API_Certificate.html",
    ),
    Pattern(
        Refuser(
            "lb/loadBalancer:LoadBalancer",
            "ModifyLoadBalancerAttributes",
            "InvalidConfigurationRequest",
        ),
        "accessLogs.prefix",
        r"(?!.*AWSLogs)(?!/)(?!.*/$).+",
        "The prefix {0} may not contain AWSLogs, nor begin or end with a slash",
        f"{_ELB}network/load-balancer-access-logs.html",
    ),
)
enter_bounds(
    Bounds(
        Refuser("ec2/vpc:Vpc", "CreateVpc", "InvalidParameterValue"),
        "ipv4NetmaskLength",
        16,
        28,
        f"{_EC2}API_CreateVpc.html",
    ),
    *(
        Bounds(
            Refuser("cloudwatch/eventTarget:EventTarget", "PutTargets", "ValidationException"),
            f"batchTarget.{key}",
            least,
            most,
            "https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_BatchParameters.html",
        )
        for key, least, most in (("arraySize", 2, 10_000), ("jobAttempts", 1, 10))
    ),
)
enter_words(
    # EC2-Classic, whose addresses were standard, is no more.
    AllowedWords(
        Refuser("ec2/eip:Eip", "AllocateAddress", "InvalidParameterValue"),
        "domain",
        ("vpc",),
        f"{_EC2}API_AllocateAddress.html",
    ),
    AllowedWords(
        Refuser(
            "ec2/vpcEndpointService:VpcEndpointService",
            "ModifyVpcEndpointServiceConfiguration",
            "InvalidParameter",
        ),
        "supportedRegions.*",
        tuple(sorted(regions())),
        f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
    ),
    # RequestLaunchTemplateData, TagSpecifications: what a launch makes.
    AllowedWords(
        Refuser(_TEMPLATE, "CreateLaunchTemplate", "InvalidParameterValue"),
        "tagSpecifications.*.resourceType",
        ("elastic-gpu", "instance", "network-interface", "spot-instances-request", "volume"),
        f"{_EC2}API_RequestLaunchTemplateData.html",
    ),
)
