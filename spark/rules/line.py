"""Says of one different line of a bill what it is: what it bought, whose it is, what it may save.

Plain functions of the line's own texts and tags, tried on every line that a bill says in its own
way, once for all the days on which it says it. A line that nothing makes Kafka's is known by what
was bought alone; its resource, zone and tags are dropped, and the same texts are the same line.

An instance is known by its pool tag and its zone; a volume by the claim it was made for, which also
names the Kafka node. What both know, the KafkaNodePool (`broker-a`), is the owner. Which node an
instance carried is on no tag, since it changes with every rotation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from spark.rules import meters
from spark.rules.meters import (
    REMEMBERED,
    SPECIAL,
    Attribution,
    Component,
    Easy,
    Flow,
    Meter,
    is_found,
    pattern,
    search,
)
from spark.tag_keys import OURS, KafkaTags, all_spellings, every_spelling

# What exports write for "nothing", and what databases (\\N), Python and pandas do.
EMPTY = frozenset(
    (
        *("", "NULL", "null", "\\N", "None", "nan", "NaN", "NaT", "<NA>"),
        # What people and spreadsheets write for it.
        *("-", "n/a", "N/A", "#N/A", "(null)", "<null>", "nil", "none"),
    )
)
# Two-region forms (USE1-CAN1-AWS-Out-Bytes) and EU-, which has no number, are in real bills; zones
# away from a region stand behind it (USW2-LAX1-, USE1-WL1-BOS1-). Looser patterns cut off what is
# no place: EMR-SERVERLESS, EKS-EC2-vCPU-Hours.
REGION_PREFIX = pattern(r"^(?:(?:[A-Z]{3,8}\d{1,2}|WL\d(?:[A-Z]{3}\d)?|EU)-){1,6}")
# As CUR's billing entities and FOCUS's providers call it. AISPL sells AWS in India (Cost Explorer's
# Expression, BILLING_ENTITY); the sellers of a marketplace are no part of AWS's own meters.
AWS = pattern(r"(?i)^(AWS|AISPL|Amazon Web Services)\b(?!.*marketplace)")
# core.ground.naming.claim: data-<volume>-<cluster>-<node pool>-<node id>
_CLAIM = pattern(r"^data-\d+-(.+)-(\d+)$")
_ZONE_WITH_LETTER = pattern(r"[a-z]$")
_LARGEST_NODE_ID = 2**31 - 1

WHOLE_CLUSTER = "whole cluster"
# Discounts as lines of their own are of a kind each: EdpDiscount, PrivateRateDiscount, ...
DISCOUNT = "Discount"
# The part of a commitment that nothing ran under, on FOCUS bills a charge like those of use.
UNUSED = "Unused commitment"
# Bought or given back as a whole, for no component in particular.
WHOLE_BILL = frozenset(
    (
        *("Tax", "Credit", "Refund", "Fee", "RIFee", "SavingsPlanRecurringFee"),
        *("SavingsPlanUpfrontFee", "Purchase", "Adjustment", UNUSED),
    )
)
# Fees of commitments: their amortised cost is the part that nothing used.
UNUSED_FEES = frozenset(("RIFee", "SavingsPlanRecurringFee", UNUSED))
# What was given back on a meter, but for a discount, is nothing that could be saved once more.
BOUGHT = frozenset(("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanNegation"))


class Raw(NamedTuple):
    """A different line as a reader leaves it, whatever its days."""

    provider: str | None
    account: str | None
    currency: str | None
    category: str | None
    service: str | None
    usage_type: str | None
    operation: str | None
    description: str | None
    unit: str | None
    resource_id: str | None
    zone: str | None
    tag_names: tuple[str, ...]
    tag_values: tuple[str | None, ...]
    reason: str | None  # why it cannot be read
    is_priced: bool  # whether what is billed for it on a day comes to anything


class Described(NamedTuple):
    """The keys of the USAGE table that a line has, and beside them what else it says."""

    provider: str | None
    account: str | None
    currency: str | None
    category: str | None
    service: str | None
    usage_type: str | None  # without the region's prefix
    operation: str | None
    description: str | None
    unit: str | None
    resource_id: str | None
    zone: str | None
    component: str
    attribution: str
    cluster: str | None
    owner: str
    node_id: int | None
    flow: str | None  # of bytes between zones, load balancers and PrivateLink
    easy: str | None
    is_unreadable: bool


class _Texts(NamedTuple):
    """What of a line is kept whoever's it is, tidied; the first fields of Raw and Described."""

    provider: str | None
    account: str | None
    currency: str | None
    category: str | None
    service: str | None
    usage_type: str | None
    operation: str | None
    description: str | None
    unit: str | None


class _Tags(NamedTuple):
    """The values of the tags that are looked up, tidied."""

    cluster: str | None
    pool: str | None
    claim: str | None
    node_group: str | None


class _Owner(NamedTuple):
    """Whose a line is, where, and whether an instance of that owner is one without a broker."""

    zone: str | None
    attribution: str
    cluster: str | None
    owner: str
    node_id: int | None
    is_system_node: bool


