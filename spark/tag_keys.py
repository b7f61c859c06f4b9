"""The tags by which a bill says whose a charge is, and how exports spell their keys.

CUR 2.0's map says `user_stillwater_pool`, some exports `user:stillwater:pool`, the newer `tags`
map `resourceTags/user:stillwater:pool`, FOCUS the key itself; legacy CUR and exports that flatten
a tag give it a column. Which tag means Kafka is the user's to say: ours are the default. A cost
category, or a tag of the whole account, says it as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date
from functools import cache

from core.ground.errors import InvalidInput
from core.ground.naming import CLUSTER_TAG, POOL_TAG

# The EBS CSI driver's, on the volume it makes for a claim.
CLAIM_TAG = "kubernetes.io/created-for/pvc/name"
# EKS's, on the nodes of its own groups, which carry system pods and never a broker.
NODE_GROUP_TAG = "eks:nodegroup-name"
# On every line that no one was charged for.
SIMULATED_TAG = "stillwater:simulated"
# Keys that nobody gives a cost category or an account.
_FIXED = (CLUSTER_TAG, POOL_TAG, CLAIM_TAG, NODE_GROUP_TAG)
# What the columns begin with that tags have for themselves, in lower case.
TAG_COLUMNS = ("resource_tags_", "resourcetags/")
# Columns of a report's own, and what others begin with: they hold no tag that is called so.
_OWN_COLUMNS = ("product", "discount", "tags", "resource_tags", "cost_category", "billing_period")
_OWN_GROUPS = (
    *("identity_", "bill_", "line_item_", "product_", "pricing_", "reservation_", "savings_plan_"),
    *("split_line_item_", "discount_", "capacity_reservation_"),
)
# How people name a cost category where a tag's key is asked for.
_CATEGORY = re.compile(r"(?i)(?:x_)?cost[_ ]?categor(?:y|ies)[/:._ ]+")
# Stands for tags that are written, and in a way that nobody reads.
UNREAD_TAGS = "tags that cannot be read"


@dataclass(frozen=True, slots=True)
class KafkaTags:
    """What says that a charge is Kafka's: a tag, a claim of a known cluster, a known resource.

    `cluster` is the key of a tag whose value is a cluster's name or, with `value`, of one that
    means Kafka with that value alone. `name` is what the cluster is called where its tag does not
    say so, and by which volumes' claims are known. `resources` are ids that somebody else knows to
    be Kafka's: the ledger its instances, and `learnt_on` the day it knew each of them.
    """

    cluster: str = CLUSTER_TAG
    value: str | None = None
    pool: str = POOL_TAG
    name: str | None = None
    resources: frozenset[str] = field(default=frozenset())
    # It says nothing of what a line is: descriptions are remembered without it.
    learnt_on: tuple[date, ...] = field(default=(), compare=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys of every tag that is looked up."""
        return (self.cluster, self.pool, CLAIM_TAG, NODE_GROUP_TAG)

    @property
    def is_own(self) -> bool:
        """Say whether the cluster's tag is the user's own, and not the one that our stacks set."""
        return self.cluster != CLUSTER_TAG

    @property
    def spoken(self) -> str:
        """Return the tag as it is said: its key, or key = value."""
        return self.cluster if self.value is None else f"{self.cluster} = {self.value}"

    @property
    def asked(self) -> tuple[str, str]:
        """Return what tables are made by: the cluster's tag and the pool's."""
        return self.spoken, self.pool

    def told_by(self, before: date) -> str:
        """Return what tells Kafka's charges beside the tags, as far as it was known before a day.

        The ledger goes on learning: of a month that is final only what it knew by then counts.
        """
        known = sum(day < before for day in self.learnt_on)
        return f"{self.name or 'no cluster'}; instances that its ledger knew: {known}"

    @property
    def called(self) -> str | None:
        """Return the name of the one cluster that is meant, where there is one."""
        return self.name or self.value

    @property
    def claims(self) -> str | None:
        """Return the pattern of the known cluster's claims (core.ground.naming.claim), or None."""
        return None if self.name is None else rf"^data-\d+-{re.escape(self.name)}-.+-\d+$"


