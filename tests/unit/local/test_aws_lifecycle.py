"""Hooks of one transition: who must answer, until when, what comes of it."""

from hypothesis import given
from hypothesis import strategies as st

from local.aws.lifecycle import ABANDON, CONTINUE, GroupHook, HookTransition, heartbeat


def hook(name: str = "gate", seconds: int = 60, default: str = ABANDON) -> GroupHook:
    return GroupHook(name=name, heartbeat_timeout_seconds=seconds, default_result=default)


def begin(*hooks: GroupHook, now: float = 0.0) -> HookTransition:
    return HookTransition.begin("i-1", hooks, now)


def test_a_deadline_answers_with_the_hooks_own_default() -> None:
    transition = begin(hook("drain", 30, CONTINUE), hook("gate", 60, ABANDON))
    assert transition.expire(29.9) == []
    assert [action.hook.name for action in transition.expire(30)] == ["drain"]
    assert transition.verdict is None
    assert [action.hook.name for action in transition.expire(60)] == ["gate"]
    assert transition.verdict == ABANDON


def test_a_hook_is_found_by_its_own_token_until_the_wait_is_over() -> None:
    transition = begin(hook("drain"), hook("gate"))
    drain, gate = transition.actions
    assert transition.find("gate", token=drain.token) is None
    assert transition.find("gate", token=gate.token) is gate
    drain.result = ABANDON
    assert transition.find("gate") is None


def test_the_longest_hold_is_100_heartbeats_or_48_hours() -> None:
    assert hook(seconds=60).global_timeout_seconds == 6000
    assert hook(seconds=7200).global_timeout_seconds == 48 * 3600


def test_heartbeats_end_at_the_longest_hold() -> None:
    transition = begin(hook(seconds=60), now=1000.0)
    (action,) = transition.actions
    heartbeat(action, 6990.0)
    assert action.deadline == 7000.0
    assert transition.expire(7000.0) == [action]


@given(results=st.lists(st.sampled_from([CONTINUE, ABANDON, None]), min_size=1, max_size=5))
def test_a_verdict_is_the_worst_of_all_answers(results: list[str | None]) -> None:
    transition = begin(*(hook(str(number)) for number in range(len(results))))
    for action, result in zip(transition.actions, results, strict=True):
        action.result = result
    expected = ABANDON if ABANDON in results else (None if None in results else CONTINUE)
    assert transition.verdict == expected
