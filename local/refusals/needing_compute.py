"""Lists what groups, templates, networks and clusters need or rule out: a line each."""

from __future__ import annotations

from local.refusals.conditions import ABSENT, GIVEN, Condition, Service, enter

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_EKS = "https://docs.aws.amazon.com/eks/latest/APIReference/"
_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/"
_GROUP = Service("autoscaling/group:Group", "CreateAutoScalingGroup", "ValidationError")
_TEMPLATE = Service(
    "ec2/launchTemplate:LaunchTemplate", "RunInstances", "InvalidParameterCombination"
)
_VPC = Service("ec2/vpc:Vpc", "CreateVpc", "MissingParameter")
_DNS_OF_A_VPC = Service("ec2/vpc:Vpc", "ModifyVpcAttribute", "InvalidParameterValue")
_SUBNET = Service("ec2/subnet:Subnet", "CreateSubnet", "InvalidParameterCombination")
_ADDRESS = Service("ec2/eip:Eip", "AssociateAddress", "InvalidParameterCombination")
_NAT = Service("ec2/natGateway:NatGateway", "CreateNatGateway", "InvalidParameter")
_ROUTE = Service("ec2/route:Route", "CreateRoute", "InvalidParameterCombination")
_TABLES_OF = Service(
    "ec2/routeTableAssociation:RouteTableAssociation", "AssociateRouteTable", "MissingParameter"
)
_CLUSTER = Service("eks/cluster:Cluster", "CreateCluster", "InvalidParameterException")
_NODES = Service("eks/nodeGroup:NodeGroup", "CreateNodegroup", "InvalidParameterException")
_ADDON = Service("eks/addon:Addon", "CreateAddon", "InvalidParameterException")