OURS = KafkaTags()


def parse_tags(cluster_tag: str | None, pool_tag: str | None, name: str | None = None) -> KafkaTags:
    """Read `KEY` or `KEY=VALUE` and a pool's key, as options say them."""
    key, equals, value = (cluster_tag or CLUSTER_TAG).partition("=")
    pool = (pool_tag or POOL_TAG).strip()
    if not key.strip() or (equals and not value.strip()) or not pool or "=" in pool:
        problem = (
            f"--cluster-tag {cluster_tag} --pool-tag {pool_tag}: a tag is named by its key "
            f"(kafka-cluster), or for the cluster by key and value (team=streaming)."
        )
        raise InvalidInput([problem])
    return KafkaTags(key.strip(), value.strip() if equals else None, pool, name)


def export_key(key: str) -> str:
    """Return how CUR 2.0's resource_tags map spells a tag's key.

    stillwater:pool -> user_stillwater_pool; aws:autoscaling:groupName ->
    aws_autoscaling_group_name.
    """
    words = re.sub(r"([A-Z])", r"_\1", key).lower()
    snake = re.sub(r"[^0-9a-z]+", "_", words).strip("_")
    return snake if key.startswith("aws:") else f"user_{snake}"


def category_name(key: str) -> str:
    """Return the name of a cost category that is asked for as one; any other key as it is."""
    asked = _CATEGORY.match(key)
    return key[asked.end() :] if asked else key


def spellings(key: str) -> tuple[str, ...]:
    """Return every spelling of a tag's key in a map, the likeliest first."""
    marked = key if key.startswith("aws:") else f"user:{key}"
    forms = [export_key(key), marked, key, f"resourceTags/{marked}", f"resourceTags/{key}"]
    if key not in _FIXED and not key.startswith("aws:"):
        # The map `tags` has categories and accounts' tags too; what a resource says comes first.
        forms += [f"costCategory/{key}", f"accountTag/{key}"]
    if (category := category_name(key)) != key:
        forms += [f"costCategory/{category}", category, words_of(category)]
    if not key.isascii():
        forms.append(f"user_{key}")
    return tuple(dict.fromkeys(forms))


def column_spellings(key: str) -> tuple[str, ...]:
    """Return every name of the column that a tag may have for itself, in lower case.

    A cost category that is called so is as good: legacy CUR has a column for each.
    """
    snake = export_key(key)
    marked = key if key.startswith("aws:") else f"user:{key}"
    category = f"cost_category_{snake.removeprefix('user_')}"
    forms = (f"resource_tags_{snake}", snake, f"resourcetags/{marked.lower()}", category)
    return tuple(dict.fromkeys(forms))


@cache
def every_spelling(key: str) -> tuple[str, ...]:
    """Return every spelling of a tag's key, of a column for itself and then of a map."""
    return tuple(dict.fromkeys((*column_spellings(key), *spellings(key))))


@cache
def all_spellings(keys: tuple[str, ...]) -> frozenset[str]:
    """Return several tags' keys in every spelling."""
    return frozenset(spelled for key in keys for spelled in every_spelling(key))


def tag_columns(key: str, columns: Collection[str]) -> list[str]:
    """Return which of a bill's columns, in lower case, hold a tag by themselves.

    A query that takes one out of a map calls it as an export of whole columns does, or by the words
    of its key alone (SELECT cost_category.team, ... AS stillwater_cluster).
    """
    plain = words_of(key)
    is_tags = plain not in _OWN_COLUMNS and not plain.startswith(_OWN_GROUPS)
    alone = [plain] if is_tags and plain in columns else []
    return [*(each for each in column_spellings(key) if each in columns), *alone]


def words_of(key: str) -> str:
    """Return a tag's key as a column's name that says nothing of a tag."""
    return export_key(key).removeprefix("user_")
