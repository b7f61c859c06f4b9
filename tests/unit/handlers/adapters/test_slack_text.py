"""What a notification says is escaped as its blocks are: nobody is mentioned by AWS's words."""

from __future__ import annotations

from typing import Any

import pytest

from core.slack import Message
from handlers.adapters.slack import Posted, SlackChannel


@pytest.mark.parametrize("edits", [False, True], ids=["post", "edit"])
def test_the_text_beside_the_blocks_mentions_nobody(
    monkeypatch: pytest.MonkeyPatch, *, edits: bool
) -> None:
    channel, sent = SlackChannel("token", "C1", "https://slack.example/api/"), []

    def answer(_method: str, body: dict[str, Any]) -> dict[str, str]:
        sent.append(body)
        return {"channel": "C1", "ts": "1"}

    monkeypatch.setattr(channel, "_answer", answer)
    said = Message("AWS says: <!channel> <https://attacker.example|open> & more", ())
    if edits:
        channel.edit(Posted("C1", "1"), "key", said)
    else:
        channel.post("key", said, None)
    assert sent[0]["text"] == (
        "AWS says: &lt;!channel&gt; &lt;https://attacker.example|open&gt; &amp; more"
    )
