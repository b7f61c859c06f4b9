"""Lists what load balancers, records and functions need or rule out: a line each."""

from __future__ import annotations

from local.refusals.conditions import ABSENT, GIVEN, InputCondition, enter_conditions
from local.refusals.limits import Refuser

_ELB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/api/"
_DNS = "https://docs.aws.amazon.com/Route53/latest/APIReference/"
_LAYER_4 = ("TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC")
_PARAMETER = "InvalidParameterValueException"
_FUNCTION = Refuser("lambda/function:Function", "CreateFunction", _PARAMETER)
_LISTENER = Refuser("lb/listener:Listener", "ModifyListenerAttributes", "ValidationError")
_BALANCER = Refuser("lb/loadBalancer:LoadBalancer", "CreateLoadBalancer", "ValidationError")
_TARGETS = Refuser("lb/targetGroup:TargetGroup", "ModifyTargetGroupAttributes", "ValidationError")
_RECORD = Refuser("route53/record:Record", "ChangeResourceRecordSets", "InvalidInput")
# A record has one of them at most.
_ROUTINGS = (
    *("failoverRoutingPolicies", "geolocationRoutingPolicies", "latencyRoutingPolicies"),
    "weightedRoutingPolicies",
)

enter_conditions(
    _FUNCTION,
    f"{_LAMBDA}API_CreateFunction.html",
    InputCondition(
        {"packageType": ("Image",)},
        needs=("imageUri",),
        forbids=("handler", "runtime", "layers"),
    ),
    InputCondition({"packageType": (ABSENT, "Zip")}, forbids=("imageConfig", "imageUri")),
)
enter_conditions(
    _FUNCTION,
    f"{_LAMBDA}API_FunctionCode.html",
    InputCondition({"packageType": (ABSENT, "Zip"), "s3Bucket": (ABSENT,)}, needs=("code",)),
    InputCondition({"s3Bucket": (GIVEN,)}, needs=("s3Key",)),
)
enter_conditions(
    _FUNCTION,
    f"{_LAMBDA}API_FileSystemConfig.html",
    InputCondition({"fileSystemConfig": (GIVEN,)}, needs=("vpcConfig",)),
)
enter_conditions(
    Refuser("lambda/eventSourceMapping:EventSourceMapping", "CreateEventSourceMapping", _PARAMETER),
    f"{_LAMBDA}API_CreateEventSourceMapping.html",
    InputCondition({"startingPosition": ("AT_TIMESTAMP",)}, needs=("startingPositionTimestamp",)),
    InputCondition({"scalingConfig": (GIVEN,)}, forbids=("provisionedPollerConfig",)),
)
enter_conditions(
    Refuser("lambda/permission:Permission", "AddPermission", _PARAMETER),
    f"{_LAMBDA}API_AddPermission.html",
    InputCondition(
        {"action": ("lambda:InvokeFunction",), "invokedViaFunctionUrl": (ABSENT, "False")},
        forbids=("functionUrlAuthType",),
    ),
)
enter_conditions(
    _LISTENER,
    f"{_ELB}API_ListenerAttribute.html",
    InputCondition(
        {"protocol": ("TLS", "UDP", "QUIC", "HTTP", "HTTPS", "TCP_QUIC")},
        forbids=("tcpIdleTimeoutSeconds",),
    ),
    InputCondition({"protocol": _LAYER_4}, forbids=("routingHttpResponseServerEnabled",)),
)
enter_conditions(
    _LISTENER,
    f"{_ELB}API_MutualAuthenticationAttributes.html",
    InputCondition({"protocol": (*_LAYER_4, "HTTP")}, forbids=("mutualAuthentication",)),
)
enter_conditions(
    Refuser("lb/listener:Listener", "CreateListener", "ValidationError"),
    f"{_ELB}API_Action.html",
    *(
        InputCondition({"type": (kind,)}, needs=(block,), base="defaultActions.*")
        for kind, block in (
            *(("fixed-response", "fixedResponse"), ("redirect", "redirect")),
            ("authenticate-cognito", "authenticateCognito"),
            ("authenticate-oidc", "authenticateOidc"),
        )
    ),
)
enter_conditions(
    _BALANCER,
    f"{_ELB}API_CreateLoadBalancer.html",
    InputCondition(
        {"enablePrefixForIpv6SourceNat": ("on",), "ipAddressType": (ABSENT, "ipv4")},
        needs=("(the address type dualstack)",),
    ),
    InputCondition({"loadBalancerType": ("gateway",)}, forbids=("securityGroups", "internal")),
    InputCondition(
        {
            "loadBalancerType": ("network", "gateway"),
            "ipAddressType": ("dualstack-without-public-ipv4",),
        },
        needs=("(the type application)",),
    ),
)
enter_conditions(
    _BALANCER,
    f"{_ELB}API_SubnetMapping.html",
    InputCondition(
        {"ipv6Address": (GIVEN,), "^ipAddressType": (ABSENT, "ipv4")},
        needs=("(the address type dualstack)",),
        base="subnetMappings.*",
    ),
)
enter_conditions(
    _TARGETS,
    f"{_ELB}API_TargetGroupAttribute.html",
    InputCondition(
        {"protocol": _LAYER_4},
        forbids=(
            *("slowStart", "loadBalancingAlgorithmType", "loadBalancingAnomalyMitigation"),
            *("protocolVersion", "targetFailovers", "lambdaMultiValueHeadersEnabled"),
        ),
    ),
    InputCondition(
        {"protocol": ("HTTP", "HTTPS")},
        forbids=(
            *("connectionTermination", "preserveClientIp", "proxyProtocolV2"),
            "targetHealthStates",
        ),
    ),
    *(
        InputCondition({"type": kinds, "^protocol": protocols}, needs=(needed,), base="stickiness")
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
        {"loadBalancingAlgorithmType": ("least_outstanding_requests", "weighted_random")},
        forbids=("slowStart",),
    ),
    InputCondition(
        {
            "loadBalancingAnomalyMitigation": ("on",),
            "loadBalancingAlgorithmType": (ABSENT, "round_robin", "least_outstanding_requests"),
        },
        needs=("(the algorithm weighted_random)",),
    ),
    InputCondition(
        {"enableUnhealthyConnectionTermination": ("True",)},
        forbids=("unhealthyDrainingInterval",),
        base="targetHealthStates.*",
    ),
    InputCondition(
        {
            "protocol": ("UDP", "TCP_UDP", "QUIC", "TCP_QUIC"),
            "preserveClientIp": ("false", "False"),
        },
        needs=("(clients' addresses kept)",),
    ),
)
enter_conditions(
    _TARGETS,
    f"{_ELB}API_CreateTargetGroup.html",
    InputCondition(
        {"enabled": ("False",), "^targetType": (ABSENT, "instance", "ip", "alb")},
        needs=("(health checks)",),
        base="healthCheck",
    ),
)
enter_conditions(
    _RECORD,
    f"{_DNS}API_ResourceRecordSet.html",
    *(
        InputCondition({one: (GIVEN,)}, forbids=tuple(each for each in _ROUTINGS if each != one))
        for one in _ROUTINGS
    ),
    InputCondition({"multivalueAnswerRoutingPolicy": ("True",)}, forbids=("aliases",)),
)
enter_conditions(
    _RECORD,
    f"{_DNS}API_GeoLocation.html",
    InputCondition(
        {"continent": (GIVEN,)},
        forbids=("country", "subdivision"),
        base="geolocationRoutingPolicies.*",
    ),
    InputCondition(
        {"subdivision": (GIVEN,)}, needs=("country",), base="geolocationRoutingPolicies.*"
    ),
)
