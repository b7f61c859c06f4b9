"""Reads Kafkas, their pods, topics, volumes and certificates from an API server into core.model.

Of a certificate its validity alone is read, which stands in it as two times in a row (RFC 5280).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from cli.survey.tools import (
    annotations_of,
    custom,
    going,
    is_condition,
    items,
    kafka_of,
    labels,
    reason_of,
    status_of,
)
from core.availability.operator import is_rebalancing, kafka_conditions
from core.cluster.adopted_names import INSIDE
from core.ground.placement import quantity
from core.ground.window import clock
from core.model.kafka import (
    Kafka,
    KafkaListener,
    KafkaPool,
    Outside,
    Pod,
    PodSet,
    Rebalance,
    Topic,
    Volume,
)
from infra.eks.api import Api, Object

PEM = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
# A SEQUENCE of two times: UTCTime with two digits of the year, or GeneralizedTime with four.
_TIME = rb"(?:\x17\x0d(\d{12})Z|\x18\x0f(\d{14})Z)"
VALIDITY = re.compile(rb"\x30[\x1e-\x22]" + _TIME + _TIME)


def ends(pems: Iterable[str]) -> list[float]:
    """Return when each certificate ends, in epoch seconds; one that cannot be read is left out."""
    found = []
    for body in (body for pem in pems for body in PEM.findall(pem)):
        try:
            validity = VALIDITY.search(base64.b64decode("".join(body.split()), validate=True))
        except binascii.Error:
            continue
        if validity is not None:
            found.append(_moment(validity[3] or validity[4]))
    return found


def _moment(written: bytes) -> float:
    # RFC 5280: years of two digits are those from 1950 on.
    century = b"" if len(written) == 14 else b"20" if written < b"5" else b"19"
    return datetime.strptime(f"{(century + written).decode()}+0000", "%Y%m%d%H%M%S%z").timestamp()


def trusted_until(config: Object) -> float | None:
    """Return when the last authority of a webhook's caBundle ends; None: nobody can tell.

    The API server trusts whatever any authority of the bundle has signed: one that still counts
    is enough. A bundle without one is the system's, or waits for somebody to write it.
    """
    try:
        pem = base64.b64decode(str(config.get("caBundle") or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None  # The API server takes none that cannot be read.
    return max(ends([pem]), default=None)


def lapsed_trust(config: Object, now: float) -> str | None:
    """Return why a webhook's certificate is trusted no more; None: it is, or nobody can tell."""
    until = trusted_until(config)
    return None if until is None or until > now else f"whose caBundle has expired at {clock(until)}"


GROUP, POD_SETS = "kafka.strimzi.io", "core.strimzi.io"
AUTHORITIES = ("clusterCa", "clientsCa")
# How the functions can say who they are.
RESIZING = {"NodeResizePending", "NodeResizeInProgress", "FileSystemResizePending"}
SPOKEN = (None, "tls", "scram-sha-512")
NETWORK_DRIVERS = (
    *("efs.csi.aws.com", "fsx.csi.aws.com", "fsx.openzfs.csi.aws.com", "s3.csi.aws.com"),
    *("nfs.csi.k8s.io", "smb.csi.k8s.io"),
)
# Volumes of before there were drivers, by their key in a volume's spec.
NETWORK_SOURCES = {"nfs": "NFS", "cephfs": "CephFS", "glusterfs": "GlusterFS", "azureFile": "SMB"}
# Keys there that say something else, or are judged by themselves.
KNOWN_SOURCES = {
    *("capacity", "claimRef", "nodeAffinity", "csi", "local", "hostPath", "awsElasticBlockStore")
}
# Labels by which drivers tell nodes apart: kubernetes.io/hostname, topology.topolvm.io/node.
NODE = re.compile(r".*(node|host)[^/]*")
# The kinds of EBS's own drivers, and the type each makes where the class names none.
IN_TREE_DRIVER = "ebs.csi.aws.com"
EBS = {"ebs.csi.aws.com": "gp3", "ebs.csi.eks.amazonaws.com": "gp3", "kubernetes.io/aws-ebs": "gp2"}


