"""Histories of services, writes, releases, routes and throttles, each with how it must end."""

from __future__ import annotations

from tests.explorer.histories import (
    AHEAD,
    BOTH,
    DIRECT,
    DISKS,
    EVERY,
    GROUPS,
    LONG_HELD,
    ONE,
    RETIRED_DIRECT,
    SPOT_DIRECT,
    TWO,
    History,
    at,
    calling,
    quiet,
)

OF_SERVICES = (
    # Kafka's leaders change without everybody in sync.
    quiet(
        "only its own broker is in sync",
        ONE,
        "i-0a released",
        at(60, "alone in sync", "10"),
    ),
    quiet(
        "only another broker is in sync",
        ONE,
        "i-0a released",
        at(60, "alone in sync", "20"),
    ),
    quiet(
        "another broker stays alone in sync in the middle of a drain",
        ONE,
        "i-0a released",
        at(140, "alone in sync", "20"),
    ),
    quiet(
        "the broker that comes back leads uncleanly",
        ONE,
        "i-0a released",
        at(300, "unclean", "10"),
    ),
    # Ten minutes without an API.
    quiet(
        "Kubernetes is away for ten minutes before the drain",
        ONE,
        "i-0a released",
        at(60, "away shortly", "api"),
    ),
    quiet(
        "Kubernetes is away for ten minutes in the middle of the drain",
        ONE,
        "i-0a released",
        at(140, "away shortly", "api"),
    ),
    quiet(
        "Kafka's admin is away for ten minutes before the drain",
        ONE,
        "i-0a released",
        at(60, "away shortly", "kafka"),
    ),
    quiet(
        "Kafka's admin is away for ten minutes while the gate waits",
        TWO,
        BOTH,
        at(300, "away shortly", "kafka"),
    ),
    # The end that AWS sets hooks.
    quiet("a day's pause ends in time", LONG_HELD, BOTH),
    calling(
        "hold_limit",
        "Kafka's admin is away until the hooks' own end",
        LONG_HELD,
        "i-0a retained, i-0b released",
        at(1200, "away", "kafka", "4300"),
    ),
    calling(
        "hold_limit",
        "a pause goes on until the hooks' own end",
        LONG_HELD,
        "i-0a retained, i-0b released",
        at(3000, "pause"),
    ),
    calling(
        "retained",
        "AWS is away until the hooks have run out",
        LONG_HELD,
        "i-0a retained, i-0b retained",
        at(3000, "away", "aws", "4000"),
    ),
    # Writes that lose, and words that come again.
    quiet(
        "every write loses its race once",
        TWO,
        BOTH,
        *(at(s, "every write", "race") for s in (12, 132, 192, 555)),
    ),
    quiet(
        "every write is refused by itself",
        TWO,
        BOTH,
        *(at(s, "every write", "late_race") for s in (12, 132, 192, 555)),
    ),
    quiet(
        "batches are delivered again",
        TWO,
        BOTH,
        at(12, "batch again", "events"),
        at(132, "batch again", "ticks"),
        at(192, "batch again", "ticks"),
    ),
    quiet(
        "clocks are a minute apart",
        TWO,
        BOTH,
        at(1, "clock", "ticks", "30"),
        at(1, "clock", "events", "-30"),
        at(1, "clock", "sweep", "-30"),
    ),
    quiet(
        "another environment's events come to the same queue",
        ONE,
        "i-0a released",
        *(at(60, "foreign", w) for w in ("drain", "gate", "state", "spot", "retired")),
    ),
    # An earlier release reads what a later one wrote.
    calling(
        "unreadable",
        "a newer release has moved an incident on",
        ONE,
        "i-0a released",
        at(60, "newer state", "i-0a"),
    ),
    calling(
        "unreadable",
        "a newer release has moved an incident on in its drain",
        TWO,
        BOTH,
        at(140, "newer state", "i-0a"),
    ),
    quiet(
        "functions forget which machines are ahead, and know again",
        AHEAD,
        "i-0a released, i-1a released, i-0b released, i-1b released, i-0c released",
        at(60, "rolled back", "all", "ahead"),
        at(700, "rolled forward"),
    ),
    # The termination handler hears AWS itself.
    quiet("it drains whoever leaves", DIRECT, BOTH),
    History(
        "one ends by hand in its drain, and the handler hears AWS",
        DIRECT,
        (at(20, "terminated by hand", "i-0a"),),
        BOTH,
    ),
    quiet(
        "Kubernetes is away for ten minutes, and the handler hears AWS",
        DIRECT,
        BOTH,
        at(15, "away shortly", "api"),
    ),
    History(
        "a group launches nothing, and the handler hears AWS",
        DIRECT,
        (at(15, "launch fails", GROUPS[0]),),
        BOTH,
    ),
    History("a spot warning that the handler hears", SPOT_DIRECT, (), BOTH),
    quiet("a retirement that the handler hears", RETIRED_DIRECT, BOTH),
    # Refills are throttled, and nothing stays so.
    quiet("a run refills local disks under a throttle", DISKS, EVERY),
    History(
        "the function dies directly after it has set the throttle",
        DISKS,
        (at(1, "armed", "kafka.throttle", "death"),),
        EVERY,
    ),
    History(
        "the function dies before it knows that the throttle is off",
        DISKS,
        (at(1, "armed", "kafka.unthrottle", "death"),),
        EVERY,
    ),
    History(
        "Kafka's admin is away when the throttle should go",
        DISKS,
        (at(400, "away", "kafka", "4300"),),
        "i-0a retained, i-0b cancelled, i-0c retained, i-1b released",
    ),
    History(
        "a run is aborted while a broker refills",
        DISKS,
        (at(400, "run", "abort"),),
        "i-0a released, i-0b cancelled, i-0c released, i-1b released",
    ),
    quiet(
        "somebody else throttles replication already",
        DISKS,
        EVERY,
        at(1, "throttled by others"),
    ),
)
