"""infra.eks.api: an API server that is busy is asked again when it says when, and for reading."""

from __future__ import annotations

from typing import Any

import pytest

from infra.eks.api import TRIES, Api, ApiError


class Answer:
    def __init__(self, status: int, **headers: str) -> None:
        self.status = status
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}
        self.data = b'{"items": []}' if status == 200 else b'{"message": "too many requests"}'


class Pool:
    """Answers in turn, the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked = list(answers), 0

    def request(self, _method: str, _url: str, **_given: Any) -> Answer:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def api(*answers: Answer) -> tuple[Any, Pool, list[float]]:
    pauses: list[float] = []
    made: Any = Api("https://api.example", "token")
    made._pool, made._pause = Pool(*answers), pauses.append
    return made, made._pool, pauses


BUSY = Answer(429, Retry_After="1")


def test_a_listing_that_is_turned_away_is_asked_for_again_when_the_server_says() -> None:
    asked, _, pauses = api(BUSY, Answer(503, Retry_After="3600"), Answer(200))
    assert asked.get("/api/v1/nodes") == {"items": []}
    # Nobody waits for an hour in front of a terminal.
    assert pauses == [1.0, 10.0]


@pytest.mark.parametrize(
    ("method", "answer", "tries"),
    [
        ("get", BUSY, TRIES),
        ("get", Answer(429), 1),
        ("get", Answer(503, Retry_After="tomorrow"), 1),
        ("get", Answer(403, Retry_After="1"), 1),
        # A budget's answer to an eviction is one that the asker waits for.
        ("delete", BUSY, 1),
    ],
    ids=["for ever", "without a time", "an odd time", "refused", "a change"],
)
def test_what_stays_busy_or_is_none_of_it_is_said_with_its_status(
    method: str, answer: Answer, tries: int
) -> None:
    asked, pool, _ = api(answer)
    with pytest.raises(ApiError) as error:
        getattr(asked, method)("/api/v1/nodes")
    assert (error.value.status, pool.asked) == (answer.status, tries)