def kafkas(api: Api, namespace: str | None) -> tuple[Kafka, ...]:
    return tuple(map(_kafka, custom(api, GROUP, "kafkas", namespace)))


def _kafka(item: Object) -> Kafka:
    spec, marks = item["spec"]["kafka"], annotations_of(item)
    conditions = kafka_conditions(item)
    unready = conditions.not_ready
    kraft = marks.get("strimzi.io/kraft", "").lower() == "enabled"
    authorization = spec.get("authorization") or {}
    keeper = None if kraft else item["spec"].get("zookeeper") or None
    return Kafka(
        namespace=item["metadata"]["namespace"],
        name=item["metadata"]["name"],
        rack_aware=bool(spec.get("rack")),
        rack_key=(spec.get("rack") or {}).get("topologyKey"),
        listeners=tuple(_listener(each) for each in spec.get("listeners") or ()),
        config={
            key: _config_text(value)
            for key, value in (spec.get("config") or {}).items()
            if value is not None
        },
        authorization=str(authorization.get("type", "none")),
        super_users=frozenset(str(user) for user in authorization.get("superUsers") or ()),
        zookeeper=keeper is not None,
        zookeeper_replicas=int((keeper or {}).get("replicas") or 0),
        migrating=_migrating(item),
        paused=conditions.paused,
        not_ready=None if unready is None else unready.message or unready.reason,
        ignored=conditions.ignored,
        replicas=spec.get("replicas"),
        outside=_outside(item, spec),
        unspoken=_unspoken(item, spec),
        own_authorities=tuple(
            name
            for name in AUTHORITIES
            if (item["spec"].get(name) or {}).get("generateCertificateAuthority") is False
        ),
        **_certificate_ends(item, spec),
        renewal_days=int((item["spec"].get("clusterCa") or {}).get("renewalDays") or 30),
        leaving=going(item),
        # Before the first reconciliation there is none.
        unreconciled="observedGeneration" in status_of(item) and not conditions.generation_observed,
        labels=labels(item),
    )


def _certificate_ends(item: Object, spec: Object) -> dict[str, dict[str, float | None]]:
    """Return when the certificates end that Strimzi's status shows of listeners with TLS.

    Of authorities one that still counts is enough; a chain ends with its first certificate.
    """
    shown = {str(e.get("name")): e for e in status_of(item).get("listeners") or ()}
    authority: dict[str, float | None] = {}
    own: dict[str, float | None] = {}
    for each in spec.get("listeners") or ():
        name = str(each["name"])
        if each.get("tls") and name in shown:
            found = ends(shown[name].get("certificates") or ())
            if "brokerCertChainAndKey" in (each.get("configuration") or {}):
                own[name] = min(found, default=None)
            else:
                authority[name] = max(found, default=None)
    return {"authority_ends": authority, "own_certificate_ends": own}


def _migrating(item: Object) -> bool:
    """Say whether the metadata is on its way: by the annotation, or by what Strimzi says of it."""
    asked = annotations_of(item).get("strimzi.io/kraft", "").lower()
    state = status_of(item).get("kafkaMetadataState")
    return asked in {"migration", "rollback"} or state not in {None, "KRaft", "ZooKeeper"}


def _listener(item: Object) -> KafkaListener:
    return KafkaListener(
        str(item["name"]),
        (item.get("authentication") or {}).get("type"),
        kind=str(item.get("type") or "internal"),
        fenced=bool(item.get("networkPolicyPeers")),
        tls=bool(item.get("tls")),
    )


def _outside(item: Object, spec: Object) -> Outside | None:
    """Return the listener that outsiders come by, one that asks who comes where there is any."""
    found = []
    for listener, servers in _reached_from_outside(item, spec):
        how = (listener.get("authentication") or {}).get("type")
        if how in SPOKEN:
            own = "brokerCertChainAndKey" in (listener.get("configuration") or {})
            encrypted = bool(listener.get("tls"))
            found.append(
                Outside(
                    bootstrap=servers,
                    authentication=how,
                    encrypted=encrypted,
                    own_certificate=encrypted and own,
                    fenced=bool(listener.get("networkPolicyPeers")),
                )
            )
    return min(found, key=lambda each: each.authentication is None, default=None)


