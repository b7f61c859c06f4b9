"""Judges what keeps a lost broker from coming back, and what ends or traps its volumes.

Sources: Kubernetes' finalizers, admission webhooks, resource quotas, volumes and storage classes;
the EBS CSI driver; Strimzi's storage.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.checks.facts import ClusterFacts, every_kafka, parts_of, pods_of
from core.checks.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.ground.fields import Unknown, known_items, mapping_of
from core.ground.window import clock
from core.model.kafka import Flavour, Kafka, OtherKafka, Pod, Volume

EBS_DRIVER = "ebs.csi.aws.com"
# cert-manager and others renew a month before the end; a week before it a person should.
TRUSTED_DAYS, URGENT_DAYS, DAY_SECONDS = 30, 7, 86_400
# The strictest of Pod Security's levels; `baseline` is the one before.
RESTRICTED = "restricted"


@rule("kafkas")
def deletions(seen: ClusterFacts) -> Iterator[Finding]:
    """Find Kafkas that somebody has deleted, with all they consist of or in part."""
    for kafka in known_items(seen.kafkas):
        gone = ["the Kafka resource"] if kafka.leaving else []
        gone += [f"node pool {pool.name}" for pool in parts_of(seen.pools, kafka) if pool.leaving]
        if kafka.namespace in known_items(seen.ending_namespaces):
            gone.append(f"namespace {kafka.namespace}")
        if gone:
            yield broker_may_die(
                "deleted",
                kafka.title,
                f"{' and '.join(gone)} is being deleted: its pods end, and nothing brings them "
                "back",
                "find out who meant it; a deletion cannot be taken back, so save the volumes first "
                "(persistentVolumeReclaimPolicy Retain)",
            )


@rule("pods")
def refusals(seen: ClusterFacts) -> Iterator[Finding]:
    """Find webhooks and quotas by which no pod of a Kafka can be created again."""
    for kafka in every_kafka(seen):
        pods = pods_of(seen, kafka)
        for hook in known_items(seen.pod_webhooks):
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
                    "have it answered again, or remove it",
                )
        yield from _lax(kafka, pods, seen)
        for quota in known_items(seen.quotas):
            if quota.namespace == kafka.namespace:
                yield producer_may_stall(
                    "quota",
                    kafka.title,
                    f"ResourceQuota {quota.namespace}/{quota.name} allows less than is used "
                    f"({listing(quota.exceeded)}): a pod that leaves is not created again",
                    "raise the quota before any pod leaves",
                )


@rule("pod_webhooks", "pods")
def asked_outside(seen: ClusterFacts) -> Iterator[Finding]:
    """Name who is asked before a pod of Kafka's is created, and is not in this cluster."""
    for kafka in every_kafka(seen):
        for hook in known_items(seen.pod_webhooks):
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


@rule("pod_webhooks", "pods")
def trust(seen: ClusterFacts) -> Iterator[Finding]:
    """Find webhooks that a broker waits for and whose authority ends soon."""
    for hook in known_items(seen.pod_webhooks):
        end, asked = hook.trusted_until, any(hook.asked_of(pod) for pod in known_items(seen.pods))
        if hook.unanswered or end is None or not (asked or hook.steps or hook.pod_steps):
            continue
        left = (end - seen.read_at) / DAY_SECONDS
        if left < TRUSTED_DAYS:
            yield Finding(
                "trust-ends",
                Weight.PRODUCER if left < URGENT_DAYS else Weight.ADVICE,
                f"webhook {hook.name}",
                f"the last authority of its caBundle ends at {clock(end)}. From then on the API "
                "server trusts no answer, and refuses the request (failurePolicy Fail)",
                "see that whatever made the caBundle renews it in time",
            )


@rule("pod_webhooks", "pods")
def steps(seen: ClusterFacts) -> Iterator[Finding]:
    """Find webhooks without which a node does not join or empty, and nobody answers."""
    pods = known_items(seen.pods)
    for hook in known_items(seen.pod_webhooks):
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
                "have it answered again, or remove it",
            )


