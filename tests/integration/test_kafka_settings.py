"""Kafka's own classes define the settings that `check` judges by the file of definitions."""

import shutil

import pytest

from core.cluster import kafka_settings
from local.kafka.definitions import definitions

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("java") is None, reason="Kafka's classes need Java"),
]


def test_the_file_is_what_kafkas_classes_define() -> None:
    assert kafka_settings.FILE.read_text() == definitions()