def _unspoken(item: Object, spec: Object) -> tuple[str, ...]:
    """Return listeners of outsiders that ask for what the functions cannot say: name (oauth)."""
    return tuple(
        f"{listener.get('name')} ({how})"
        for listener, _ in _reached_from_outside(item, spec)
        if (how := (listener.get("authentication") or {}).get("type")) not in SPOKEN
    )


def _reached_from_outside(item: Object, spec: Object) -> Iterator[tuple[Object, str]]:
    """Yield the listeners that Strimzi's status names an address of, none of the cluster's own."""
    asked = {str(each["name"]): each for each in spec.get("listeners") or ()}
    for each in status_of(item).get("listeners") or ():
        servers = str(each.get("bootstrapServers") or "")
        if servers and not INSIDE.fullmatch(servers.rpartition(":")[0]):
            yield asked.get(str(each.get("name")), {}), servers


def _config_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def pools(api: Api, namespace: str | None) -> tuple[KafkaPool, ...]:
    return tuple(
        KafkaPool(
            namespace=item["metadata"]["namespace"],
            name=item["metadata"]["name"],
            kafka=kafka_of(item),
            replicas=int(item["spec"].get("replicas", 0)),
            roles=frozenset(item["spec"].get("roles") or ()),
            leaving=going(item),
            claims_go=_deletes_claims(item["spec"].get("storage") or {}),
        )
        for item in custom(api, GROUP, "kafkanodepools", namespace)
    )


def _deletes_claims(storage: Object) -> bool:
    return any(
        each.get("deleteClaim") is True for each in (storage, *(storage.get("volumes") or ()))
    )


def pod_sets(api: Api, namespace: str | None) -> tuple[PodSet, ...]:
    return tuple(
        PodSet(
            namespace=item["metadata"]["namespace"],
            name=item["metadata"]["name"],
            kafka=kafka_of(item),
            leaving=going(item),
            outdated=_outdated_count(status_of(item)),
            error=reason_of(item, "Error") if is_condition(item, "Error") else None,
        )
        for item in custom(api, POD_SETS, "strimzipodsets", namespace)
        # Connect and others have such too, and may be called as a Kafka is.
        if labels(item).get("strimzi.io/kind", "Kafka") == "Kafka"
    )


def _outdated_count(status: Object) -> int:
    pods, current = status.get("pods"), status.get("currentPods")
    return 0 if pods is None or current is None else max(0, int(pods) - int(current))


def rebalances(api: Api, namespace: str | None) -> tuple[Rebalance, ...]:
    """Return the rebalances that are carried out at this moment."""
    return tuple(
        Rebalance(
            namespace=item["metadata"]["namespace"],
            name=item["metadata"]["name"],
            kafka=kafka_of(item),
        )
        for item in custom(api, GROUP, "kafkarebalances", namespace)
        if is_rebalancing(item)
    )


def topics(api: Api, namespace: str | None) -> tuple[Topic, ...]:
    return tuple(
        _topic(item)
        for item in custom(api, GROUP, "kafkatopics", namespace)
        # Of one that the operator leaves alone, what is written need not be what Kafka has.
        if annotations_of(item).get("strimzi.io/managed", "").lower() != "false"
        and annotations_of(item).get("strimzi.io/pause-reconciliation", "").lower() != "true"
    )


def _topic(item: Object) -> Topic:
    spec = item.get("spec") or {}
    config = spec.get("config") or {}
    in_sync = config.get("min.insync.replicas")
    # -1 is Kafka's word for its default.
    replicas = spec.get("replicas") if spec.get("replicas", -1) > 0 else None
    return Topic(
        namespace=item["metadata"]["namespace"],
        name=str(spec.get("topicName") or item["metadata"]["name"]),
        kafka=kafka_of(item),
        replicas=replicas,
        min_in_sync=None if in_sync is None else int(in_sync),
        unclean=_config_text(config.get("unclean.leader.election.enable")).lower() == "true",
    )


