"""The twin's IAM beside an independent judge of policies, over our rights and AWS's rules."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.lint import iam_judge
from tests.unit.infra import test_rights
from tests.unit.infra.programs import run_layers
from tests.unit.infra.recording import Recorded
from tests.unit.infra.rights import CALLS
from tests.unit.infra.test_rights import documents
from tests.unit.local.iam_examples import Case, examples

__all__ = ["documents"]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not iam_judge.HOME.is_dir(),
        reason="The judge of IAM is not here: it needs Node.js, npm and a registry.",
    ),
]
# Where the judge is stricter than AWS. It takes no wildcard for a kind of resource, while Lambda
# creates functions in a VPC under `arn:aws:ec2:REGION:ACCOUNT:*/*` and refuses them under
# `network-interface/*` (terraform-provider-aws#20698).
STRICTER = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
}


@pytest.fixture(scope="module")
def layers() -> Mapping[str, Recorded]:
    return run_layers()


def ours(documents: Mapping[str, Mapping[str, Any]]) -> Iterator[Case]:
    """Yield every call of ours under its role's policy, and under that without its right."""
    for name in CALLS:
        for request in test_rights.requests(name):
            whole = documents[name]
            for document in (whole, test_rights.without(whole, request.action)):
                policies = test_rights.asked(document, request)
                yield Case(f"{name}: {request.action}", request, policies)


def test_the_judge_agrees_on_every_call_of_ours(
    tmp_path: Path, documents: Mapping[str, Mapping[str, Any]]
) -> None:
    cases = [case for case in ours(documents) if case.request.action not in STRICTER]
    judged = zip(cases, iam_judge.answers(cases, tmp_path), strict=True)
    assert {case.answer for case in cases} == {"allowed", "denied"}
    assert [(case.name, said) for case, said in judged if said != case.answer] == []


def test_the_judge_agrees_on_awss_own_rules(tmp_path: Path) -> None:
    cases = [case for case, _ in examples()]
    judged = zip(cases, iam_judge.answers(cases, tmp_path), strict=True)
    assert [(case.name, said) for case, said in judged if said != case.answer] == []
