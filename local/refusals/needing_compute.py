"""Lists what groups, templates, networks and clusters need or rule out: a line each."""

from __future__ import annotations

from local.refusals.conditions import ABSENT, GIVEN, InputCondition, enter_conditions
from local.refusals.limits import Refuser

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_TEMPLATE = Refuser(
    "ec2/launchTemplate:LaunchTemplate", "RunInstances", "InvalidParameterCombination"
)
_SUBNET = Refuser("ec2/subnet:Subnet", "CreateSubnet", "InvalidParameterCombination")
_CLUSTER = Refuser("eks/cluster:Cluster", "CreateCluster", "InvalidParameterException")

enter_conditions(
    Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError"),
    f"{_SCALING}API_InstancesDistribution.html",
    InputCondition(
        {
            "spotAllocationStrategy": (
                *("capacity-optimized", "capacity-optimized-prioritized"),
                "price-capacity-optimized",
            )
        },
        forbids=("spotInstancePools",),
        base="mixedInstancesPolicy.instancesDistribution",
    ),
)
enter_conditions(
    _TEMPLATE,
    f"{_EC2}API_LaunchTemplateSpotMarketOptionsRequest.html",
    InputCondition(
        {
            "spotInstanceType": (ABSENT, "one-time"),
            "instanceInterruptionBehavior": ("stop", "hibernate"),
        },
        needs=("(a persistent request)",),
        base="instanceMarketOptions.spotOptions",
    ),
)
enter_conditions(
    _TEMPLATE,
    f"{_EC2}API_LaunchTemplateCpuOptionsRequest.html",
    InputCondition({"coreCount": (GIVEN,)}, needs=("threadsPerCore",), base="cpuOptions"),
)
enter_conditions(
    _TEMPLATE,
    f"{_EC2}API_LaunchTemplateEnclaveOptionsRequest.html",
    InputCondition(
        {"enabled": ("True",)}, forbids=("^hibernationOptions.configured",), base="enclaveOptions"
    ),
)
enter_conditions(
    _TEMPLATE,
    f"{_EC2}API_LaunchTemplatePlacementRequest.html",
    InputCondition({"affinity": (GIVEN,)}, needs=("hostId",), base="placement"),
)
enter_conditions(
    _TEMPLATE,
    f"{_EC2}API_InstanceRequirementsRequest.html",
    InputCondition(
        {"allowedInstanceTypes": (GIVEN,)},
        forbids=("excludedInstanceTypes",),
        base="instanceRequirements",
    ),
)
enter_conditions(
    Refuser("ec2/vpc:Vpc", "CreateVpc", "MissingParameter"),
    f"{_EC2}API_CreateVpc.html",
    InputCondition(
        {"ipv4IpamPoolId": (ABSENT,)}, needs=("cidrBlock",), forbids=("ipv4NetmaskLength",)
    ),
    InputCondition(
        {"ipv6CidrBlockNetworkBorderGroup": (GIVEN,)}, needs=("assignGeneratedIpv6CidrBlock",)
    ),
)
enter_conditions(
    Refuser("ec2/vpc:Vpc", "ModifyVpcAttribute", "InvalidParameterValue"),
    f"{_EC2}API_ModifyVpcAttribute.html",
    InputCondition({"enableDnsSupport": ("False",)}, forbids=("enableDnsHostnames",)),
)
enter_conditions(
    _SUBNET,
    f"{_EC2}API_CreateSubnet.html",
    InputCondition({"ipv6Native": ("True",)}, needs=("ipv6CidrBlock",), forbids=("cidrBlock",)),
    InputCondition(
        {"ipv6Native": (ABSENT, "False"), "ipv4IpamPoolId": (ABSENT,)}, needs=("cidrBlock",)
    ),
)
enter_conditions(
    _SUBNET,
    f"{_EC2}API_ModifySubnetAttribute.html",
    InputCondition(
        {"ipv6Native": ("True",), "privateDnsHostnameTypeOnLaunch": ("ip-name",)},
        needs=("(names by the instances' ids)",),
    ),
    *(
        InputCondition({key: ("True",), "ipv6IpamPoolId": (ABSENT,)}, needs=("ipv6CidrBlock",))
        for key in ("assignIpv6AddressOnCreation", "enableDns64")
    ),
    InputCondition(
        {"mapCustomerOwnedIpOnLaunch": ("True",)}, needs=("customerOwnedIpv4Pool", "outpostArn")
    ),
)
enter_conditions(
    Refuser("ec2/eip:Eip", "AssociateAddress", "InvalidParameterCombination"),
    f"{_EC2}API_AssociateAddress.html",
    InputCondition({"instance": (GIVEN,)}, forbids=("networkInterface",)),
)
enter_conditions(
    Refuser("ec2/natGateway:NatGateway", "CreateNatGateway", "InvalidParameter"),
    f"{_EC2}API_CreateNatGateway.html",
    InputCondition(
        {"connectivityType": (ABSENT, "public")}, forbids=("secondaryPrivateIpAddressCount",)
    ),
    InputCondition({"connectivityType": ("private",)}, forbids=("secondaryAllocationIds",)),
    InputCondition({"availabilityMode": (ABSENT, "zonal")}, needs=("subnetId",)),
    InputCondition(
        {"availabilityMode": ("regional",)}, needs=("vpcId",), forbids=("subnetId", "allocationId")
    ),
)
enter_conditions(
    Refuser("ec2/route:Route", "CreateRoute", "InvalidParameterCombination"),
    f"{_EC2}API_CreateRoute.html",
    InputCondition(
        {"destinationCidrBlock": (GIVEN,)},
        forbids=("destinationIpv6CidrBlock", "destinationPrefixListId", "egressOnlyGatewayId"),
    ),
)
enter_conditions(
    Refuser(
        "ec2/routeTableAssociation:RouteTableAssociation", "AssociateRouteTable", "MissingParameter"
    ),
    f"{_EC2}API_AssociateRouteTable.html",
    InputCondition({"gatewayId": (ABSENT,)}, needs=("subnetId",)),
)
enter_conditions(
    _CLUSTER,
    f"{_EKS}API_ComputeConfigRequest.html",
    InputCondition({"nodePools": (GIVEN,)}, needs=("nodeRoleArn",), base="computeConfig"),
    InputCondition(
        {"enabled": ("True",), "^accessConfig.authenticationMode": ("CONFIG_MAP",)},
        needs=("(an authentication mode with API)",),
        base="computeConfig",
    ),
)
enter_conditions(
    _CLUSTER,
    f"{_EKS}API_CreateAccessConfigRequest.html",
    InputCondition(
        {
            "authenticationMode": ("CONFIG_MAP",),
            "bootstrapClusterCreatorAdminPermissions": ("False",),
        },
        needs=("(bootstrapClusterCreatorAdminPermissions: true)",),
        base="accessConfig",
    ),
)
enter_conditions(
    _CLUSTER,
    f"{_EKS}API_CreateCluster.html",
    InputCondition(
        {"enabled": ("True",), "^bootstrapSelfManagedAddons": ("True",)},
        needs=("(bootstrapSelfManagedAddons: false)",),
        base="computeConfig",
    ),
)
enter_conditions(
    _CLUSTER,
    f"{_EKS}API_RemoteNetworkConfigRequest.html",
    InputCondition(
        {"remotePodNetworks": (GIVEN,)}, needs=("remoteNodeNetworks",), base="remoteNetworkConfig"
    ),
)
enter_conditions(
    Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException"),
    f"{_EKS}API_RemoteAccessConfig.html",
    InputCondition({"sourceSecurityGroupIds": (GIVEN,)}, needs=("ec2SshKey",), base="remoteAccess"),
)
enter_conditions(
    Refuser("eks/addon:Addon", "CreateAddon", "InvalidParameterException"),
    f"{_EKS}API_CreateAddon.html",
    InputCondition({"serviceAccountRoleArn": (GIVEN,)}, forbids=("podIdentityAssociations",)),
)