@rule("admission_policies", "pods")
def policies(seen: ClusterFacts) -> Iterator[Finding]:
    """Name policies that may deny what a drain asks for, or whose expressions are wrong."""
    spaces = {pod.namespace for pod in known_items(seen.pods)}
    for each in known_items(seen.admission_policies):
        words = " and when ".join(sorted(each.steps))
        if each.installs and not each.broken:
            yield worth_knowing(
                "policy-install",
                f"ValidatingAdmissionPolicy {each.name}",
                f"the API server asks it when {' and when '.join(sorted(each.installs))}, and may "
                "refuse what Stillwater makes in this cluster, by expressions that were not "
                "judged",
                "hold what `adopt plan` lists against it before the first `up`",
            )
        if not each.steps or not spaces - each.leaves_out:
            continue
        if each.broken:
            yield not_judged(
                "policy-broken",
                f"ValidatingAdmissionPolicy {each.name}",
                f"the API server finds its expressions wrong ({each.broken}), and where they fail "
                f"it denies; the API server asks it when {words}",
                "fix its expressions, or set its failurePolicy to Ignore until then",
            )
            continue
        yield worth_knowing(
            "policy-drain",
            f"ValidatingAdmissionPolicy {each.name}",
            f"the API server asks it when {words}, and may deny it by expressions that were not "
            "judged",
            "see that it allows what drains nodes, Stillwater's functions among them",
        )


def _lax(kafka: Kafka | OtherKafka, pods: list[Pod], seen: ClusterFacts) -> Iterator[Finding]:
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


@rule("lost_images")
def images(seen: ClusterFacts) -> Iterator[Finding]:
    """Find images that only nodes have which run them."""
    for kafka in every_kafka(seen):
        if gone := {pod.image for pod in pods_of(seen, kafka)} & {*known_items(seen.lost_images)}:
            yield producer_may_stall(
                "image-gone",
                kafka.title,
                f"its pods run {listing(gone)}, which ECR no longer has: on a node that has not "
                "run it before, a pod stays in ImagePullBackOff",
                "push the image again, and keep the repository's lifecycle policy off it",
            )


@rule("fargate_profiles", "pods")
def fargate(seen: ClusterFacts) -> Iterator[Finding]:
    """Find Fargate profiles that take pods whose disks Fargate cannot attach."""
    for kafka in every_kafka(seen):
        for each in known_items(seen.fargate_profiles):
            taken = [
                pod.name for pod in pods_of(seen, kafka) if each.takes(pod.namespace, pod.labels)
            ]
            if taken:
                yield broker_may_die(
                    "fargate-takes",
                    kafka.title,
                    f"Fargate profile {each.name} selects {listing(taken)}: once they are created "
                    "again they go to Fargate, which attaches no EBS disk, and wait forever",
                    "narrow the profile's selectors, so that they leave Kafka's pods out",
                )