# The tags of a line that are looked up, as they are delivered.
_Written = tuple[tuple[str, str | None], ...]
_NOBODY = _Owner(
    None, Attribution.NOBODY.value, None, Attribution.NOBODY.value, None, is_system_node=False
)


def describe(raw: Raw, kafka: KafkaTags) -> Described:
    """Return what a line is, where `kafka` says what means Kafka."""
    written = _written(raw.tag_names, raw.tag_values, kafka)
    # As it is delivered: whoever knows it knows it by that.
    is_known_resource = raw.resource_id in kafka.resources
    is_told = _is_told(written, kafka, is_known_resource=is_known_resource)
    line = _described(
        _owner(written, raw.zone, kafka, is_known_resource=is_known_resource)
        if is_told
        else _NOBODY,
        raw[: len(_Texts._fields)],
        is_priced=raw.is_priced,
        is_unreadable=raw.reason is not None,
    )
    if not is_told or raw.resource_id is None:
        return line
    resource_id, flow = _blank(raw.resource_id), line.flow
    if flow == Flow.UNEXPLAINED:
        flow = meters.moved_between_zones(None, None, resource_id).value
    return line._replace(resource_id=resource_id, flow=flow)


# What of a row of USAGE says its meaning.
MEANING_OF = (*_Texts._fields, "resource_id", "component")


def meaning_of(*said: str | None) -> tuple[str | None, str | None]:
    """Return the flow and the finding of a row of USAGE, from its columns MEANING_OF."""
    *texts, resource_id, component = said
    easy = _easy(_Texts._make(texts))
    return _flow(component, _Texts._make(texts), resource_id), easy and easy.value


def _flow(component: str | None, texts: _Texts, resource_id: str | None) -> str | None:
    """Return why what a component moved was moved, or None of what moves nothing."""
    flow = meters.FLOWS.get(component or "")
    if flow is Flow.UNEXPLAINED:
        flow = meters.moved_between_zones(texts.usage_type, texts.operation, resource_id)
    return flow and flow.value


def _is_told(written: _Written, kafka: KafkaTags, *, is_known_resource: bool) -> bool:
    return is_known_resource or (bool(written) and _is_tagged(written, kafka))


@lru_cache(REMEMBERED)
def _is_tagged(written: _Written, kafka: KafkaTags) -> bool:
    """Say whether a line's tags make it Kafka's: a cluster's, a pool's or a known claim."""
    tags = _tags(written, kafka)
    is_clusters = tags.cluster is not None and kafka.value in (None, tags.cluster)
    return is_clusters or tags.pool is not None or _is_claimed(tags, kafka)


def _is_claimed(tags: _Tags, kafka: KafkaTags) -> bool:
    """Say whether a volume was made for a claim of the known cluster."""
    return (
        tags.claim is not None
        and kafka.claims is not None
        and is_found(pattern(kafka.claims), tags.claim)
    )


@lru_cache(REMEMBERED)
def _owner(
    written: _Written, zone: str | None, kafka: KafkaTags, *, is_known_resource: bool
) -> _Owner:
    """Return whose a line of Kafka's is: a node pool's in one zone, or a cluster's as a whole.

    Where a tag of the user's own says the cluster and none says pools, as where somebody else knows
    the resource, an instance is a broker's without a pool.
    """
    tags, zone = _tags(written, kafka), _blank(zone)
    said = tags.cluster
    if kafka.value is not None:
        said = kafka.called if said == kafka.value else None
    is_named = is_known_resource or _is_claimed(tags, kafka)
    cluster = kafka.called if said is None and is_named else said
    is_by_own_tag = kafka.is_own and kafka.pool == OURS.pool and said is not None
    is_of_no_pool = cluster is not None and tags.pool is None
    is_system_node = (
        (tags.node_group is not None or is_of_no_pool)
        and not is_known_resource
        and not is_by_own_tag
    )
    claimed_pool, node_id = _claimed_node(tags.claim, cluster)
    pool = _pool_in_zone(tags.pool, zone, cluster) or claimed_pool
    if pool is not None:
        attribution, owner = Attribution.NODE_POOL, pool
    elif cluster is not None:
        attribution, owner = Attribution.CLUSTER, WHOLE_CLUSTER
    else:
        attribution, owner = Attribution.NOBODY, Attribution.NOBODY.value
    return _Owner(zone, attribution.value, cluster, owner, node_id, is_system_node)


def _pool_in_zone(pool: str | None, zone: str | None, cluster: str | None) -> str | None:
    """Return core.ground.naming.kafka_node_pool of an instance's pool tag and its zone.

    A zone is told by its letter: one that is written by its id (use1-az1), or that has none, is
    no pool's. Where neither a zone nor a cluster is known the pool itself is the owner.
    """
    if pool is not None and zone is not None and is_found(_ZONE_WITH_LETTER, zone):
        return f"{pool}-{zone[-1]}"
    return pool if cluster is None else None


