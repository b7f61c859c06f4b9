"""What is lost, doubled or out of order is counted, whichever record it befalls."""

from hypothesis import given
from hypothesis import strategies as st

from local.demo import load
from local.demo.load import ReadRecords

PARTITIONS = 3
numbers = st.lists(st.integers(0, 60), unique=True, min_size=2).map(sorted)


def read_all(records: list[int]) -> ReadRecords:
    seen = ReadRecords()
    for number in records:
        seen.take(number % PARTITIONS, number)
    return seen


@given(numbers, st.randoms())
def test_partitions_may_come_in_any_order_as_long_as_each_keeps_its_own(
    sent: list[int], random: object
) -> None:
    streams = [[n for n in sent if n % PARTITIONS == p] for p in range(PARTITIONS)]
    read = []
    while any(streams):
        stream = random.choice([s for s in streams if s])  # type: ignore[attr-defined]
        read.append(stream.pop(0))
    seen = read_all(read)
    assert (seen.duplicates, seen.out_of_order, seen.lacks(sent)) == (0, 0, set())


@given(numbers, st.data())
def test_a_record_that_is_missing_is_named(sent: list[int], data: st.DataObject) -> None:
    lost = data.draw(st.sampled_from(sent))
    assert read_all([n for n in sent if n != lost]).lacks(sent) == {lost}


@given(numbers, st.data())
def test_a_record_that_comes_again_is_a_duplicate_and_no_disorder(
    sent: list[int], data: st.DataObject
) -> None:
    again = data.draw(st.sampled_from(sent))
    seen = read_all([*sent, again])
    assert (seen.duplicates, seen.out_of_order) == (1, 0)


def test_a_record_overtaken_by_a_later_one_of_its_partition_is_out_of_order() -> None:
    assert read_all([0, 6, 3, 9]).out_of_order == 1
    assert read_all([9, 0, 3, 6]).out_of_order == 3


def test_a_value_tells_its_number_and_when_it_was_sent() -> None:
    number, sent_at = load.read(load.value(42, 1_700_000_000.25, b"x" * 8))
    assert (number, round(sent_at, 6)) == (42, 1_700_000_000.25)
