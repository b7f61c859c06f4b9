"""local.kafka: what stands for the kafka container, and what its process makes of its config."""

from pathlib import Path

import pytest

from core.ground.errors import MissingPrerequisite, StillwaterError
from local.kafka import classes, jars, run
from local.kubernetes import images
from local.place import Place
from local.tools import prerequisites


def test_certificates_and_their_key_become_one_file_that_nobody_else_reads(tmp_path: Path) -> None:
    secret, work = tmp_path / "secret", tmp_path / "work"
    secret.mkdir()
    work.mkdir()
    for name in ("pod.crt", "pod.key", "ca.p12"):
        (secret / name).write_text(f"<{name}>")
    made = run.pem_files({"/opt/kafka/node-certs": secret, "/data": tmp_path}, work)
    joined = made.pop("/opt/kafka/node-certs.pem")
    assert not made
    assert joined.read_text() == "<pod.key>\n<pod.crt>"
    assert joined.stat().st_mode & 0o777 == 0o600
    template = "ssl.keystore.location=/opt/kafka/node-certs.pem\nx=${d:/opt/kafka/node-certs:a}\n"
    mounts = {"/opt/kafka/node-certs": secret, "/opt/kafka/node-certs.pem": joined}
    real = run.settings(run.effective(template, "a", mounts))
    assert real["ssl.keystore.location"] == str(joined)
    assert real["x"] == f"${{d:{secret}:a}}"


def test_a_small_heap_gets_a_small_cleaner_unless_the_config_says_otherwise() -> None:
    key = "log.cleaner.dedupe.buffer.size"
    assert run.settings(run.effective("", "a", {}))[key] == "8388608"
    assert run.settings(run.effective(f"{key}=1\n", "a", {}))[key] == "1"


def test_java_forgets_addresses_and_reads_the_twins_hosts() -> None:
    command = run.jvm(Path("/jars"), Path("/hosts"))
    assert "-Djdk.net.hosts.file=/hosts" in command
    assert "-Dsun.net.inetaddr.ttl=1" in command
    assert "-Dsun.net.inetaddr.negative.ttl=0" in command


@pytest.mark.parametrize(
    ("content", "used"),
    [
        pytest.param(b"classes", True, id="recorded"),
        pytest.param(b"", False, id="this-java-records-none"),
        pytest.param(None, False, id="not-recorded-yet"),
    ],
)
def test_java_maps_recorded_classes_when_there_are_any(
    tmp_path: Path, content: bytes | None, used: bool
) -> None:
    folder = tmp_path / "4.2.0-key"
    if content is not None:
        classes.archive(folder).write_bytes(content)
    flag = f"-XX:SharedArchiveFile={tmp_path / '4.2.0-key.jsa'}"
    assert (flag in run.jvm(folder, Path("/hosts"))) is used


def test_a_java_that_records_nothing_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise StillwaterError("This Java records no class archive.")

    monkeypatch.setattr(classes, "_run_once", refuse)
    folder, work = tmp_path / "jars", tmp_path / "work"
    work.mkdir()
    classes.record(folder, work, "4.2")
    assert classes.archive(folder).read_bytes() == b""


def command(mounts: dict[str, Path]) -> list[str]:
    request = images.ContainerRequest(
        place=Place(41, Path("/twin")),
        cluster="c",
        pod={"metadata": {"name": "c-broker-a-10", "uid": "uid-1"}},
        container={"name": "kafka", "image": "quay.io/strimzi/kafka:1"},
        environment={},
        mounts=mounts,
        pod_ip="10.41.1.5",
    )
    return images.launch(request).argv


def test_a_pod_without_configuration_is_one_sentence() -> None:
    with pytest.raises(StillwaterError, match="mounts nothing at /opt/kafka/custom-config"):
        command({})


@pytest.fixture
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache, and no Maven."""
    monkeypatch.setenv("STILLWATER_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")


@pytest.mark.usefixtures("_cache")
def test_jars_are_kept_by_version_and_pom(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = jars.home()
    assert first.parent == tmp_path / "kafka"
    assert first.name.startswith(f"{jars.version()}-")
    other = tmp_path / "pom.xml"
    other.write_text(jars.POM.read_text() + "<!-- changed -->")
    monkeypatch.setattr(jars, "POM", other)
    assert jars.home() != first


@pytest.mark.usefixtures("_cache")
def test_jars_that_were_not_fetched_are_said_so() -> None:
    with pytest.raises(StillwaterError, match="run `python -m local setup`"):
        jars.directory()


@pytest.mark.usefixtures("_cache")
def test_jars_that_are_there_need_no_maven() -> None:
    jars.home().mkdir(parents=True)
    classes.archive(jars.home()).touch()
    seen: list[str] = []
    assert jars.fetch(lambda progress: seen.append(progress.state)) == jars.home()
    assert seen == ["cached"]


@pytest.mark.usefixtures("_cache")
def test_fetching_without_maven_says_how_to_get_it() -> None:
    with pytest.raises(MissingPrerequisite) as caught:
        jars.fetch()
    assert "no `mvn` is on the PATH" in str(caught.value)
    assert prerequisites.PREREQUISITES[2].remedy in str(caught.value)
