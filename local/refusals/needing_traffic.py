"""Lists what load balancers, records and functions need or rule out: a line each."""

from __future__ import annotations

from local.refusals.conditions import ABSENT, GIVEN, InputCondition, enter
from local.refusals.limits import Refuser

_ELB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/api/"
_DNS = "https://docs.aws.amazon.com/Route53/latest/APIReference/"
_LAYER_4 = ("TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC")
_PARAMETER = "InvalidParameterValueException"
_FUNCTION = Refuser("lambda/function:Function", "CreateFunction", _PARAMETER)
_MAPPING = Refuser(
    "lambda/eventSourceMapping:EventSourceMapping", "CreateEventSourceMapping", _PARAMETER
)
_PERMISSION = Refuser("lambda/permission:Permission", "AddPermission", _PARAMETER)
_LISTENER = Refuser("lb/listener:Listener", "ModifyListenerAttributes", "ValidationError")
_ACTION = Refuser("lb/listener:Listener", "CreateListener", "ValidationError")
_BALANCER = Refuser("lb/loadBalancer:LoadBalancer", "CreateLoadBalancer", "ValidationError")
_TARGETS = Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", "ValidationError")
_RECORD = Refuser("route53/record:Record", "ChangeResourceRecordSets", "InvalidInput")
# A record has one of them at most.
_ROUTINGS = (
    *("failoverRoutingPolicies", "geolocationRoutingPolicies", "latencyRoutingPolicies"),
    "weightedRoutingPolicies",
)

