"""Reads from an API server what runs beside Kafka and moves its pods, by image and settings.

Names and labels are their owners', the programs' images and settings are known. A setting that
comes from another object is not guessed. Lists go over all pages, in the version the server
prefers; GET alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.cluster.adopted_names import queue_url
from core.ground.errors import StillwaterError
from core.ground.placement import placement_of, quantity, requirements
from core.model.workloads import (
    Autoscaler,
    DisruptionBudget,
    DrainCleaner,
    Evictor,
    LimitRange,
    Operator,
    PendingRelease,
    Quota,
    TerminationHandler,
)
from infra.eks.api import Api, ApiError, Object

PAGE = 500
NOT_FOUND, EXPIRED = 404, 410


def items(
    api: Api, prefix: str, kind: str, namespace: str | None = None, **query: object
) -> Iterator[Object]:
    """Yield what a listing holds, over all of its pages.

    A listing whose pages expire on the way (410) is begun anew, in one piece.
    """
    path = f"{prefix}/{kind}" if namespace is None else f"{prefix}/namespaces/{namespace}/{kind}"
    try:
        yield from list(_pages(api, path, {"limit": PAGE, **query}))
    except ApiError as error:
        if error.status != EXPIRED:
            raise
        yield from list(_pages(api, path, query))


def _pages(api: Api, path: str, query: Mapping[str, object]) -> Iterator[Object]:
    seen: set[str] = set()
    following = ""
    while True:
        answer = api.get(path, **query, **({"continue": following} if following else {}))
        yield from answer.get("items") or ()
        following = str((answer.get("metadata") or {}).get("continue") or "")
        if not following:
            return
        if following in seen:
            raise StillwaterError(f"GET {path} names the same next page again and again")
        seen.add(following)


def custom(api: Api, group: str, kind: str, namespace: str | None) -> list[Object]:
    """Return custom resources in the version the server prefers; none where it knows no such."""
    found = one(api, f"/apis/{group}")
    if found is None:
        return []
    preferred = found["preferredVersion"]["groupVersion"]
    others = (each["groupVersion"] for each in found.get("versions") or ())
    # A kind may be served in another version than the group's preferred one, or not at all.
    for version in dict.fromkeys((preferred, *others)):
        try:
            return list(items(api, f"/apis/{version}", kind, namespace))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
    return []


def served_versions(api: Api, group: str) -> frozenset[str]:
    """Return the versions in which a group is served; none where the server knows no such."""
    found = one(api, f"/apis/{group}") or {}
    return frozenset(str(each["version"]) for each in found.get("versions") or ())


def one(api: Api, path: str) -> Object | None:
    """Return an object, or None where there is none."""
    try:
        return api.get(path)
    except ApiError as error:
        if error.status == NOT_FOUND:
            return None
        raise


Item = Mapping[str, Any]


def name_of(item: Item) -> str:
    return str(item["metadata"]["name"])


def title_of(item: Item) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def labels(item: Item) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def annotations_of(item: Item) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def kafka_of(item: Item) -> str:
    """Return the Kafka that an object of Strimzi's belongs to."""
    return labels(item).get("strimzi.io/cluster", "")


def going(item: Item) -> bool:
    """Say whether somebody has deleted an object that is not gone yet."""
    return bool((item.get("metadata") or {}).get("deletionTimestamp"))


def status_of(item: Item) -> Object:
    return item.get("status") or {}


def is_condition(item: Item, kind: str, *, true: bool = True) -> bool:
    """Say whether a condition holds, or that it does not; neither where the status has no such."""
    # Strimzi writes some of them in small letters.
    return str(_condition(item, kind).get("status")).lower() == str(true).lower()


def is_ready(item: Item) -> bool | None:
    """Say whether an object's condition Ready holds; None where its status has no such."""
    return is_condition(item, "Ready") if _condition(item, "Ready") else None


def reason_of(item: Item, kind: str) -> str:
    """Return what a condition says, on one line."""
    found = _condition(item, kind)
    said = found.get("message") or found.get("reason") or "no reason is given"
    return " ".join(str(said).split())


