"""By which tags the tables of a month were made, and what is said where others are asked for."""

from __future__ import annotations

from pyspark.sql import Row

from spark.tag_keys import OURS, KafkaTags


def made_by(note: Row) -> tuple[str, str] | None:
    """Return the tags by which a month's tables tell Kafka's from the rest, where that is noted."""
    return None if note.cluster_tag is None else (note.cluster_tag, note.pool_tag)


def other_tags(note: Row, kafka: KafkaTags) -> list[str]:
    """Say where tables were made by other tags than are asked for now."""
    made = made_by(note)
    if made is None or kafka.asked in (made, OURS.asked):
        return []
    shown, asked = (f"{cluster} and, of pools, {pool}" for cluster, pool in (made, kafka.asked))
    return [f"These tables were made by the tags {shown}; by {asked} they have to be made again."]
