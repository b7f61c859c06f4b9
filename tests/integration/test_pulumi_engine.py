"""Small programs through the real engine, the language host and the AWS provider, on the twin."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.engine.events import LayerFailed
from cli.engine.layers import Layers
from local.processes import start_time_ticks
from local.twin import Twin
from tests.integration.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.integration

QUEUE_PROGRAM = """
import pulumi, pulumi_aws as aws
config = pulumi.Config()
provider = aws.Provider("aws", region="us-east-1", default_tags={"tags": {"team": "kafka"}})
opts = pulumi.ResourceOptions(provider=provider)
vpc = aws.ec2.Vpc("vpc", cidr_block="10.99.0.0/16", enable_dns_hostnames=True, opts=opts)
subnet = aws.ec2.Subnet(
    "subnet", vpc_id=vpc.id, cidr_block=config.get("cidr") or "10.99.1.0/24",
    availability_zone="us-east-1a", opts=opts)
queue = aws.sqs.Queue(
    "queue", name=config.get("queue") or "thin-a", tags={"own": "yes"},
    visibility_timeout_seconds=config.get_int("visibility") or 30, opts=opts)
rule = aws.cloudwatch.EventRule("rule", event_pattern='{"source": ["aws.ec2"]}', opts=opts)
aws.cloudwatch.EventTarget("target", rule=rule.name, arn=queue.arn, opts=opts)
table = aws.dynamodb.Table(
    "table", name="thin", hash_key="pk", billing_mode="PAY_PER_REQUEST",
    attributes=[{"name": "pk", "type": "S"}], opts=opts)
pulumi.export("url", queue.url)
pulumi.export("rule", rule.name)
pulumi.export("password", pulumi.Output.secret("hidden"))
"""
RESOURCES = 8  # the six above, the provider and the stack
FUNCTION_PROGRAM = """
import pulumi, pulumi_aws as aws
lambda_may = '{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, ' \
    '"Action": "sts:AssumeRole"}'
trust = f'{{"Version": "2012-10-17", "Statement": [{lambda_may}]}}'
role = aws.iam.Role("role", assume_role_policy=trust)
function = aws.lambda_.Function(
    "function", name="thin-function", role=role.arn, runtime="python3.11", handler="code.handler",
    code=pulumi.FileArchive(pulumi.Config().require("code")),
    environment={"variables": {"ON": "1"}})
aws.eks.AccessEntry(
    "entry", cluster_name="thin", principal_arn=role.arn, kubernetes_groups=["thin:readers"])
