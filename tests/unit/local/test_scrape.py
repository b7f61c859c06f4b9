"""What the demo's scraper takes of a broker's own words, and what it measures itself."""

from pathlib import Path

from local.demo import scrape
from spark import samples

EXPOSED = """\
# TYPE kafka_server_brokertopicmetrics_bytesinpersec_total counter
kafka_server_brokertopicmetrics_bytesinpersec_total 4096.0
kafka_server_brokertopicmetrics_bytesinpersec_total{topic="a\\"b"} 12.0
kafka_server_brokertopicmetrics_messagesinpersec_total 7.0
kafka_server_replicamanager_underreplicatedpartitions 0.0
"""


def test_the_series_a_report_reads_are_kept_with_the_labels_of_their_pod() -> None:
    found = dict(scrape.samples_of(EXPOSED, {"pod": "harbour-broker-a-10"}))
    told = [(dict(labels), value) for labels, value in found.items()]
    name = "kafka_server_brokertopicmetrics_bytesinpersec_total"
    assert told == [
        ({"__name__": name, "pod": "harbour-broker-a-10"}, "4096.0"),
        ({"__name__": name, "pod": "harbour-broker-a-10", "topic": 'a\\"b'}, "12.0"),
        (
            {
                "__name__": "kafka_server_replicamanager_underreplicatedpartitions",
                "pod": "harbour-broker-a-10",
            },
            "0.0",
        ),
    ]


def test_every_series_of_the_jobs_is_asked_for() -> None:
    asked = {name.removesuffix("_total") for name in scrape.NAMES} | {scrape.VOLUME_USED}
    read = {
        samples.BYTES_IN,
        samples.BYTES_OUT,
        samples.REPLICATION_IN,
        samples.UNDER_REPLICATED,
        samples.PARTITIONS,
        samples.LOG_SIZE,
        samples.VOLUME_USED,
    }
    assert asked == read


def test_a_sparse_file_counts_as_what_it_takes(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 10_000)
    with (tmp_path / "index").open("wb") as sparse:
        sparse.truncate(10_000_000)
    assert 10_000 <= scrape.used_bytes(tmp_path) < 1_000_000