def _condition(item: Item, kind: str) -> Object:
    every = status_of(item).get("conditions") or ()
    return next((each for each in every if each.get("type") == kind), {})


def controller_of(item: Item) -> str | None:
    """Return the kind of what makes an object and brings it back; None: nothing does."""
    owners = item["metadata"].get("ownerReferences") or ()
    return next((str(each["kind"]) for each in owners if each.get("controller")), None)


def variable(container: Item, name: str) -> str:
    """Return a variable of a container's environment, as far as it is written there."""
    found = (each.get("value") for each in container.get("env") or () if each.get("name") == name)
    return str(next(found, None) or "")


# NTH's own defaults.
DRAIN_TIMEOUT_SECONDS = 120
MANAGED_TAG = "aws-node-termination-handler/managed"
OPERATOR = re.compile(r"strimzi[^/]*(/|-)((cluster|kafka|rhel[0-9]+)-)?operator([:@]|$)")
# Judged by what they are.
KNOWN = re.compile(
    r"node-termination-handler|drain-cleaner|cluster-autoscaler|karpenter/controller|strimzi"
    r"|aws-load-balancer-controller|aws-ebs-csi-driver"
)
OS = "kubernetes.io/os"
RELEASE = re.compile(r"v?(\d+\.\d+\.\d+).*")
SECRETS = "/api/v1/secrets"
PENDING = "owner=helm,status in (pending-install,pending-upgrade,pending-rollback)"
RELEASE_OF = ("meta.helm.sh/release-namespace", "meta.helm.sh/release-name")
V1 = "/api/v1"
FORBIDDEN = 403
ENFORCED, LEVELS = "pod-security.kubernetes.io/enforce", {"baseline", "restricted"}
# How Istio's and Linkerd's webhooks for new pods are called, whatever the revision.
INJECTOR = re.compile(r"sidecar-injector|proxy-injector")
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
KNOWN_IMAGES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("known.toml").read_text("utf-8")
)
# Of these, who takes the part of a termination handler.
HEARING = {"keikoproj/lifecycle-manager"}


def budgets(api: Api, namespace: str | None) -> tuple[DisruptionBudget, ...]:
    """Return the budgets of every namespace, for whoever may list them; else those of one."""
    try:
        return budgets_in(api, None)
    except ApiError as error:
        if namespace is None or error.status != FORBIDDEN:
            raise
        return budgets_in(api, namespace)


def budgets_in(api: Api, namespace: str | None) -> tuple[DisruptionBudget, ...]:
    """Return the budgets that select any pod."""
    found = items(api, "/apis/policy/v1", "poddisruptionbudgets", namespace)
    return tuple(_budget(each) for each in found if each["spec"].get("selector") is not None)


def _budget(item: Object) -> DisruptionBudget:
    spec, status = item["spec"], item.get("status") or {}
    selector = spec["selector"]
    # What the disruption controller has not looked at, it says nothing of.
    looked = status.get("observedGeneration") is not None
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return DisruptionBudget(
        namespace=item["metadata"]["namespace"],
        name=item["metadata"]["name"],
        match_labels=selector.get("matchLabels") or {},
        expressions=requirements(selector.get("matchExpressions")),
        least_available=None if least is None else str(least),
        most_unavailable=None if most is None else str(most),
        desired_healthy=int(status["desiredHealthy"]) if looked else None,
        expected_pods=int(status["expectedPods"]) if looked else None,
        allowed_now=int(status.get("disruptionsAllowed", 0)) if looked else None,
        unready_always=spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
    )


def workloads(api: Api) -> list[Object]:
    """Return every Deployment and DaemonSet that is meant to run where Kafka may."""
    return [
        item
        for kind in ("deployments", "daemonsets")
        for item in items(api, "/apis/apps/v1", kind)
        if item["spec"].get("replicas", 1)
        and (item["spec"]["template"]["spec"].get("nodeSelector") or {}).get(OS) != "windows"
    ]


def handlers(found: Iterable[Object]) -> tuple[TerminationHandler, ...]:
    return tuple(
        _handler(item, container) for item, container in running(found, r"node-termination-handler")
    )


