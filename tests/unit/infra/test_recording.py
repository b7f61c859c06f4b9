"""The harness itself: what other tests take for granted."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
import pytest

from tests.unit.infra.recording import run_program


def a_protected_queue() -> None:
    key = aws.kms.Key("key")
    queue = aws.sqs.Queue(
        "queue",
        kms_master_key_id=key.arn,
        visibility_timeout_seconds=30,
        opts=pulumi.ResourceOptions(protect=True, ignore_changes=["delay_seconds"]),
    )
    pulumi.export("url", queue.url)


def test_a_registration_is_recorded_with_its_options_and_exports() -> None:
    recorded = run_program(a_protected_queue)
    queue = recorded.one("sqs/queue:Queue")
    assert queue.inputs["visibilityTimeoutSeconds"] == 30
    assert queue.inputs["kmsMasterKeyId"].endswith(":key/key")
    assert queue.protect
    assert queue.ignore_changes == ("delaySeconds",)
    assert queue.depends_on == {"key"}
    assert recorded.outputs["url"].endswith("/queue")


def test_one_run_leaves_nothing_for_the_next() -> None:
    run_program(a_protected_queue, config={"spec": "somewhere"})

    def program() -> None:
        pulumi.export("spec", pulumi.Config("stillwater").get("spec"))

    second = run_program(program)
    assert second.resources == []
    assert second.outputs.get("spec") is None


def test_what_a_program_raises_reaches_the_test() -> None:
    def program() -> None:
        raise pulumi.RunError("a sentence")

    with pytest.raises(pulumi.RunError, match="a sentence"):
        run_program(program)


def test_what_an_apply_raises_reaches_the_test() -> None:
    def program() -> None:
        def fail(_: str) -> str:
            raise pulumi.RunError("a late sentence")

        pulumi.export("url", aws.sqs.Queue("queue").url.apply(fail))

    with pytest.raises(pulumi.RunError, match="a late sentence"):
        run_program(program)


def test_a_preview_does_not_know_what_only_aws_knows() -> None:
    seen: list[str] = []

    def program() -> None:
        aws.sqs.Queue("queue").url.apply(lambda url: seen.append(str(url)))

    run_program(program, preview=True)
    assert seen == []


def test_a_program_that_is_run_again_is_recorded_as_the_first_time() -> None:
    """What the engine answered is read for a property that is asked for, whenever that is."""
    late: list[pulumi.Output[str]] = []

    def program() -> None:
        a_protected_queue()
        late.append(aws.sqs.Queue("other").arn)
        pulumi.export("arn", aws.sqs.Queue("last").url.apply(lambda _: late[-1]))

    first, second = run_program(program), run_program(program)
    assert second.outputs["arn"].endswith(":other")
    assert (first.outputs, first.resources) == (second.outputs, second.resources)


def test_what_an_input_raises_reaches_the_test_though_nobody_reads_the_resource() -> None:
    def fail(_: str) -> str:
        raise pulumi.RunError("a sentence about an input")

    def program() -> None:
        name = aws.kms.Key("key").arn.apply(fail)
        aws.sqs.Queue("queue", name=name, opts=pulumi.ResourceOptions(protect=True))

    with pytest.raises(pulumi.RunError, match="about an input"):
        run_program(program)
