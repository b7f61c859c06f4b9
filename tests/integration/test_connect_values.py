"""What `check` says of Kafka Connect's settings, held against the classes that it reads them with.

Every row at its limits and beside them, and every pair around the point where it breaks: the
worker's own clients and a connector's are made of them, by one Java process.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping

import pytest

from core.cluster import connect_settings, connect_values, operator_keys, parse
from core.cluster.kafka_kinds import CLASS, CLASSES, Kind, Shaped
from tests.integration.kafka_verdicts import answers_of
from tests.integration.test_kafka_values import PROGRAM as OF_BROKERS
from tests.integration.test_kafka_values import values
from tests.unit.infra.programs import description

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("java") is None, reason="Kafka's classes need Java"),
]
PROGRAM = OF_BROKERS.with_name("ConnectVerdicts.java")
Config = Mapping[str, str]
# What a broker refuses, or that Kafka could not make: no class of settings knows it.
BROKERS_OWN = ("session.timeout.ms", "storage.replication.factor")
SHAPES = {
    "auto.offset.reset": (
        *("latest", "EARLIEST", "none", "by_duration:PT1H", "by_duration:P", "by_duration:P1D"),
        *("by_duration:-PT1H", "by_duration:P1DT2H3M4.5S", "sooner", ""),
    ),
    "config.providers": ("", "file", "file,env", "file,,env"),
    "group.instance.id": ("", "i"),
    "transactional.id": ("", "t"),
}
# A class of another kind is refused later than its name is read.
CLASS_SETTINGS = (CLASS, CLASSES)
SIZES = (-1, 0, 31, 32, 33, 39, 40, 41, 56, 112, 128, 129, 168, 192, 256, 448, 449, 456, 1024, 1025)


def rows() -> Iterator[dict[str, str]]:
    for setting, kind in {**connect_values.OF_WORKERS, **connect_values.OF_CLIENTS}.items():
        if kind not in CLASS_SETTINGS:
            yield from ({setting: value} for value in of_row(setting, kind))


def of_row(setting: str, kind: Kind) -> Iterator[str]:
    name = setting.removeprefix("producer.").removeprefix("consumer.").removeprefix("admin.")
    if name in SHAPES:
        yield from SHAPES[name]
    elif not isinstance(kind, Shaped) or name.endswith("throttled.replicas"):
        yield from values(setting, kind)


def sessions() -> Iterator[dict[str, str]]:
    for prefix in ("", "consumer."):
        session, beat = f"{prefix}session.timeout.ms", f"{prefix}heartbeat.interval.ms"
        for value in ("9999", "10000", "10001", "44999", "45000", "45001"):
            yield {beat: value}
            yield {beat: value, session: "45000"}
        yield from ({session: value} for value in ("2999", "3000", "3001", "6000", "1800000"))


def deliveries() -> Iterator[dict[str, str]]:
    for prefix in ("", "producer."):
        for value in ("30004", "30005", "30006", "2147483647"):
            yield {f"{prefix}delivery.timeout.ms": value}
            yield {f"{prefix}delivery.timeout.ms": value, f"{prefix}linger.ms": "6"}
            yield {f"{prefix}delivery.timeout.ms": value, f"{prefix}request.timeout.ms": "30001"}
        yield {f"{prefix}request.timeout.ms": "2147483647"}
        yield {f"{prefix}linger.ms": "2147483648"}


def idempotence() -> Iterator[dict[str, str]]:
    for acks, retries, flight, idempotent_ in itertools.product(
        ("all", "-1", "0", "1"), ("0", "1"), ("1", "5", "6"), ("true", "false")
    ):
        yield {
            "producer.acks": acks,
            "producer.retries": retries,
            "producer.max.in.flight.requests.per.connection": flight,
            "producer.enable.idempotence": idempotent_,
        }
    idempotent = {"producer.enable.idempotence": "true"}
    transactional = {**idempotent, "producer.transactional.id": "t"}
    two_phases = {**transactional, "producer.transaction.two.phase.commit.enable": "true"}
    yield from ({**idempotent}, transactional, two_phases)
    yield {**two_phases, "producer.transaction.timeout.ms": "5"}


def protocols() -> Iterator[dict[str, str]]:
    for prefix in ("", "consumer."):
        for setting, value in (
            ("session.timeout.ms", "45000"),
            ("heartbeat.interval.ms", "3000"),
            ("group.remote.assignor", "uniform"),
        ):
            for protocol in ("classic", "consumer"):
                yield {f"{prefix}group.protocol": protocol, f"{prefix}{setting}": value}


def keys() -> Iterator[dict[str, str]]:
    for generator in connect_settings.GENERATORS:
        for size in SIZES:
            yield {
                "inter.worker.key.generation.algorithm": generator,
                "inter.worker.key.size": str(size),
            }
    for signature in ("HmacSHA256", "hmacsha256", "HmacSHA512"):
        for verification in ("HmacSHA256", "HmacSHA512", "HmacSHA512,HmacSHA256", "hmacsha256"):
            yield {
                "inter.worker.signature.algorithm": signature,
                "inter.worker.verification.algorithms": verification,
            }


def sentences(config: Config) -> list[str]:
    return list(connect_values.problems(parse(description(connect={"config": dict(config)}))))


def asked() -> list[dict[str, str]]:
    return [*rows(), *sessions(), *deliveries(), *idempotence(), *protocols(), *keys()]


Answers = tuple[list[str], set[tuple[str, str]]]


@pytest.fixture(scope="module")
def answers() -> Answers:
    lines = ["\t".join(f"{k}={v}" for k, v in each.items()) for each in asked()]
    said = answers_of(PROGRAM, "".join(f"{line}\n" for line in lines))
    begins = said.index("end")
    known = {(line.split("\t")[0], line.split("\t")[1]) for line in said[:begins]}
    return [line for line in said[begins + 1 :] if line.startswith(("ok", "no "))], known


def test_every_setting_of_kafka_connects_is_in_a_table_or_the_operators(answers: Answers) -> None:
    kept = (*operator_keys.OF_CONNECT, "sasl.", "ssl.", "security.")
    unknown = []
    for whose, setting in answers[1]:
        kinds = connect_settings.CLIENTS.get(whose, connect_settings.WORKER)
        known = setting in kinds or setting in connect_settings.OTHERS
        if not known and not setting.startswith((*kept, "internal.")):
            unknown.append((whose, setting))
    assert unknown == []


def test_a_description_is_refused_where_kafka_connect_would_not_start(answers: Answers) -> None:
    differ = []
    for config, refused in zip(asked(), answers[0], strict=True):
        said = sentences(config)
        of_brokers = any(each in setting for setting in config for each in BROKERS_OWN)
        if bool(said) != (refused != "ok") and not (said and of_brokers):
            differ.append((config, said, refused))
    assert differ == []