def down(item: Object) -> bool:
    """Say whether a workload has pods of which none is available, as far as its status says."""
    status = status_of(item)
    wanted = status.get("replicas", status.get("desiredNumberScheduled", 0))
    return bool(wanted) and not status.get("availableReplicas", status.get("numberAvailable", 0))


def _release(item: Object, container: Object) -> str | None:
    """Return the version that an image's tag names, or its chart's label."""
    tag = str(container["image"]).partition("@")[0].rpartition("/")[2].partition(":")[2]
    said = (tag, str(labels(item).get("app.kubernetes.io/version") or ""))
    return next((found[1] for each in said if (found := RELEASE.fullmatch(each))), None)


def _handler(item: Object, container: Object) -> TerminationHandler:
    pod = item["spec"]["template"]["spec"]

    def number(key: str, default: int, older: str = "") -> int:
        return int(setting(container, key, str(default), older))

    def switch(key: str, default: str, older: str = "") -> bool:
        return setting(container, key, default, older).lower() == "true"

    # The older names are still read.
    asks = switch("CHECK_TAG_BEFORE_DRAINING", "true", "CHECK_ASG_TAG_BEFORE_DRAINING")
    tag = setting(container, "MANAGED_TAG", MANAGED_TAG, "MANAGED_ASG_TAG")
    return TerminationHandler(
        title=title_of(item),
        queue_mode=switch("ENABLE_SQS_TERMINATION_DRAINING", "false"),
        pod_grace_seconds=number("POD_TERMINATION_GRACE_PERIOD", -1, "GRACE_PERIOD"),
        drain_timeout_seconds=number("NODE_TERMINATION_GRACE_PERIOD", DRAIN_TIMEOUT_SECONDS),
        beat_seconds=beat if (beat := number("HEARTBEAT_INTERVAL", -1)) > 0 else None,
        queue_url=queue_url(setting(container, "QUEUE_URL", "")) or None,
        asks_for_tag=tag if asks else None,
        drains=not switch("CORDON_ONLY", "false") and not switch("DRY_RUN", "false"),
        grace_seconds=pod.get("terminationGracePeriodSeconds"),
        wants=placement_of(pod),
        down=down(item),
        on_host=bool(pod.get("hostNetwork")),
        version=_release(item, container),
        by_provider_id=switch("USE_PROVIDER_ID", "false"),
        sees_hooks=switch("ENABLE_ASG_LIFECYCLE_DRAINING", "false"),
        taints_out_of_service=switch("ENABLE_OUT_OF_SERVICE_TAINT", "false"),
        refuses=tuple(
            key for key in ("DELETE_LOCAL_DATA", "IGNORE_DAEMON_SETS") if not switch(key, "true")
        ),
    )


def cleaners(found: Iterable[Object]) -> tuple[DrainCleaner, ...]:
    return tuple(
        DrainCleaner(
            title=title_of(item),
            denies=setting(container, "STRIMZI_DENY_EVICTION", "true").lower() == "true",
            drains_kafka=setting(container, "STRIMZI_DRAIN_KAFKA", "true").lower() == "true",
            namespaces=_namespaces(setting(container, "STRIMZI_DRAIN_NAMESPACES", "*")),
            down=down(item),
        )
        for item, container in running(found, r"drain-cleaner")
    )


def _namespaces(written: str) -> frozenset[str] | None:
    names = frozenset(each.strip() for each in written.split(",") if each.strip())
    return None if not names or "*" in names else names


def operators(found: Iterable[Object]) -> tuple[Operator, ...]:
    return tuple(
        Operator(
            title=title_of(item),
            namespaces=_watched_namespaces(item, container),
            account=_account(item),
            down=down(item),
            pod_sets_only=setting(container, "STRIMZI_POD_SET_RECONCILIATION_ONLY", "false").lower()
            == "true",
            selector=_selector(setting(container, "STRIMZI_CUSTOM_RESOURCE_SELECTOR", "")),
            version=strimzi_version(str(container.get("image", ""))),
            knows_kubernetes=bool(setting(container, "STRIMZI_KUBERNETES_VERSION", "")),
        )
        for item, container in running(found, OPERATOR)
        # Beside each Kafka its entity operator runs the same image.
        if "strimzi.io/cluster" not in labels(item)
    )