enter(
    InputCondition(
        _FUNCTION,
        "",
        {"packageType": ("Image",)},
        f"{_LAMBDA}API_CreateFunction.html",
        needs=("imageUri",),
        forbids=("handler", "runtime", "layers"),
    ),
    InputCondition(
        _FUNCTION,
        "",
        {"packageType": (ABSENT, "Zip")},
        f"{_LAMBDA}API_CreateFunction.html",
        forbids=("imageConfig", "imageUri"),
    ),
    InputCondition(
        _FUNCTION,
        "",
        {"packageType": (ABSENT, "Zip"), "s3Bucket": (ABSENT,)},
        f"{_LAMBDA}API_FunctionCode.html",
        needs=("code",),
    ),
    InputCondition(
        _FUNCTION,
        "",
        {"s3Bucket": (GIVEN,)},
        f"{_LAMBDA}API_FunctionCode.html",
        needs=("s3Key",),
    ),
    InputCondition(
        _FUNCTION,
        "",
        {"fileSystemConfig": (GIVEN,)},
        f"{_LAMBDA}API_FileSystemConfig.html",
        needs=("vpcConfig",),
    ),
    InputCondition(
        _MAPPING,
        "",
        {"startingPosition": ("AT_TIMESTAMP",)},
        f"{_LAMBDA}API_CreateEventSourceMapping.html",
        needs=("startingPositionTimestamp",),
    ),
    InputCondition(
        _MAPPING,
        "",
        {"scalingConfig": (GIVEN,)},
        f"{_LAMBDA}API_CreateEventSourceMapping.html",
        forbids=("provisionedPollerConfig",),
    ),
    InputCondition(
        _PERMISSION,
        "",
        {"action": ("lambda:InvokeFunction",), "invokedViaFunctionUrl": (ABSENT, "False")},
        f"{_LAMBDA}API_AddPermission.html",
        forbids=("functionUrlAuthType",),
    ),
    InputCondition(
        _LISTENER,
        "",
        {"protocol": ("TLS", "UDP", "QUIC", "HTTP", "HTTPS", "TCP_QUIC")},
        f"{_ELB}API_ListenerAttribute.html",
        forbids=("tcpIdleTimeoutSeconds",),
    ),
    InputCondition(
        _LISTENER,
        "",
        {"protocol": (*_LAYER_4, "HTTP")},
        f"{_ELB}API_MutualAuthenticationAttributes.html",
        forbids=("mutualAuthentication",),
    ),
    InputCondition(
        _LISTENER,
        "",
        {"protocol": _LAYER_4},
        f"{_ELB}API_ListenerAttribute.html",
        forbids=("routingHttpResponseServerEnabled",),
    ),
    *(
        InputCondition(
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
        InputCondition(
            _RECORD,
            "",
            {one: (GIVEN,)},
            f"{_DNS}API_ResourceRecordSet.html",
            forbids=tuple(each for each in _ROUTINGS if each != one),
        )
        for one in _ROUTINGS
    ),
    InputCondition(
        _BALANCER,
        "",
        {"enablePrefixForIpv6SourceNat": ("on",), "ipAddressType": (ABSENT, "ipv4")},
        f"{_ELB}API_CreateLoadBalancer.html",
        needs=("(the address type dualstack)",),
    ),
    InputCondition(
        _BALANCER,
        "",
        {"loadBalancerType": ("gateway",)},
        f"{_ELB}API_CreateLoadBalancer.html",
        forbids=("securityGroups", "internal"),
    ),
    InputCondition(
        _BALANCER,
        "",
        {
            "loadBalancerType": ("network", "gateway"),
            "ipAddressType": ("dualstack-without-public-ipv4",),
        },
        f"{_ELB}API_CreateLoadBalancer.html",
        needs=("(the type application)",),
    ),
    InputCondition(
        _TARGETS,
        "",
        {"protocol": _LAYER_4},
        f"{_ELB}API_TargetGroupAttribute.html",
        forbids=(
            *("slowStart", "loadBalancingAlgorithmType", "loadBalancingAnomalyMitigation"),
            *("protocolVersion", "targetFailovers", "lambdaMultiValueHeadersEnabled"),
        ),
    ),
    InputCondition(
        _TARGETS,
        "",
        {"protocol": ("HTTP", "HTTPS")},
        f"{_ELB}API_TargetGroupAttribute.html",
        forbids=(
            *("connectionTermination", "preserveClientIp", "proxyProtocolV2"),
            "targetHealthStates",
        ),
    ),
    *(
        InputCondition(
            _TARGETS,
            "stickiness",
            {"type": kinds, "^protocol": protocols},
            f"{_ELB}API_TargetGroupAttribute.html",
            needs=(needed,),
        )
        for kinds, protocols, needed in (
            (("source_ip",), ("HTTP", "HTTPS", "GENEVE"), "(a type that this protocol has)"),
            (
                ("source_ip_dest_ip", "source_ip_dest_ip_proto"),
                (*_LAYER_4, "HTTP", "HTTPS"),
                "(the protocol GENEVE)",
            ),
            (("app_cookie",), ("HTTP", "HTTPS"), "cookieName"),
        )
    ),
    InputCondition(
        _TARGETS,
        "healthCheck",
        {"enabled": ("False",), "^targetType": (ABSENT, "instance", "ip", "alb")},
        f"{_ELB}API_CreateTargetGroup.html",
        needs=("(health checks)",),
    ),
    InputCondition(
        _TARGETS,
        "",
        {"loadBalancingAlgorithmType": ("least_outstanding_requests", "weighted_random")},
        f"{_ELB}API_TargetGroupAttribute.html",
        forbids=("slowStart",),
    ),
    InputCondition(
        _BALANCER,
        "subnetMappings.*",
        {"ipv6Address": (GIVEN,), "^ipAddressType": (ABSENT, "ipv4")},
        f"{_ELB}API_SubnetMapping.html",
        needs=("(the address type dualstack)",),
    ),
    InputCondition(
        _TARGETS,
        "",
        {
            "loadBalancingAnomalyMitigation": ("on",),
            "loadBalancingAlgorithmType": (ABSENT, "round_robin", "least_outstanding_requests"),
        },
        f"{_ELB}API_TargetGroupAttribute.html",
        needs=("(the algorithm weighted_random)",),
    ),
    InputCondition(
        _TARGETS,
        "targetHealthStates.*",
        {"enableUnhealthyConnectionTermination": ("True",)},
        f"{_ELB}API_TargetGroupAttribute.html",
        forbids=("unhealthyDrainingInterval",),
    ),
    InputCondition(
        _TARGETS,
        "",
        {
            "protocol": ("UDP", "TCP_UDP", "QUIC", "TCP_QUIC"),
            "preserveClientIp": ("false", "False"),
        },
        f"{_ELB}API_TargetGroupAttribute.html",
        needs=("(clients' addresses kept)",),
    ),
    InputCondition(
        _RECORD,
        "geolocationRoutingPolicies.*",
        {"continent": (GIVEN,)},
        f"{_DNS}API_GeoLocation.html",
        forbids=("country", "subdivision"),
    ),
    InputCondition(
        _RECORD,
        "geolocationRoutingPolicies.*",
        {"subdivision": (GIVEN,)},
        f"{_DNS}API_GeoLocation.html",
        needs=("country",),
    ),
    InputCondition(
        _RECORD,
        "",
        {"multivalueAnswerRoutingPolicy": ("True",)},
        f"{_DNS}API_ResourceRecordSet.html",
        forbids=("aliases",),
    ),
)