@rule("limit_ranges", "pods")
def limits(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods that have more memory than a LimitRange lets the next ones have."""
    for kafka in every_kafka(seen):
        for each in known_items(seen.limit_ranges):
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


@rule("essentials")
def essentials(seen: ClusterFacts) -> Iterator[Finding]:
    """Find what no pod starts without, and which does not run."""
    for each in known_items(seen.essentials):
        if each.down:
            yield producer_may_stall(
                "essential-down",
                each.title,
                f"none of its pods is available: without {each.what} a broker that starts finds no "
                "peer",
                "bring it back before any node leaves",
            )


@rule("pending_releases")
def releases(seen: ClusterFacts) -> Iterator[Finding]:
    """Find releases of Helm's that were begun and did not end."""
    for each in known_items(seen.pending_releases):
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


@rule("volume_controllers", "volumes")
def drivers(seen: ClusterFacts) -> Iterator[Finding]:
    """Find EBS volumes that nobody would attach to another node."""
    if isinstance(seen.volume_controllers, Unknown):
        return
    mine = [volume for volume in known_items(seen.volumes) if volume.driver == EBS_DRIVER]
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


# A gp2 volume of this size earns what its burst gives; a smaller one lives on credits.
GP2_WITHOUT_BURST_GIB = 1000
DISKS = ("st1", "sc1", "standard")


@rule("volumes")
def volumes(seen: ClusterFacts) -> Iterator[Finding]:
    """Find disks that end with their pod, claim or node, or bind where the pod cannot run."""
    for kafka in every_kafka(seen):
        if isinstance(kafka, OtherKafka) and kafka.flavour is Flavour.AUTOMQ:
            continue
        bare = [pod.name for pod in pods_of(seen, kafka) if not pod.claims or pod.scratch]
        if bare:
            yield broker_may_die(
                "ephemeral",
                kafka.title,
                f"{listing(bare)} have no persistent volume for all of their data: it ends with "
                f"the pod",
                "give them a persistent volume for each of their directories (Strimzi's type "
                "persistent-claim)",
            )
    ending = [f"{each.namespace}/{each.name}" for each in known_items(seen.pools) if each.claims_go]
    if ending:
        yield worth_knowing(
            "claims-deleted",
            "volumes of Kafka",
            f"storage of node pools {listing(ending)} says deleteClaim: who deletes such a pool, "
            f"or its Kafka, deletes the claims of its brokers too",
            "set deleteClaim to false",
        )
    every = known_items(seen.volumes)
    yield from _risks(every)
    yield from _kept_risks([volume for volume in every if not volume.on_node])


def _claims(found: list[Volume]) -> str:
    return listing(volume.title for volume in found)


def _risks(every: tuple[Volume, ...]) -> Iterator[Finding]:
    if found := [volume for volume in every if volume.on_node]:
        yield broker_may_die(
            "local-volume",
            "volumes of Kafka",
            f"{_claims(found)} are disks of their node and end with it. The pod waits for a lost "
            "node until its claim is deleted. Then it copies all its data",
            "keep data on EBS, or have a routine that deletes the claim and watches the copy",
        )
    if found := [volume for volume in every if volume.shared_by]:
        yield broker_may_die(
            "network-file-system",
            "volumes of Kafka",
            f"{_claims(found)} are on {listing(v.shared_by or '' for v in found)}: Kafka's logs "
            f"are not made for a network file system, and a broker stops at its first odd answer",
            "use block storage, such as EBS",
        )
    if found := [volume for volume in every if volume.leaving]:
        yield broker_may_die(
            "claim-leaving",
            "volumes of Kafka",
            f"{_claims(found)} are deleted, and only their running pod keeps them: they are gone "
            f"with its next restart",
            "let no node of theirs leave before their data is copied: a deletion cannot be undone",
        )
    for volume in every:
        if volume.stuck:
            yield producer_may_stall(
                "claim-stuck",
                "volumes of Kafka",
                f"the last change of {volume.title} cannot be done "
                f"({volume.stuck}): it grows no further, and a disk that fills up stops its broker",
                "write a size or class in the claim that EBS can give",
            )
    for volume in every:
        if volume.resizing:
            yield producer_may_stall(
                "claim-resizing",
                "volumes of Kafka",
                f"{volume.title} has grown at EBS and says {volume.resizing}. The broker's file "
                "system has its former size until the kubelet of its node has grown it",
                "see `kubectl describe pvc` and the log of the EBS driver's pod on that node. Let "
                "the node stay until the condition is gone, or restart the pod there",
            )
    for driver in sorted({volume.unknown_driver for volume in every if volume.unknown_driver}):
        found = [volume for volume in every if volume.unknown_driver == driver]
        yield not_judged(
            "volume-driver",
            "volumes of Kafka",
            f"{_claims(found)} are of {driver}, which is not EBS: whether they follow a pod to "
            f"another node was not judged",
            "find out whether they are disks of the nodes",
        )


def _kept_risks(kept: list[Volume]) -> Iterator[Finding]:
    """Find what ends, slows or stops volumes that follow their pods."""
    if found := [volume for volume in kept if volume.reclaim not in ("Retain", None)]:
        yield broker_may_die(
            "reclaim",
            "volumes of Kafka",
            f"{_claims(found)} are deleted with their claims",
            "set persistentVolumeReclaimPolicy of the volumes to Retain, and of the class that "
            "makes the next ones",
        )
    early = {v.storage_class for v in kept if v.binding not in ("WaitForFirstConsumer", None)}
    for name in sorted(each for each in early if each):
        yield producer_may_stall(
            "binding",
            f"StorageClass {name}",
            "it binds a volume before its pod is placed: the volume may be made in a zone where "
            "the pod cannot run",
            "use a class with volumeBindingMode WaitForFirstConsumer",
        )
    fixed = {v.storage_class for v in kept if v.expandable is False}
    for name in sorted(each for each in fixed if each):
        yield producer_may_stall(
            "expansion",
            f"StorageClass {name}",
            "it does not allow volumes to grow: a disk that fills up stops its broker",
            "set allowVolumeExpansion to true",
        )
    if slow := [volume for volume in kept if volume.ebs_type in DISKS]:
        yield producer_may_stall(
            "slow-volume",
            "volumes of Kafka",
            f"{_claims(slow)} are magnetic disks ({listing(v.ebs_type or '' for v in slow)}): a "
            f"broker that copies its replicas back starves its producers",
            "change the volumes to gp3",
        )
    found = [
        volume
        for volume in kept
        if volume.ebs_type == "gp2" and volume.gib and volume.gib < GP2_WITHOUT_BURST_GIB
    ]
    if found:
        yield producer_may_stall(
            "gp2",
            "volumes of Kafka",
            f"{_claims(found)} are gp2 of less than {GP2_WITHOUT_BURST_GIB} GiB, whose speed is "
            f"borrowed: when a broker copies its replicas back the credits end, and it crawls",
            "change the volumes to gp3, which can be done while they are in use",
        )