def strimzi_version(image: str) -> tuple[int, int, int] | None:
    """Return the release of Strimzi's that an operator's image names; of a rebuild by others none.

    >>> strimzi_version("quay.io/strimzi/operator:0.45.1"), strimzi_version("strimzi@sha256:0a")
    ((0, 45, 1), None)
    """
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    # One digit of major version: a tag of another kind may be a date.
    found = re.match(r"v?(\d)\.(\d+)(?:\.(\d+))?", tag)
    # Red Hat counts its own releases.
    if found is None or re.search(r"amq-streams|rhel\d", image):
        return None
    major, minor, patch = found.groups()
    return int(major), int(minor), int(patch or 0)


def _selector(written: str) -> dict[str, str]:
    """Return the labels that a resource must have: a=b,c=d."""
    pairs = (each.partition("=") for each in written.split(",") if each.strip())
    return {key.strip(): value.strip("= ") for key, _, value in pairs}


def _account(item: Object) -> str:
    name = item["spec"]["template"]["spec"].get("serviceAccountName") or "default"
    return f"system:serviceaccount:{item['metadata']['namespace']}:{name}"


def _watched_namespaces(item: Object, container: Object) -> frozenset[str] | None:
    """Return the namespaces an operator watches; None: every one, or nobody can tell."""
    for each in container.get("env") or ():
        if each["name"] != "STRIMZI_NAMESPACE":
            continue
        path = ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
        if path == "metadata.namespace":
            return frozenset({str(item["metadata"]["namespace"])})
        if path and "olm.targetNamespaces" in path:
            noted = item["spec"]["template"].get("metadata", {}).get("annotations") or {}
            return _namespaces(str(noted.get("olm.targetNamespaces", "")))
        if "valueFrom" in each:
            raise StillwaterError(
                f"STRIMZI_NAMESPACE of {title_of(item)} is set from another object"
            )
        return _namespaces(str(each.get("value") or ""))
    return None


def pending_releases(api: Api, found: Iterable[Object]) -> tuple[PendingRelease, ...]:
    """Return Helm's releases that did not end: of the Secrets that hold them, the metadata alone.

    A release carries the workloads that name it and are known to a broker's way back.
    """
    carried: dict[tuple[str, str], list[str]] = {}
    for item, _ in running(found, KNOWN):
        noted = annotations_of(item)
        where, name = (noted.get(key, "") for key in RELEASE_OF)
        carried.setdefault((where, name), []).append(title_of(item))
    listed = api.metadata_list(SECRETS, labelSelector=PENDING)
    return tuple(
        PendingRelease(
            namespace=(where := str(item["metadata"]["namespace"])),
            name=(name := labels(item)["name"]),
            status=labels(item)["status"],
            since=str(item["metadata"].get("creationTimestamp") or "an unknown time"),
            carries=tuple(sorted(set(carried.get((where, name), ())))),
        )
        for item in listed.get("items") or ()
    )


def quotas(api: Api, spaces: Iterable[str]) -> tuple[Quota, ...]:
    """Return the ResourceQuotas of some namespaces of which more is used than they allow."""
    found = []
    for item in (i for space in sorted(spaces) for i in items(api, V1, "resourcequotas", space)):
        status = status_of(item)
        used = status.get("used") or {}
        exceeded = tuple(
            f"{key}: {used[key]} of {most}"
            for key, most in (status.get("hard") or {}).items()
            if (quantity(used.get(key, 0)) or 0) > (quantity(most) or 0)
        )
        if exceeded:
            where, name = item["metadata"]["namespace"], item["metadata"]["name"]
            found.append(Quota(namespace=where, name=name, exceeded=exceeded))
    return tuple(found)


