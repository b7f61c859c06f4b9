"""Hooks of one transition: who must answer, until when, what comes of it."""

from hypothesis import given
from hypothesis import strategies as st

from local.aws.lifecycle import ABANDON, CONTINUE, GroupHook, HookTransition, heartbeat


def hook(name: str = "gate", seconds: int = 60, default: str = ABANDON) -> GroupHook:
    return GroupHook(name=name, heartbeat_timeout_seconds=seconds, default_result=default)


def begin(*hooks: GroupHook, now: float = 0.0) -> HookTransition:
    return HookTransition.begin("i-1", hooks, now)


def test_each_hook_has_its_own_token() -> None:
    first, second = begin(hook("drain"), hook("gate")).actions
    assert first.token != second.token


def test_continue_waits_for_the_other_hooks() -> None:
    transition = begin(hook("drain"), hook("gate"))
    transition.actions[0].result = CONTINUE
    assert transition.verdict is None
    transition.actions[1].result = CONTINUE
    assert transition.verdict == CONTINUE


def test_abandon_ends_the_wait_at_once_and_closes_the_other_hooks() -> None:
    transition = begin(hook("drain"), hook("gate"))
    transition.actions[0].result = ABANDON
    assert transition.verdict == ABANDON
    assert transition.find("gate") is None


def test_a_deadline_answers_with_the_hooks_own_default() -> None:
    transition = begin(hook("drain", 30, CONTINUE), hook("gate", 60, ABANDON))
    assert transition.expire(29.9) == []
    assert [action.hook.name for action in transition.expire(30)] == ["drain"]
    assert transition.verdict is None
    transition.expire(60)
    assert transition.verdict == ABANDON


def test_an_answered_hook_does_not_expire() -> None:
    transition = begin(hook("drain", 30), hook("gate", 600))
    transition.actions[0].result = CONTINUE
    assert transition.expire(31) == []
    assert transition.verdict is None


def test_a_wrong_token_finds_nothing() -> None:
    transition = begin(hook("gate"))
    assert transition.find("gate", token="other") is None
    assert transition.find("gate", token=transition.actions[0].token) is transition.actions[0]


def test_the_longest_hold_is_100_heartbeats_or_48_hours() -> None:
    assert hook(seconds=60).global_timeout_seconds == 6000
    assert hook(seconds=7200).global_timeout_seconds == 48 * 3600


def test_heartbeats_end_at_the_longest_hold() -> None:
    transition = begin(hook(seconds=60), now=1000.0)
    (action,) = transition.actions
    heartbeat(action, 6990.0)
    assert action.deadline == 7000.0
    assert transition.expire(7000.0) == [action]


@given(
    seconds=st.integers(30, 7200), steps=st.lists(st.floats(0, 4000, allow_nan=False), max_size=60)
)
def test_no_row_of_heartbeats_holds_longer_than_the_hook_allows(
    seconds: int, steps: list[float]
) -> None:
    transition = begin(hook(seconds=seconds))
    (action,) = transition.actions
    now = 0.0
    for step in steps:
        now += step
        if transition.expire(now):
            break
        heartbeat(action, now)
    assert action.deadline <= hook(seconds=seconds).global_timeout_seconds


@given(results=st.lists(st.sampled_from([CONTINUE, ABANDON, None]), min_size=1, max_size=5))
def test_a_verdict_is_the_worst_of_all_answers(results: list[str | None]) -> None:
    transition = begin(*(hook(str(number)) for number in range(len(results))))
    for action, result in zip(transition.actions, results, strict=True):
        action.result = result
    expected = ABANDON if ABANDON in results else (None if None in results else CONTINUE)
    assert transition.verdict == expected
