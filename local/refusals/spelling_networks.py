"""Forms and ranges of what nodes, addresses and names are called: EC2, EKS, load balancers, DNS."""

from __future__ import annotations

from local.refusals.bounds import enter_bounds
from local.refusals.limits import Refuser
from local.refusals.patterns import enter_patterns
from local.refusals.regions import regions
from local.refusals.words import enter_words

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/"
_ELB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/"
_TEMPLATE = "ec2/launchTemplate:LaunchTemplate"
_LAUNCH = Refuser(_TEMPLATE, "RunInstances", "InvalidParameterValue")
_IDENTITY = Refuser(
    "eks/podIdentityAssociation:PodIdentityAssociation",
    "CreatePodIdentityAssociation",
    "InvalidParameterException",
)
_BYTE = r"(25[0-5]|2[0-4]\d|1\d{2}|[1-9]?\d)"
# What an input that is one address must match, and how another is refused.
_ADDRESS = (rf"({_BYTE}\.){{3}}{_BYTE}", "Invalid IPv4 address: {0}")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_INTERFACES = "networkInterfaces.*"

enter_patterns(
    _LAUNCH,
    f"{_EC2}API_LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.html",
    (f"{_INTERFACES}.privateIpAddress", *_ADDRESS),
    (f"{_INTERFACES}.ipv4Addresses.*", *_ADDRESS),
)
enter_patterns(
    Refuser("ec2/natGateway:NatGateway", "CreateNatGateway", "InvalidParameterValue"),
    f"{_EC2}API_CreateNatGateway.html",
    ("privateIp", *_ADDRESS),
)
enter_patterns(
    Refuser("ec2/eip:Eip", "AssociateAddress", "InvalidParameterValue"),
    f"{_EC2}API_AssociateAddress.html",
    ("associateWithPrivateIp", *_ADDRESS),
)
enter_patterns(
    Refuser("ec2/vpcEndpoint:VpcEndpoint", "CreateVpcEndpoint", "InvalidParameterValue"),
    f"{_EC2}API_SubnetConfiguration.html",
    ("subnetConfigurations.*.ipv4", *_ADDRESS),
)
enter_patterns(
    Refuser("lb/loadBalancer:LoadBalancer", "CreateLoadBalancer", "ValidationError"),
    f"{_ELB}APIReference/API_SubnetMapping.html",
    ("subnetMappings.*.privateIpv4Address", *_ADDRESS),
)
for key, prefix, code in (
    ("networkInterfaceId", "eni", "InvalidNetworkInterfaceID.Malformed"),
    ("securityGroups.*", "sg", "InvalidGroupId.Malformed"),
    ("subnetId", "subnet", "InvalidSubnetID.Malformed"),
):
    enter_patterns(
        Refuser(_TEMPLATE, "RunInstances", code),
        f"{_EC2}errors-overview.html",
        (
            f"{_INTERFACES}.{key}",
            rf"{prefix}-.+",
            f'Invalid id: "{{0}}" (expecting "{prefix}-...")',
        ),
    )