def limit_ranges(api: Api, spaces: Iterable[str]) -> tuple[LimitRange, ...]:
    """Return what LimitRanges of some namespaces let a container or a pod have of memory."""
    return tuple(
        LimitRange(
            namespace=str(item["metadata"]["namespace"]), name=name_of(item), most_bytes=most
        )
        for space in sorted(spaces)
        for item in items(api, V1, "limitranges", space)
        for each in item["spec"].get("limits") or ()
        if each.get("type") in {"Container", "Pod"}
        if (most := quantity((each.get("max") or {}).get("memory"))) is not None
    )


def enforced_levels(api: Api) -> dict[str, str]:
    """Return the namespaces in which Pod Security refuses pods, each with its level."""
    said = {
        name_of(item): str(labels(item).get(ENFORCED) or "")
        for item in items(api, V1, "namespaces")
    }
    return {name: level for name, level in said.items() if level in LEVELS}


def injected_namespaces(api: Api) -> frozenset[str]:
    """Return the namespaces in which a service mesh that is there puts a proxy into new pods."""
    hooks = items(api, ADMISSION, "mutatingwebhookconfigurations")
    if not any(INJECTOR.search(name_of(each)) for each in hooks):
        return frozenset()
    return frozenset(
        name_of(item)
        for item in items(api, V1, "namespaces")
        if labels(item).get("istio-injection") == "enabled"
        or (labels(item).get("istio.io/rev") and labels(item).get("istio-injection") != "disabled")
        or annotations_of(item).get("linkerd.io/inject") == "enabled"
    )


def ending_namespaces(api: Api) -> frozenset[str]:
    return frozenset(
        name_of(item)
        for item in items(api, V1, "namespaces")
        if going(item) or status_of(item).get("phase") == "Terminating"
    )


def autoscalers(found: Iterable[Object]) -> tuple[Autoscaler, ...]:
    return tuple(
        Autoscaler(
            title=title_of(item),
            scales_down=flag(container, "scale-down-enabled") != "false",
            takes_custom=flag(container, "skip-nodes-with-custom-controller-pods") == "false",
        )
        for item, container in running(found, r"cluster-autoscaler([:@-]|$)")
    )


def evictors(found: list[Object]) -> tuple[Evictor, ...]:
    return tuple(
        Evictor(title=title_of(item), tool=tool, hears_hooks=image in HEARING)
        for image, tool in KNOWN_IMAGES["evictors"].items()
        for item, _ in running(found, rf"(^|/){image}([:@]|$)")
    )


def cron_jobs(api: Api) -> list[Object]:
    """Return every CronJob that is not suspended, in a Deployment's shape."""
    return [
        {"metadata": item["metadata"], "spec": item["spec"]["jobTemplate"]["spec"]}
        for item in items(api, "/apis/batch/v1", "cronjobs")
        if not item["spec"].get("suspend")
    ]


def running(
    found: Iterable[Object], image: str | re.Pattern[str]
) -> Iterator[tuple[Object, Object]]:
    """Yield the containers whose image has a name, with their workload."""
    for item in found:
        for container in item["spec"]["template"]["spec"]["containers"]:
            if re.search(image, str(container.get("image", ""))):
                yield item, container


def flag(container: Mapping[str, Any], name: str) -> str | None:
    """Return what a program's own argument says, or None without it: --name=value, --name value."""
    given = [
        str(each) for each in (*(container.get("command") or ()), *(container.get("args") or ()))
    ]
    for index, each in enumerate(given):
        key, equals, value = each.lstrip("-").partition("=")
        if each.startswith("-") and key == name:
            following = given[index + 1] if index + 1 < len(given) else "true"
            return value if equals else "true" if following.startswith("-") else following
    return None


def setting(container: Mapping[str, Any], key: str, default: str, older: str = "") -> str:
    """Return a setting by argument or variable; raise where it comes from elsewhere."""
    for name in filter(None, (key, older)):
        argued = flag(container, name.lower().replace("_", "-"))
        if argued is not None:
            return argued
        for each in container.get("env") or ():
            if each["name"] == name and "valueFrom" in each:
                raise StillwaterError(f"{name} of {container['name']} is set from another object")
            if each["name"] == name and each.get("value"):
                return str(each["value"]).strip()
    if container.get("envFrom"):
        raise StillwaterError(f"{key} of {container['name']} may be set from another object")
    return default