def _claimed_node(claim: str | None, cluster: str | None) -> tuple[str | None, int | None]:
    """Return the node pool and node id in a claim's name, of a known cluster.

    Elsewhere neither is said: others may name their claims alike.
    """
    found = search(_CLAIM, claim)
    if cluster is None or found is None:
        return None, None
    node_id = int(found[2])
    pool = found[1].removeprefix(f"{cluster}-")
    return pool or None, node_id if node_id <= _LARGEST_NODE_ID else None


@lru_cache(REMEMBERED)
def _described(
    owner: _Owner, delivered: tuple[str | None, ...], *, is_priced: bool, is_unreadable: bool
) -> Described:
    """Return what a line is whose owner is known, but for its resource and what that says."""
    texts = _tidied(delivered)
    meter = meters.component_meter(texts.usage_type, texts.service, texts.unit, texts.description)
    if is_unreadable:
        component = Component.UNREADABLE
    elif _is_split(texts):
        component = Component.SPLIT
    elif meter is None or not _is_of_a_meter(texts, is_priced=is_priced):
        component = Component.OTHER
    else:
        component = _bought(meter, texts, owner)
    easy = _easy(texts)
    return Described(
        *texts,
        resource_id=None,
        zone=owner.zone,
        component=component.value,
        attribution=owner.attribution,
        cluster=owner.cluster,
        owner=owner.owner,
        node_id=owner.node_id,
        flow=_flow(component.value, texts, None),
        easy=easy and easy.value,
        is_unreadable=is_unreadable,
    )


def _is_split(texts: _Texts) -> bool:
    return texts.operation in SPECIAL.split_operations or is_found(SPECIAL.split, texts.usage_type)


def _is_of_a_meter(texts: _Texts, *, is_priced: bool) -> bool:
    """Say whether a line is money of one of AWS's own meters."""
    is_on_another_meter = not is_priced and is_found(SPECIAL.free_where_unpriced, texts.usage_type)
    return _is_aws(texts) and texts.category not in WHOLE_BILL and not is_on_another_meter


def _bought(meter: Meter, texts: _Texts, owner: _Owner) -> Component:
    """Return what a meter's line bought: an instance is a broker's, anybody's, or of the system."""
    component = meter.component or Component.OTHER
    if component is not Component.BROKER_COMPUTE:
        return component
    is_nobodys = owner.attribution == Attribution.NOBODY
    is_auto_modes = is_nobodys and is_found(SPECIAL.auto_mode, texts.usage_type)
    is_idle = is_found(SPECIAL.idle, texts.usage_type)
    if is_idle or is_auto_modes or is_found(SPECIAL.emr, texts.service):
        return Component.OTHER
    if is_nobodys:
        return Component.INSTANCES
    return Component.OTHER if owner.is_system_node else component


def _easy(texts: _Texts) -> Easy | None:
    """Return what a charge is found to be that is cheap to do without, if anything."""
    if not _is_aws(texts):
        return None
    if texts.category in UNUSED_FEES:
        return Easy.UNUSED_COMMITMENT
    if texts.category not in BOUGHT and not is_discount(texts.category):
        return None
    return meters.easy_finding(texts.usage_type, texts.operation, texts.description)


def _is_aws(texts: _Texts) -> bool:
    """Say whether a line is AWS's own, and of no other cloud or seller."""
    return is_found(AWS, texts.provider)


def is_discount(category: str | None) -> bool:
    """Say whether a row of this category is a discount written as a line of its own."""
    return category is not None and category.endswith(DISCOUNT)


def _tidied(delivered: tuple[str | None, ...]) -> _Texts:
    """Return a line's texts without blanks and what stands for nothing, places and prices apart."""
    texts = _Texts(*map(_blank, delivered))
    usage_type = texts.usage_type and REGION_PREFIX.sub("", texts.usage_type)
    # Of one currency, however a tool in between wrote its code.
    return texts._replace(usage_type=usage_type, currency=texts.currency and texts.currency.upper())


def _blank(text: str | None) -> str | None:
    """Return a text without the blanks around it, or None where it says nothing."""
    trimmed = None if text is None else text.strip(" ")
    return None if trimmed in EMPTY else trimmed


def _written(
    tag_names: tuple[str, ...], tag_values: tuple[str | None, ...], kafka: KafkaTags
) -> _Written:
    """Return the tags that are looked up under whatever spelling, as they are delivered."""
    known = all_spellings(kafka.keys)
    # Most lines have none of them.
    if known.isdisjoint(tag_names):
        return ()
    return tuple(tag for tag in zip(tag_names, tag_values, strict=False) if tag[0] in known)


def _tags(written: _Written, kafka: KafkaTags) -> _Tags:
    """Return the values of tags, whichever spelling of their keys an export used."""
    # Of a name that is there twice the first counts.
    values = {name: _blank(value) for name, value in reversed(written)}
    return _Tags(*(_value(values, key) for key in kafka.keys))


def _value(values: dict[str, str | None], key: str) -> str | None:
    """Return a tag's value; one that says nothing hides no other spelling of the key."""
    spelled = (values.get(place) for place in every_spelling(key))
    return next((value for value in spelled if value is not None), None)
