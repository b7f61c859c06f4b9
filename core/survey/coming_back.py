"""Judges what keeps a lost broker from coming back: deletions, webhooks, quotas, volume drivers.

Sources: Kubernetes' finalizers, admission webhooks, resource quotas; the EBS CSI driver.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed, every_kafka, of_kafka, pods_of
from core.survey.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    worth_knowing,
)
from core.survey.kafka_facts import Kafka, OtherKafka, Pod
from core.unknown import Unknown, mapping_of, of
from core.window import clock

EBS_DRIVER = "ebs.csi.aws.com"
# cert-manager and others renew a month before the end; a week before it a person should.
TRUSTED_DAYS, URGENT_DAYS, DAY_SECONDS = 30, 7, 86_400
# The strictest of Pod Security's levels; `baseline` is the one before.
RESTRICTED = "restricted"


def deletions(seen: Surveyed) -> Iterator[Finding]:
    """Find Kafkas that somebody has deleted, with all they consist of or in part."""
    for kafka in of(seen.kafkas):
        gone = ["the Kafka resource"] if kafka.leaving else []
        gone += [f"node pool {pool.name}" for pool in of_kafka(seen.pools, kafka) if pool.leaving]
        if kafka.namespace in of(seen.ending_namespaces):
            gone.append(f"namespace {kafka.namespace}")
        if gone:
            yield broker_may_die(
                "deleted",
                kafka.title,
                f"somebody has deleted {' and '.join(gone)}: its pods end, and nothing brings them "
                f"back",
                "find out who meant it; a deletion cannot be taken back, so save the volumes first "
                "(persistentVolumeReclaimPolicy Retain)",
            )


def refusals(seen: Surveyed) -> Iterator[Finding]:
    """Find webhooks and quotas by which no pod of a Kafka can be created again."""
    for kafka in every_kafka(seen):
        pods = pods_of(seen, kafka)
        for hook in of(seen.pod_webhooks):
            asked = [pod.name for pod in pods if hook.unanswered and hook.asked_of(pod)]
            if asked:
                yield Finding(
                    "pods-refused",
                    Weight.UNKNOWN if hook.conditional else Weight.BROKER,
                    kafka.title,
                    ("on matchConditions that were not judged, " if hook.conditional else "")
                    + f"webhook {hook.name} asks {hook.unanswered} before a pod is created, and "
                    f"refuses it without an answer (failurePolicy Fail): {listing(asked)} cannot "
                    f"come back once they leave",
                    "have somebody answer it again, or remove it",
                )
        yield from _lax(kafka, pods, seen)
        for quota in of(seen.quotas):
            if quota.namespace == kafka.namespace:
                yield producer_may_stall(
                    "quota",
                    kafka.title,
                    f"ResourceQuota {quota.namespace}/{quota.name} allows less than is used "
                    f"({listing(quota.exceeded)}): a pod that leaves is not created again",
                    "raise the quota before any pod leaves",
                )


def asked_outside(seen: Surveyed) -> Iterator[Finding]:
    """Name who is asked before a pod of Kafka's is created, and is not in this cluster."""
    for kafka in every_kafka(seen):
        for hook in of(seen.pod_webhooks):
            if (
                hook.outside
                and not hook.unanswered
                and any(hook.asked_of(pod) for pod in pods_of(seen, kafka))
            ):
                yield worth_knowing(
                    "webhook-outside",
                    kafka.title,
                    f"webhook {hook.name} asks {hook.outside} before a pod is created, and refuses "
                    f"it without an answer (failurePolicy Fail): whether that answers was not "
                    f"judged",
                    "know who keeps it running, or leave Kafka's namespace out of it",
                )


