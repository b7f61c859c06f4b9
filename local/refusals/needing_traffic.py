"""Lists what load balancers, records and functions need or rule out: a line each."""

from __future__ import annotations

from local.refusals.conditions import ABSENT, GIVEN, Condition, Service, enter

_ELB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/api/"
_DNS = "https://docs.aws.amazon.com/Route53/latest/APIReference/"
_LAYER_4 = ("TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC")
_PARAMETER = "InvalidParameterValueException"
_FUNCTION = Service("lambda/function:Function", "CreateFunction", _PARAMETER)
_MAPPING = Service(
    "lambda/eventSourceMapping:EventSourceMapping", "CreateEventSourceMapping", _PARAMETER
)
_PERMISSION = Service("lambda/permission:Permission", "AddPermission", _PARAMETER)
_LISTENER = Service("lb/listener:Listener", "ModifyListenerAttributes", "ValidationError")
_ACTION = Service("lb/listener:Listener", "CreateListener", "ValidationError")
_BALANCER = Service("lb/loadBalancer:LoadBalancer", "CreateLoadBalancer", "ValidationError")
_TARGETS = Service("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", "ValidationError")
_RECORD = Service("route53/record:Record", "ChangeResourceRecordSets", "InvalidInput")
# A record has one of them at most.
_ROUTINGS = (
    *("failoverRoutingPolicies", "geolocationRoutingPolicies", "latencyRoutingPolicies"),
    "weightedRoutingPolicies",
)

