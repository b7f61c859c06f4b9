"""Lists what groups, templates, networks and clusters need or rule out: a line each."""

from __future__ import annotations

from local.refusals.conditions import ABSENT, GIVEN, InputCondition, enter
from local.refusals.limits import Refuser

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_GROUP = Refuser("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError")
_TEMPLATE = Refuser(
    "ec2/launchTemplate:LaunchTemplate", "RunInstances", "InvalidParameterCombination"
)
_VPC = Refuser("ec2/vpc:Vpc", "CreateVpc", "MissingParameter")
_DNS_OF_A_VPC = Refuser("ec2/vpc:Vpc", "ModifyVpcAttribute", "InvalidParameterValue")
_SUBNET = Refuser("ec2/subnet:Subnet", "CreateSubnet", "InvalidParameterCombination")
_ADDRESS = Refuser("ec2/eip:Eip", "AssociateAddress", "InvalidParameterCombination")
_NAT = Refuser("ec2/natGateway:NatGateway", "CreateNatGateway", "InvalidParameter")
_ROUTE = Refuser("ec2/route:Route", "CreateRoute", "InvalidParameterCombination")
_TABLES_OF = Refuser(
    "ec2/routeTableAssociation:RouteTableAssociation", "AssociateRouteTable", "MissingParameter"
)
_CLUSTER = Refuser("eks/cluster:Cluster", "CreateCluster", "InvalidParameterException")
_NODES = Refuser("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException")
_ADDON = Refuser("eks/addon:Addon", "CreateAddon", "InvalidParameterException")