pulumi.export("sha", function.code_sha256)
pulumi.export("role", role.arn)
"""


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a program into a project of its own."""

    def write(text: str) -> Path:
        settings = {"name": "thin", "runtime": "python", "main": "program"}
        (tmp_path / "program").mkdir(exist_ok=True)
        (tmp_path / "program" / "__main__.py").write_text(text)
        (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
        return tmp_path

    return write


class Run:
    """One program's stack, with the configuration it runs with."""

    def __init__(self, twin: Twin, directory: Path, **config: str) -> None:
        self.twin = twin
        self.directory = directory
        self.config = config

    @property
    def _layers(self) -> Layers:
        config = {f"thin:{key}": value for key, value in self.config.items()}
        return Layers(
            "test", self.twin.environment(), self.directory, layers=("thin",), config=config
        )

    def up(self, **config: str) -> Any:
        self.config |= config
        return self._layers.up()[0]

    def destroy(self) -> Any:
        return self._layers.destroy()[0]


@pytest.fixture
def start(twin: Twin, project: Callable[[str], Path]) -> Iterator[Callable[..., Run]]:
    """Makes runs, and destroys what they left."""
    runs: list[Run] = []

    def make(text: str, **config: str) -> Run:
        runs.append(Run(twin, project(text), **config))
        return runs[-1]

    yield make
    for run in runs:
        run.destroy()


def attributes(twin: Twin, url: str) -> Mapping[str, str]:
    answer = twin.aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return dict(answer["Attributes"])


def queues(twin: Twin) -> list[str]:
    found = twin.aws("sqs").list_queues(QueueNamePrefix="thin-").get("QueueUrls", [])
    return [url.rsplit("/", 1)[-1] for url in found]


@pytest.mark.long
def test_a_program_comes_up_once_changes_in_place_is_replaced_and_goes(
    twin: Twin, start: Callable[..., Run]
) -> None:
    run = start(QUEUE_PROGRAM)
    first = run.up()
    assert (first.created, first.changed) == (RESOURCES, RESOURCES)
    assert first.outputs["password"] == "hidden"
    url = first.outputs["url"]
    assert twin.aws("sqs").list_queue_tags(QueueUrl=url)["Tags"] == {"team": "kafka", "own": "yes"}
    targets = twin.aws("events").list_targets_by_rule(Rule=first.outputs["rule"])["Targets"]
    assert [target["Arn"] for target in targets] == [attributes(twin, url)["QueueArn"]]

    second = run.up()
    assert (second.changed, second.same) == (0, RESOURCES)

    updated = run.up(visibility="45")
    assert (updated.updated, updated.changed) == (1, 1)
    assert attributes(twin, url)["VisibilityTimeout"] == "45"

    # A new name for the queue is a new queue, and the rule's target follows it.
    replaced = run.up(queue="thin-b")
    assert (replaced.replaced, replaced.updated, replaced.created) == (1, 1, 0)
    assert queues(twin) == ["thin-b"]

    gone = run.destroy()
    assert gone.deleted == RESOURCES
    assert queues(twin) == []
    vpcs = twin.aws("ec2").describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.99.0.0/16"]}])
    assert vpcs["Vpcs"] == []


@pytest.mark.long
def test_a_refused_create_is_one_sentence_and_the_next_run_goes_on_from_there(
    start: Callable[..., Run],
) -> None:
    run = start(QUEUE_PROGRAM, cidr="192.168.0.0/24")
    with pytest.raises(LayerFailed) as failure:
        run.up()
    (problem,) = failure.value.problems
    assert problem == (
        "subnet failed. Fix the cause, and run this again: it goes on where it ended. In its own "
        "words: AWS refused CreateSubnet for subnet (InvalidSubnet.Range): The CIDR "
        "'192.168.0.0/24' is invalid."
    )
    mended = run.up(cidr="10.99.1.0/24")
    assert mended.created >= 1
    assert mended.created + mended.same + mended.updated == RESOURCES


def test_a_users_mistake_is_its_sentences_alone(start: Callable[..., Run]) -> None:
    run = start(
        "class StillwaterError(Exception): ...\n"
        "raise StillwaterError('The first thing is wrong.\\nSo is the second.')\n"
    )
    with pytest.raises(LayerFailed) as failure:
        run.up()
    assert failure.value.problems == ("The first thing is wrong.\nSo is the second.",)


def test_a_fault_of_the_program_shows_the_programs_own_lines_alone(
    start: Callable[..., Run],
) -> None:
    run = start("def broken():\n    return {}['x']\nbroken()\n")
    with pytest.raises(LayerFailed) as failure:
        run.up()
    (problem,) = failure.value.problems
    assert problem.endswith("KeyError: 'x'")
    assert problem.count("File ") == problem.count("__main__.py") == 2


def access_rows(twin: Twin, role: str) -> list[dict[str, Any]]:
    held = twin.api.get("/api/v1/namespaces/kube-system/configmaps/aws-auth")
    return [row for row in yaml.safe_load(held["data"]["mapRoles"]) if row["rolearn"] == role]


# Its role has no right at all, not even to write a log.
@pytest.mark.long
@pytest.mark.means_to_be_refused("logs:*")
def test_a_function_follows_its_code_and_an_access_entry_its_resource(
    twin: Twin, start: Callable[..., Run], tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "code.py").write_text("def handler(event, context):\n    return 'one'\n")
    run = start(FUNCTION_PROGRAM, code=str(code))
    first = run.up()
    role = first.outputs["role"]
    assert [row["groups"] for row in access_rows(twin, role)] == [["thin:readers"]]
    (code / "code.py").touch()
    assert run.up().changed == 0
    (code / "code.py").write_text("def handler(event, context):\n    return 'two'\n")
    second = run.up()
    assert (second.updated, second.changed) == (1, 1)
    assert second.outputs["sha"] != first.outputs["sha"]
    answer = twin.aws("lambda").invoke(FunctionName="thin-function")
    assert answer["Payload"].read() == b'"two"'

    run.destroy()
    assert access_rows(twin, role) == []


def pulumi(twin: Twin, directory: Path, *arguments: str) -> str:
    """Run the CLI as a person would; return all it said."""
    answer = subprocess.run(
        ["pulumi", "--non-interactive", *arguments],
        cwd=directory,
        env=twin.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=120,
    )
    return answer.stdout


@pytest.mark.long
def test_plain_pulumi_works_and_says_nothing_of_the_twin(
    twin: Twin, project: Callable[[str], Path]
) -> None:
    directory = project(QUEUE_PROGRAM)
    pulumi(twin, directory, "stack", "init", "plain")
    try:
        planned = pulumi(twin, directory, "preview", "-s", "plain")
        assert f"+ {RESOURCES} to create" in planned
        said = pulumi(twin, directory, "up", "-s", "plain", "--yes")
        assert f"+ {RESOURCES} created" in said
        assert "password: [secret]" in said
        assert "warning" not in said
        refreshed = pulumi(twin, directory, "refresh", "-s", "plain", "--yes")
        assert f"{RESOURCES} unchanged" in refreshed
        again = pulumi(twin, directory, "up", "-s", "plain", "--yes", "--expect-no-changes")
        assert f"{RESOURCES} unchanged" in again
    finally:
        pulumi(twin, directory, "destroy", "-s", "plain", "--yes", "--remove")


def with_marker(marker: str) -> dict[int, str]:
    """Return the processes whose environment holds a marker, and what each runs."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marker.encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command and start_time_ticks(int(entry.name)):
                    found[int(entry.name)] = command
    return found


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_an_engine_that_ends_early_leaves_no_process(
    twin: Twin, project: Callable[[str], Path], number: signal.Signals
) -> None:
    text = f"{QUEUE_PROGRAM}\nimport time\nqueue.url.apply(lambda _: time.sleep(600))\n"
    directory, stack, marker = project(text), f"early-{number.name.lower()}", os.urandom(8).hex()
    pulumi(twin, directory, "stack", "init", stack)
    engine = subprocess.Popen(
        ["pulumi", "--non-interactive", "up", "-s", stack, "--yes", "--skip-preview"],
        cwd=directory,
        env={**twin.environment(), "MARKER": marker},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        parts = ("local.pulumi.language_host", "program.py", "local.pulumi.aws_provider")

        def all_run() -> bool:
            commands = " ".join(with_marker(marker).values())
            return all(part in commands for part in parts)

        until(all_run, "host, program and provider run")
        engine.send_signal(number)
        said, _ = engine.communicate(timeout=PATIENCE_SECONDS)
        until(lambda: not with_marker(marker), "they have ended")
        assert "Traceback" not in said
    finally:
        for pid in with_marker(marker):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.CalledProcessError):
            pulumi(twin, directory, "cancel", "-s", stack, "--yes")
        pulumi(twin, directory, "refresh", "-s", stack, "--yes", "--clear-pending-creates")
        pulumi(twin, directory, "destroy", "-s", stack, "--yes", "--remove")