enter(
    Condition(
        _FUNCTION,
        "",
        {"packageType": ("Image",)},
        f"{_LAMBDA}API_CreateFunction.html",
        needs=("imageUri",),
        forbids=("handler", "runtime", "layers"),
    ),
    Condition(
        _FUNCTION,
        "",
        {"packageType": (ABSENT, "Zip")},
        f"{_LAMBDA}API_CreateFunction.html",
        forbids=("imageConfig", "imageUri"),
    ),
    Condition(
        _FUNCTION,
        "",
        {"packageType": (ABSENT, "Zip"), "s3Bucket": (ABSENT,)},
        f"{_LAMBDA}API_FunctionCode.html",
        needs=("code",),
    ),
    Condition(
        _FUNCTION,
        "",
        {"s3Bucket": (GIVEN,)},
        f"{_LAMBDA}API_FunctionCode.html",
        needs=("s3Key",),
    ),
    Condition(
        _FUNCTION,
        "",
        {"fileSystemConfig": (GIVEN,)},
        f"{_LAMBDA}API_FileSystemConfig.html",
        needs=("vpcConfig",),
    ),
    Condition(
        _MAPPING,
        "",
        {"startingPosition": ("AT_TIMESTAMP",)},
        f"{_LAMBDA}API_CreateEventSourceMapping.html",
        needs=("startingPositionTimestamp",),
    ),
    Condition(
        _MAPPING,
        "",
        {"scalingConfig": (GIVEN,)},
        f"{_LAMBDA}API_CreateEventSourceMapping.html",
        forbids=("provisionedPollerConfig",),
    ),
    Condition(
        _PERMISSION,
        "",
        {"action": ("lambda:InvokeFunction",), "invokedViaFunctionUrl": (ABSENT, "False")},
        f"{_LAMBDA}API_AddPermission.html",
        forbids=("functionUrlAuthType",),
    ),
    Condition(
        _LISTENER,
        "",
        {"protocol": ("TLS", "UDP", "QUIC", "HTTP", "HTTPS", "TCP_QUIC")},
        f"{_ELB}API_ListenerAttribute.html",
        forbids=("tcpIdleTimeoutSeconds",),
    ),
    Condition(
        _LISTENER,
        "",
        {"protocol": (*_LAYER_4, "HTTP")},
        f"{_ELB}API_MutualAuthenticationAttributes.html",
        forbids=("mutualAuthentication",),
    ),
    Condition(
        _LISTENER,
        "",
        {"protocol": _LAYER_4},
        f"{_ELB}API_ListenerAttribute.html",
        forbids=("routingHttpResponseServerEnabled",),
    ),
    *(
        Condition(
            _ACTION,
            "defaultActions.*",
            {"type": (kind,)},
            f"{_ELB}API_Action.html",
            needs=(block,),
        )
        for kind, block in (
            *(("fixed-response", "fixedResponse"), ("redirect", "redirect")),
            *(("authenticate-cognito", "authenticateCognito"),),
            *(("authenticate-oidc", "authenticateOidc"),),
        )
    ),
    *(
        Condition(
            _RECORD,
            "",
            {one: (GIVEN,)},
            f"{_DNS}API_ResourceRecordSet.html",
            forbids=tuple(each for each in _ROUTINGS if each != one),
        )
        for one in _ROUTINGS
    ),
    Condition(
        _BALANCER,
        "",
        {"enablePrefixForIpv6SourceNat": ("on",), "ipAddressType": (ABSENT, "ipv4")},
        f"{_ELB}API_CreateLoadBalancer.html",
        needs=("(the address type dualstack)",),
    ),
    Condition(
        _BALANCER,
        "",
        {"loadBalancerType": ("gateway",)},
        f"{_ELB}API_CreateLoadBalancer.html",
        forbids=("securityGroups", "internal"),
    ),
    Condition(
        _BALANCER,
        "",
        {
            "loadBalancerType": ("network", "gateway"),
            "ipAddressType": ("dualstack-without-public-ipv4",),
        },
        f"{_ELB}API_CreateLoadBalancer.html",
        needs=("(the type application)",),
    ),
    Condition(
        _TARGETS,
        "",
        {"protocol": _LAYER_4},
        f"{_ELB}API_TargetGroupAttribute.html",
        forbids=(
            *("slowStart", "loadBalancingAlgorithmType", "loadBalancingAnomalyMitigation"),
            *("protocolVersion", "targetFailovers", "lambdaMultiValueHeadersEnabled"),
        ),
    ),
    Condition(
        _TARGETS,
        "",
        {"protocol": ("HTTP", "HTTPS")},
        f"{_ELB}API_TargetGroupAttribute.html",
        forbids=("connectionTermination", "proxyProtocolV2", "targetHealthStates"),
    ),
    Condition(
        _TARGETS,
        "",
        {
            "loadBalancingAnomalyMitigation": ("on",),
            "loadBalancingAlgorithmType": (ABSENT, "round_robin", "least_outstanding_requests"),
        },
        f"{_ELB}API_TargetGroupAttribute.html",
        needs=("(the algorithm weighted_random)",),
    ),
    Condition(
        _TARGETS,
        "targetHealthStates.*",
        {"enableUnhealthyConnectionTermination": ("True",)},
        f"{_ELB}API_TargetGroupAttribute.html",
        forbids=("unhealthyDrainingInterval",),
    ),
    Condition(
        _TARGETS,
        "",
        {
            "protocol": ("UDP", "TCP_UDP", "QUIC", "TCP_QUIC"),
            "preserveClientIp": ("false", "False"),
        },
        f"{_ELB}API_TargetGroupAttribute.html",
        needs=("(clients' addresses kept)",),
    ),
    Condition(
        _RECORD,
        "geolocationRoutingPolicies.*",
        {"continent": (GIVEN,)},
        f"{_DNS}API_GeoLocation.html",
        forbids=("country", "subdivision"),
    ),
    Condition(
        _RECORD,
        "geolocationRoutingPolicies.*",
        {"subdivision": (GIVEN,)},
        f"{_DNS}API_GeoLocation.html",
        needs=("country",),
    ),
    Condition(
        _RECORD,
        "",
        {"multivalueAnswerRoutingPolicy": ("True",)},
        f"{_DNS}API_ResourceRecordSet.html",
        forbids=("aliases",),
    ),
)