def volumes(api: Api, wanted: Iterable[Pod]) -> tuple[Volume, ...]:
    names = {(pod.namespace, claim) for pod in wanted for claim in pod.claims}
    disks = {item["metadata"]["name"]: item for item in items(api, "/api/v1", "persistentvolumes")}
    kinds = {
        item["metadata"]["name"]: item
        for item in items(api, "/apis/storage.k8s.io/v1", "storageclasses")
    }
    return tuple(
        _volume(namespace, item, disks, kinds)
        for namespace in sorted({each for each, _ in names})
        for item in items(api, "/api/v1", "persistentvolumeclaims", namespace)
        if (namespace, item["metadata"]["name"]) in names
    )


def _volume(
    namespace: str, item: Object, disks: Mapping[str, Object], kinds: Mapping[str, Object]
) -> Volume:
    spec = item["spec"]
    name = spec.get("storageClassName")
    kind, volume = kinds.get(name or ""), disks.get(spec.get("volumeName", ""), {})
    disk = volume.get("spec") or {}
    driver = (disk.get("csi") or {}).get("driver")
    size = quantity(str((disk.get("capacity") or {}).get("storage") or ""))
    on_node = bool(disk.get("local") or disk.get("hostPath")) or any(
        NODE.fullmatch(key) for key in _topology(disk)
    )
    return Volume(
        namespace=namespace,
        claim=item["metadata"]["name"],
        reclaim=disk.get("persistentVolumeReclaimPolicy"),
        storage_class=name,
        binding=None if kind is None else kind.get("volumeBindingMode", "Immediate"),
        expandable=None if kind is None else bool(kind.get("allowVolumeExpansion")),
        on_node=on_node,
        unknown_driver=None if on_node or driver in {*EBS, *NETWORK_DRIVERS} else _source(disk),
        leaving=any(going(each) for each in (item, volume)),
        stuck=_failed_change(status_of(item)),
        resizing=_unfinished_resize(status_of(item)),
        driver=IN_TREE_DRIVER if disk.get("awsElasticBlockStore") else driver,
        shared_by=next(
            (title for key, title in NETWORK_SOURCES.items() if disk.get(key)),
            driver if driver in NETWORK_DRIVERS else None,
        ),
        ebs_type=_ebs_type(kind),
        gib=None if size is None else float(size / 2**30),
        handle=(disk.get("csi") or {}).get("volumeHandle") or _legacy_volume_id(disk),
    )


def _legacy_volume_id(disk: Object) -> str | None:
    """Return the id of a volume of before there were drivers: aws://ZONE/vol-0a1b, or vol-0a1b."""
    written = str((disk.get("awsElasticBlockStore") or {}).get("volumeID") or "")
    return written.rpartition("/")[2] or None


def _source(disk: Object) -> str | None:
    """Return what a volume is made of, where nothing is known of that."""
    if driver := (disk.get("csi") or {}).get("driver"):
        return str(driver)
    known = {*KNOWN_SOURCES, *NETWORK_SOURCES}
    return next(
        (
            key
            for key, value in sorted(disk.items())
            if isinstance(value, dict) and key not in known
        ),
        None,
    )


def _failed_change(status: Object) -> str | None:
    """Return what of a claim's last change Kubernetes has given up."""
    said = [*(status.get("allocatedResourceStatuses") or {}).values()]
    said.append((status.get("modifyVolumeStatus") or {}).get("status") or "")
    # Before these there were conditions alone.
    said += [str(each.get("type")) for each in status.get("conditions") or ()]
    return next((each for each in said if each.endswith(("Infeasible", "ResizeError"))), None)


def _unfinished_resize(status: Object) -> str | None:
    """Return what of a claim's growth waits for its node."""
    said = [str(each) for each in (status.get("allocatedResourceStatuses") or {}).values()]
    said += [
        str(each.get("type"))
        for each in status.get("conditions") or ()
        if str(each.get("status")) == "True"
    ]
    return next((each for each in said if each in RESIZING), None)


def _topology(disk: Object) -> set[str]:
    """Return the labels by which a volume is bound to a place."""
    terms = ((disk.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    return {each["key"] for term in terms for each in term.get("matchExpressions") or ()}


def _ebs_type(kind: Object | None) -> str | None:
    if kind is None or kind.get("provisioner") not in EBS:
        return None
    return str((kind.get("parameters") or {}).get("type") or EBS[kind["provisioner"]])