enter(
    Condition(
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
    Condition(
        _TEMPLATE,
        "instanceMarketOptions.spotOptions",
        {
            "spotInstanceType": (ABSENT, "one-time"),
            "instanceInterruptionBehavior": ("stop", "hibernate"),
        },
        f"{_EC2}API_LaunchTemplateSpotMarketOptionsRequest.html",
        needs=("(a persistent request)",),
    ),
    Condition(
        _TEMPLATE,
        "cpuOptions",
        {"coreCount": (GIVEN,)},
        f"{_EC2}API_LaunchTemplateCpuOptionsRequest.html",
        needs=("threadsPerCore",),
    ),
    Condition(
        _TEMPLATE,
        "enclaveOptions",
        {"enabled": ("True",)},
        f"{_EC2}API_LaunchTemplateEnclaveOptionsRequest.html",
        forbids=("^hibernationOptions.configured",),
    ),
    Condition(
        _TEMPLATE,
        "placement",
        {"affinity": (GIVEN,)},
        f"{_EC2}API_LaunchTemplatePlacementRequest.html",
        needs=("hostId",),
    ),
    *(
        Condition(
            _TEMPLATE,
            base,
            {"allowedInstanceTypes": (GIVEN,)},
            f"{_EC2}API_InstanceRequirementsRequest.html",
            forbids=("excludedInstanceTypes",),
        )
        for base in ("instanceRequirements",)
    ),
    Condition(
        _VPC,
        "",
        {"ipv4IpamPoolId": (ABSENT,)},
        f"{_EC2}API_CreateVpc.html",
        needs=("cidrBlock",),
        forbids=("ipv4NetmaskLength",),
    ),
    Condition(
        _VPC,
        "",
        {"ipv6CidrBlockNetworkBorderGroup": (GIVEN,)},
        f"{_EC2}API_CreateVpc.html",
        needs=("assignGeneratedIpv6CidrBlock",),
    ),
    Condition(
        _DNS_OF_A_VPC,
        "",
        {"enableDnsSupport": ("False",)},
        f"{_EC2}API_ModifyVpcAttribute.html",
        forbids=("enableDnsHostnames",),
    ),
    Condition(
        _SUBNET,
        "",
        {"ipv6Native": ("True",)},
        f"{_EC2}API_CreateSubnet.html",
        needs=("ipv6CidrBlock",),
        forbids=("cidrBlock",),
    ),
    *(
        Condition(
            _SUBNET,
            "",
            {key: ("True",), "ipv6IpamPoolId": (ABSENT,)},
            f"{_EC2}API_ModifySubnetAttribute.html",
            needs=("ipv6CidrBlock",),
        )
        for key in ("assignIpv6AddressOnCreation", "enableDns64")
    ),
    Condition(
        _SUBNET,
        "",
        {"mapCustomerOwnedIpOnLaunch": ("True",)},
        f"{_EC2}API_ModifySubnetAttribute.html",
        needs=("customerOwnedIpv4Pool", "outpostArn"),
    ),
    Condition(
        _ADDRESS,
        "",
        {"instance": (GIVEN,)},
        f"{_EC2}API_AssociateAddress.html",
        forbids=("networkInterface",),
    ),
    Condition(
        _NAT,
        "",
        {"connectivityType": (ABSENT, "public")},
        f"{_EC2}API_CreateNatGateway.html",
        forbids=("secondaryPrivateIpAddressCount",),
    ),
    Condition(
        _NAT,
        "",
        {"connectivityType": ("private",)},
        f"{_EC2}API_CreateNatGateway.html",
        forbids=("secondaryAllocationIds",),
    ),
    Condition(
        _NAT,
        "",
        {"availabilityMode": (ABSENT, "zonal")},
        f"{_EC2}API_CreateNatGateway.html",
        needs=("subnetId",),
    ),
    Condition(
        _NAT,
        "",
        {"availabilityMode": ("regional",)},
        f"{_EC2}API_CreateNatGateway.html",
        needs=("vpcId",),
        forbids=("subnetId", "allocationId"),
    ),
    Condition(
        _ROUTE,
        "",
        {"destinationCidrBlock": (GIVEN,)},
        f"{_EC2}API_CreateRoute.html",
        forbids=("destinationIpv6CidrBlock", "destinationPrefixListId", "egressOnlyGatewayId"),
    ),
    Condition(
        _TABLES_OF,
        "",
        {"gatewayId": (ABSENT,)},
        f"{_EC2}API_AssociateRouteTable.html",
        needs=("subnetId",),
    ),
    Condition(
        _CLUSTER,
        "computeConfig",
        {"nodePools": (GIVEN,)},
        f"{_EKS}API_ComputeConfigRequest.html",
        needs=("nodeRoleArn",),
    ),
    Condition(
        _CLUSTER,
        "computeConfig",
        {"enabled": ("True",), "^accessConfig.authenticationMode": ("CONFIG_MAP",)},
        f"{_EKS}API_ComputeConfigRequest.html",
        needs=("(an authentication mode with API)",),
    ),
    Condition(
        _CLUSTER,
        "computeConfig",
        {"enabled": ("True",), "^bootstrapSelfManagedAddons": ("True",)},
        f"{_EKS}API_CreateCluster.html",
        needs=("(bootstrapSelfManagedAddons: false)",),
    ),
    Condition(
        _CLUSTER,
        "remoteNetworkConfig",
        {"remotePodNetworks": (GIVEN,)},
        f"{_EKS}API_RemoteNetworkConfigRequest.html",
        needs=("remoteNodeNetworks",),
    ),
    Condition(
        _NODES,
        "remoteAccess",
        {"sourceSecurityGroupIds": (GIVEN,)},
        f"{_EKS}API_RemoteAccessConfig.html",
        needs=("ec2SshKey",),
    ),
    Condition(
        _ADDON,
        "",
        {"serviceAccountRoleArn": (GIVEN,)},
        f"{_EKS}API_CreateAddon.html",
        forbids=("podIdentityAssociations",),
    ),
)
