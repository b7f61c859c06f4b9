"""core.cluster.fields: what reaches Kafka as it is meant, and what stops a broker."""

from __future__ import annotations

from core.cluster.fields import expression_problem
from infra.alerts.metrics import CONNECT_ALLOW, KAFKA_ALLOW
from tests.every_case import every_case


@every_case(
    ("expression", "words"),
    [
        ("", "would let every metric through"),
        ("kafka_a,kafka_b", "commas stand between expressions"),
        ("kafka_[ab]{1,2}", "commas stand between expressions"),
        (r"kafka_\d+", "its backslash is taken away"),
        ("kafka_a\nnode.id=7", "has a space"),
        (" kafka_a", "has a space"),
        ("(kafka", "is no regular expression"),
        ("*kafka", "is no regular expression"),
        ("(?P<a>kafka)", "no expression that Java reads"),
        ("(kafka)?(?(1)_a|b)", "no expression that Java reads"),
        ("kafka(?#all)", "no expression that Java reads"),
        ("(?a)kafka", "no expression that Java reads"),
        ("kafka_[a[b]", "no expression that Java reads"),
    ],
)
def test_what_kafka_would_not_read_as_it_is_meant_is_refused(expression: str, words: str) -> None:
    assert words in str(expression_problem(expression))


@every_case(
    "expression",
    [
        *KAFKA_ALLOW,
        *CONNECT_ALLOW,
        *(".*", "(?i)KAFKA_.*", "(?<a>kafka)", "(?:a|b)[0-9]{2}", "a++", "kafka(?!_x).*"),
        *("[^a-z]+_x", "(?<!a)b", "(?<=a)b"),
    ],
)
def test_what_java_reads_is_taken(expression: str) -> None:
    assert expression_problem(expression) is None