enter_patterns(
    Refuser(_TEMPLATE, "CreateLaunchTemplate", "Invalid Attribute Value"),
    f"{_EC2}API_LaunchTemplateLicenseConfigurationRequest.html",
    (
        "licenseSpecifications.*.licenseConfigurationArn",
        r"arn:aws[a-z-]*:license-manager:.+",
        "{0} is an invalid ARN of a license configuration",
    ),
)
enter_patterns(
    Refuser(
        "dlm/lifecyclePolicy:LifecyclePolicy", "CreateLifecyclePolicy", "InvalidRequestException"
    ),
    "https://docs.aws.amazon.com/dlm/latest/APIReference/API_CrossRegionCopyRule.html",
    (
        "policyDetails.schedules.*.crossRegionCopyRules.*.target",
        r"arn:.+|[a-z]{2}(-[a-z]+)+-\d",
        "The target {0} of a copy is no region",
    ),
)
enter_patterns(
    _IDENTITY,
    f"{_EKS}APIReference/API_CreatePodIdentityAssociation.html",
    (
        "namespace",
        _LABEL,
        "The namespace {0} is no label of DNS of 63 characters at most.",
    ),
    (
        "serviceAccount",
        r".{1,253}",
        "The service account {0} has more than 253 characters.",
    ),
)
enter_patterns(
    Refuser(
        "eks/accessPolicyAssociation:AccessPolicyAssociation",
        "AssociateAccessPolicy",
        "InvalidParameterException",
    ),
    f"{_EKS}userguide/access-policies.html",
    (
        "accessScope.namespaces.*",
        r"[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?",
        "The namespace {0} is not valid.",
    ),
)
enter_patterns(
    Refuser("eks/accessEntry:AccessEntry", "CreateAccessEntry", "InvalidParameterException"),
    f"{_EKS}userguide/creating-access-entries.html",
    ("kubernetesGroups.*", r"\S(.*\S)?", "The kubernetes group name {0} is invalid."),
)
enter_patterns(
    Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
    f"{_EKS}APIReference/API_Taint.html",
    (
        "taints.*.key",
        r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
        "Taint key {0} is invalid",
    ),
    (
        "taints.*.value",
        r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?",
        "Taint value {0} is invalid",
    ),
)
enter_patterns(
    _LAUNCH,
    "https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateInstanceProfile.html",
    (
        "iamInstanceProfile.name",
        r"[\w+=,.@-]{1,128}",
        "Value ({0}) for parameter iamInstanceProfile.name is invalid.",
    ),
)
enter_patterns(
    _LAUNCH,
    f"{_EC2}API_Placement.html",
    (
        "placement.availabilityZone",
        r"[a-z]{2,4}(-[a-z]+)+-\d([a-z]|(-[a-z0-9]+)+)",
        "Invalid availability zone: [{0}]",
    ),
)
enter_patterns(
    Refuser(_TEMPLATE, "RunInstances", "InvalidCapacityReservationId.Malformed"),
    f"{_EC2}API_CapacityReservationTarget.html",
    (
        "capacityReservationSpecification.capacityReservationTarget.capacityReservationId",
        r"cr-[0-9a-f]{8,17}",
        'Invalid id: "{0}" (expecting "cr-...")',
    ),
)
enter_patterns(
    Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", "ValidationError"),
    f"{_ELB}application/edit-target-group-attributes.html",
    (
        "stickiness.cookieName",
        r"(?!AWSALB).+",
        "The name {0} of a cookie is reserved for the load balancer's own",
    ),
)
enter_patterns(
    Refuser("lb/listener:Listener", "CreateListener", "CertificateNotFound"),
    f"{_ELB}APIReference/API_Certificate.html",
    (
        "certificateArn",
        r"arn:aws[a-z-]*:(acm:[a-z0-9-]+:\d{12}:certificate/.+|iam::\d{12}:server-certificate/.+)",
        "Certificate ARN '{0}' is not valid",
    ),
)
enter_patterns(
    Refuser(
        "lb/loadBalancer:LoadBalancer",
        "ModifyLoadBalancerAttributes",
        "InvalidConfigurationRequest",
    ),
    f"{_ELB}network/load-balancer-access-logs.html",
    (
        "accessLogs.prefix",
        r"(?!.*AWSLogs)(?!/)(?!.*/$).+",
        "The prefix {0} may not contain AWSLogs, nor begin or end with a slash",
    ),
)

enter_bounds(
    Refuser("ec2/vpc:Vpc", "CreateVpc", "InvalidParameterValue"),
    f"{_EC2}API_CreateVpc.html",
    ("ipv4NetmaskLength", 16, 28),
)
enter_bounds(
    Refuser("cloudwatch/eventTarget:EventTarget", "PutTargets", "ValidationException"),
    "https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_BatchParameters.html",
    ("batchTarget.arraySize", 2, 10_000),
    ("batchTarget.jobAttempts", 1, 10),
)

enter_words(
    # EC2-Classic, whose addresses were standard, is no more.
    Refuser("ec2/eip:Eip", "AllocateAddress", "InvalidParameterValue"),
    f"{_EC2}API_AllocateAddress.html",
    ("domain", ("vpc",)),
)
enter_words(
    Refuser(
        "ec2/vpcEndpointService:VpcEndpointService",
        "ModifyVpcEndpointServiceConfiguration",
        "InvalidParameter",
    ),
    f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
    ("supportedRegions.*", tuple(sorted(regions()))),
)
enter_words(
    # RequestLaunchTemplateData, TagSpecifications: what a launch makes.
    Refuser(_TEMPLATE, "CreateLaunchTemplate", "InvalidParameterValue"),
    f"{_EC2}API_RequestLaunchTemplateData.html",
    (
        "tagSpecifications.*.resourceType",
        ("elastic-gpu", "instance", "network-interface", "spot-instances-request", "volume"),
    ),
)
