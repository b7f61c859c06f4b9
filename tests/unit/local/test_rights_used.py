"""What is held and was never used is found over the journals of a run."""

import json
from pathlib import Path

import pytest

from tests.integration import rights_used


def test_a_right_that_no_test_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [
        ("local-harbour-tick", "sqs:SendMessage", True),
        ("local-harbour-tick", "sns:Publish", False),
        ("local-harbour-slack", "sns:Publish", True),
    ]
    journal = tmp_path / "events.jsonl"
    journal.write_text(
        "".join(
            json.dumps({"event": "iam_judged", "principal": p, "action": a, "allowed": ok}) + "\n"
            for p, a, ok in facts
        )
    )
    rights = {"sqs:SendMessage", "sns:Publish"}
    monkeypatch.setattr(
        rights_used, "held_rights", lambda: iter([("tick", rights), ("autoscaler", rights)])
    )
    (found,) = rights_used.unused_rights(rights_used.used_actions([journal]))
    assert found == "tick holds sns:Publish, which no test used."