def trust(seen: Surveyed) -> Iterator[Finding]:
    """Find webhooks that a broker waits for and whose authority ends soon."""
    for hook in of(seen.pod_webhooks):
        end, asked = hook.trusted_until, any(hook.asked_of(pod) for pod in of(seen.pods))
        if hook.unanswered or end is None or not (asked or hook.steps or hook.pod_steps):
            continue
        left = (end - seen.read_at) / DAY_SECONDS
        if left < TRUSTED_DAYS:
            yield Finding(
                "trust-ends",
                Weight.PRODUCER if left < URGENT_DAYS else Weight.ADVICE,
                f"webhook {hook.name}",
                f"the last authority of its caBundle ends at {clock(end)}: from then on the API "
                f"server trusts no answer, and refuses what it asks about (failurePolicy Fail)",
                "see that whatever made the caBundle renews it in time",
            )


def steps(seen: Surveyed) -> Iterator[Finding]:
    """Find webhooks without which a node does not join or empty, and nobody answers."""
    pods = of(seen.pods)
    for hook in of(seen.pod_webhooks):
        # Of one that keeps pods from coming back that is said already.
        if hook.unanswered is None or any(hook.asked_of(pod) for pod in pods):
            continue
        mine = any(pod.namespace not in (hook.leaves_out or ()) for pod in pods)
        words = hook.steps | (hook.pod_steps if mine else frozenset())
        if words:
            yield Finding(
                "step-refused",
                Weight.UNKNOWN if hook.conditional else Weight.PRODUCER,
                f"webhook {hook.name}",
                ("on matchConditions that were not judged, " if hook.conditional else "")
                + f"before {' and before '.join(sorted(words))} it asks {hook.unanswered}: without "
                f"an answer that is refused (failurePolicy Fail)",
                "have somebody answer it again, or remove it",
            )


def policies(seen: Surveyed) -> Iterator[Finding]:
    """Name policies that may deny what a drain asks for, or whose expressions are wrong."""
    spaces = {pod.namespace for pod in of(seen.pods)}
    for each in of(seen.admission_policies):
        words = " and when ".join(sorted(each.steps))
        if each.installs and not each.broken:
            yield worth_knowing(
                "policy-install",
                f"ValidatingAdmissionPolicy {each.name}",
                f"it is asked when {' and when '.join(sorted(each.installs))}, and may refuse what "
                f"Stillwater makes in this cluster, by expressions that were not judged",
                "hold what `adopt plan` lists against it before the first `up`",
            )
        if not each.steps or not spaces - each.leaves_out:
            continue
        if each.broken:
            yield not_judged(
                "policy-broken",
                f"ValidatingAdmissionPolicy {each.name}",
                f"the API server finds its expressions wrong ({each.broken}), and where they fail "
                f"it denies; it is asked when {words}",
                "mend its expressions, or set its failurePolicy to Ignore until then",
            )
            continue
        yield worth_knowing(
            "policy-drain",
            f"ValidatingAdmissionPolicy {each.name}",
            f"it is asked when {words}, and may deny it by expressions that were not judged",
            "see that it allows what drains nodes, Stillwater's functions among them",
        )


def _lax(kafka: Kafka | OtherKafka, pods: list[Pod], seen: Surveyed) -> Iterator[Finding]:
    """Find pods that run, and that Pod Security refuses once they are created again."""
    level = mapping_of(seen.enforced_levels).get(kafka.namespace)
    beyond = {
        pod.name: pod.unlawful + (pod.unrestricted if level == RESTRICTED else ()) for pod in pods
    }
    lax = [f"{name} ({', '.join(each)})" for name, each in beyond.items() if each]
    if level is None or not lax:
        return
    yield broker_may_die(
        "pods-refused",
        kafka.title,
        f"namespace {kafka.namespace} enforces Pod Security `{level}`, which refuses "
        f"{listing(lax)} once they are created again",
        "let the pods meet it (Strimzi's STRIMZI_POD_SECURITY_PROVIDER_CLASS: restricted) and roll "
        "them, or enforce `baseline`"
        if level == RESTRICTED
        else "let the pods meet it and roll them, or enforce `privileged`",
    )


