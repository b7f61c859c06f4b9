from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local.journal import Journal, read
from local.place import Place


def test_a_journal_nobody_has_written_to_is_empty(tmp_path: Path) -> None:
    assert read(Place(11, tmp_path)) == []


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    place = Place(11, tmp_path)
    Journal(place).write("moto", "launched")
    with place.path("events.jsonl").open("a") as unfinished:
        unfinished.write('{"at": 1.0, "source": "mo')
    assert [fact["event"] for fact in read(place)] == ["launched"]


def test_lines_of_many_writers_are_never_mixed(tmp_path: Path) -> None:
    place = Place(11, tmp_path)

    def write(writer: int) -> None:
        for count in range(50):
            Journal(place).write("kubelet", "fact", writer=writer, count=count, text="x" * 500)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    facts = read(place)
    assert len(facts) == 400
    for writer in range(8):
        assert [f["count"] for f in facts if f["writer"] == writer] == list(range(50))