enter(
    InputCondition(
        _GROUP,
        "mixedInstancesPolicy.instancesDistribution",
        {
            "spotAllocationStrategy": (
                *("capacity-optimized", "capacity-optimized-prioritized"),
                "price-capacity-optimized",
            )
        },
        f"{_SCALING}API_InstancesDistribution.html",
        forbids=("spotInstancePools",),
    ),
    InputCondition(
        _TEMPLATE,
        "instanceMarketOptions.spotOptions",
        {
            "spotInstanceType": (ABSENT, "one-time"),
            "instanceInterruptionBehavior": ("stop", "hibernate"),
        },
        f"{_EC2}API_LaunchTemplateSpotMarketOptionsRequest.html",
        needs=("(a persistent request)",),
    ),
    InputCondition(
        _TEMPLATE,
        "cpuOptions",
        {"coreCount": (GIVEN,)},
        f"{_EC2}API_LaunchTemplateCpuOptionsRequest.html",
        needs=("threadsPerCore",),
    ),
    InputCondition(
        _TEMPLATE,
        "enclaveOptions",
        {"enabled": ("True",)},
        f"{_EC2}API_LaunchTemplateEnclaveOptionsRequest.html",
        forbids=("^hibernationOptions.configured",),
    ),
    InputCondition(
        _TEMPLATE,
        "placement",
        {"affinity": (GIVEN,)},
        f"{_EC2}API_LaunchTemplatePlacementRequest.html",
        needs=("hostId",),
    ),
    *(
        InputCondition(
            _TEMPLATE,
            base,
            {"allowedInstanceTypes": (GIVEN,)},
            f"{_EC2}API_InstanceRequirementsRequest.html",
            forbids=("excludedInstanceTypes",),
        )
        for base in ("instanceRequirements",)
    ),
    InputCondition(
        _VPC,
        "",
        {"ipv4IpamPoolId": (ABSENT,)},
        f"{_EC2}API_CreateVpc.html",
        needs=("cidrBlock",),
        forbids=("ipv4NetmaskLength",),
    ),
    InputCondition(
        _VPC,
        "",
        {"ipv6CidrBlockNetworkBorderGroup": (GIVEN,)},
        f"{_EC2}API_CreateVpc.html",
        needs=("assignGeneratedIpv6CidrBlock",),
    ),
    InputCondition(
        _DNS_OF_A_VPC,
        "",
        {"enableDnsSupport": ("False",)},
        f"{_EC2}API_ModifyVpcAttribute.html",
        forbids=("enableDnsHostnames",),
    ),
    InputCondition(
        _SUBNET,
        "",
        {"ipv6Native": ("True",)},
        f"{_EC2}API_CreateSubnet.html",
        needs=("ipv6CidrBlock",),
        forbids=("cidrBlock",),
    ),
    InputCondition(
        _SUBNET,
        "",
        {"ipv6Native": ("True",), "privateDnsHostnameTypeOnLaunch": ("ip-name",)},
        f"{_EC2}API_ModifySubnetAttribute.html",
        needs=("(names by the instances' ids)",),
    ),
    InputCondition(
        _SUBNET,
        "",
        {"ipv6Native": (ABSENT, "False"), "ipv4IpamPoolId": (ABSENT,)},
        f"{_EC2}API_CreateSubnet.html",
        needs=("cidrBlock",),
    ),
    *(
        InputCondition(
            _SUBNET,
            "",
            {key: ("True",), "ipv6IpamPoolId": (ABSENT,)},
            f"{_EC2}API_ModifySubnetAttribute.html",
            needs=("ipv6CidrBlock",),
        )
        for key in ("assignIpv6AddressOnCreation", "enableDns64")
    ),
    InputCondition(
        _SUBNET,
        "",
        {"mapCustomerOwnedIpOnLaunch": ("True",)},
        f"{_EC2}API_ModifySubnetAttribute.html",
        needs=("customerOwnedIpv4Pool", "outpostArn"),
    ),
    InputCondition(
        _ADDRESS,
        "",
        {"instance": (GIVEN,)},
        f"{_EC2}API_AssociateAddress.html",
        forbids=("networkInterface",),
    ),
    InputCondition(
        _NAT,
        "",
        {"connectivityType": (ABSENT, "public")},
        f"{_EC2}API_CreateNatGateway.html",
        forbids=("secondaryPrivateIpAddressCount",),
    ),
    InputCondition(
        _NAT,
        "",
        {"connectivityType": ("private",)},
        f"{_EC2}API_CreateNatGateway.html",
        forbids=("secondaryAllocationIds",),
    ),
    InputCondition(
        _NAT,
        "",
        {"availabilityMode": (ABSENT, "zonal")},
        f"{_EC2}API_CreateNatGateway.html",
        needs=("subnetId",),
    ),
    InputCondition(
        _NAT,
        "",
        {"availabilityMode": ("regional",)},
        f"{_EC2}API_CreateNatGateway.html",
        needs=("vpcId",),
        forbids=("subnetId", "allocationId"),
    ),
    InputCondition(
        _ROUTE,
        "",
        {"destinationCidrBlock": (GIVEN,)},
        f"{_EC2}API_CreateRoute.html",
        forbids=("destinationIpv6CidrBlock", "destinationPrefixListId", "egressOnlyGatewayId"),
    ),
    InputCondition(
        _TABLES_OF,
        "",
        {"gatewayId": (ABSENT,)},
        f"{_EC2}API_AssociateRouteTable.html",
        needs=("subnetId",),
    ),
    InputCondition(
        _CLUSTER,
        "computeConfig",
        {"nodePools": (GIVEN,)},
        f"{_EKS}API_ComputeConfigRequest.html",
        needs=("nodeRoleArn",),
    ),
    InputCondition(
        _CLUSTER,
        "accessConfig",
        {
            "authenticationMode": ("CONFIG_MAP",),
            "bootstrapClusterCreatorAdminPermissions": ("False",),
        },
        f"{_EKS}API_CreateAccessConfigRequest.html",
        needs=("(bootstrapClusterCreatorAdminPermissions: true)",),
    ),
    InputCondition(
        _CLUSTER,
        "computeConfig",
        {"enabled": ("True",), "^accessConfig.authenticationMode": ("CONFIG_MAP",)},
        f"{_EKS}API_ComputeConfigRequest.html",
        needs=("(an authentication mode with API)",),
    ),
    InputCondition(
        _CLUSTER,
        "computeConfig",
        {"enabled": ("True",), "^bootstrapSelfManagedAddons": ("True",)},
        f"{_EKS}API_CreateCluster.html",
        needs=("(bootstrapSelfManagedAddons: false)",),
    ),
    InputCondition(
        _CLUSTER,
        "remoteNetworkConfig",
        {"remotePodNetworks": (GIVEN,)},
        f"{_EKS}API_RemoteNetworkConfigRequest.html",
        needs=("remoteNodeNetworks",),
    ),
    InputCondition(
        _NODES,
        "remoteAccess",
        {"sourceSecurityGroupIds": (GIVEN,)},
        f"{_EKS}API_RemoteAccessConfig.html",
        needs=("ec2SshKey",),
    ),
    InputCondition(
        _ADDON,
        "",
        {"serviceAccountRoleArn": (GIVEN,)},
        f"{_EKS}API_CreateAddon.html",
        forbids=("podIdentityAssociations",),
    ),
)