def images(seen: Surveyed) -> Iterator[Finding]:
    """Find images that only nodes have which run them."""
    for kafka in every_kafka(seen):
        if gone := {pod.image for pod in pods_of(seen, kafka)} & {*of(seen.lost_images)}:
            yield producer_may_stall(
                "image-gone",
                kafka.title,
                f"its pods run {listing(gone)}, which ECR has no more: on a node that has not run "
                f"it before, a pod stays in ImagePullBackOff",
                "push the image again, and keep the repository's lifecycle policy off it",
            )


def fargate(seen: Surveyed) -> Iterator[Finding]:
    """Find Fargate profiles that take pods whose disks Fargate cannot attach."""
    for kafka in every_kafka(seen):
        for each in of(seen.fargate_profiles):
            taken = [
                pod.name for pod in pods_of(seen, kafka) if each.takes(pod.namespace, pod.labels)
            ]
            if taken:
                yield broker_may_die(
                    "fargate-takes",
                    kafka.title,
                    f"Fargate profile {each.name} selects {listing(taken)}: once they are created "
                    f"again they go to Fargate, which attaches no disk of EBS's, and wait for ever",
                    "narrow the profile's selectors, so that they leave Kafka's pods out",
                )


def limits(seen: Surveyed) -> Iterator[Finding]:
    """Find pods that have more memory than a LimitRange lets the next ones have."""
    for kafka in every_kafka(seen):
        for each in of(seen.limit_ranges):
            large = [
                pod.name
                for pod in pods_of(seen, kafka)
                if pod.namespace == each.namespace and (pod.memory_bytes or 0) > each.most_bytes
            ]
            if large:
                yield broker_may_die(
                    "limit-range",
                    kafka.title,
                    f"LimitRange {each.namespace}/{each.name} lets a pod have less memory than "
                    f"{listing(large)} have: they are refused once they are created again",
                    "raise its max, or have no LimitRange in that namespace",
                )


def essentials(seen: Surveyed) -> Iterator[Finding]:
    """Find what no pod starts without, and which does not run."""
    for each in of(seen.essentials):
        if each.down:
            yield producer_may_stall(
                "essential-down",
                each.title,
                f"none of its pods is available: without {each.what} a broker that starts finds "
                f"nobody",
                "bring it back before any node leaves",
            )


def releases(seen: Surveyed) -> Iterator[Finding]:
    """Find releases of Helm's that were begun and did not end."""
    for each in of(seen.pending_releases):
        back = (
            f"`helm uninstall {each.name} -n {each.namespace}`, then install it again"
            if each.status == "pending-install"
            else f"`helm rollback {each.name} -n {each.namespace}`, then upgrade it again"
        )
        yield Finding(
            "release-pending",
            Weight.PRODUCER if each.carries else Weight.ADVICE,
            f"Helm release {each.namespace}/{each.name}",
            f"it is {each.status} since {each.since}: Helm was interrupted, so that "
            + (f"{listing(each.carries)} may be half changed, and " if each.carries else "")
            + "every further `helm upgrade` is refused (another operation is in progress)",
            f"if no Helm runs now: {back}",
        )


def drivers(seen: Surveyed) -> Iterator[Finding]:
    """Find EBS volumes that nobody would attach to another node."""
    if isinstance(seen.volume_controllers, Unknown):
        return
    mine = [volume for volume in of(seen.volumes) if volume.driver == EBS_DRIVER]
    if not mine or any(not each.down for each in seen.volume_controllers):
        return
    down = listing(each.title for each in seen.volume_controllers)
    yield producer_may_stall(
        "csi-missing",
        "volumes of Kafka",
        (f"no pod of {down} is available" if down else "no controller of the EBS CSI driver runs")
        + f": {listing(volume.title for volume in mine)} cannot follow "
        f"their pods to another node",
        "bring the driver back (add-on aws-ebs-csi-driver) before any node leaves",
    )
