"""Histories, each a line and its ending, played with the shipped functions in an explored world.

A line is steps of tests.explorer.lines: what happens, and how much time goes by until the next.
After its last step the world is left alone. Its ending is the last state of every incident and,
after a semicolon, what people were called for. No rule of the explorer's may break on the way:
nobody is taken out while another is out by our doing, nobody is drained into nothing, and whoever
is not over in the end, or is kept, has called a person. What is in brackets is the scenario that a
history begins with.
"""

from collections.abc import Iterator

import pytest

from tests.every_case import every_case
from tests.explorer.lines import CALM, ending, played
from tests.explorer.scenarios import SCENARIOS
from tests.explorer.stage import Stage, explored
from tests.tables import rows_of_sections

HISTORIES = """
# Who leaves together.
leave a, leave b, leave c => a b c released
leave a, 140 s, leave b, 140 s, lease deleted => a b released
leave a, leave b, 60 s, lease deleted, 60 s, lease deleted => a b released
leave a, leave b, 140 s, batch again ticks, 140 s, batch again ticks => a b released
announced a => a cancelled
leave a, 60 min, announced a => a released
# Kafka's readings.
kafka silent, leave a, leave b, 6 min, kafka well => a b released
leave a, 140 s, reading not whole, 6 min, reading whole => a released
reading not whole, leave a => a retained; doubt hold_limit
kafka without quorum, leave a, 8 min, kafka well => a released
leave a, 300 s, kafka without quorum, 5 min, leave b, 5 min, kafka well => a b released
kafka silent, leave a => a retained; hold_limit kafka_silent
# What Kubernetes and the termination handler do.
leave a, 60 s, api away, 20 min, 6 min, api back => a released; blind sweep_blind
leave a, leave b, 140 s, api away, 20 min, 6 min, api back => a b released; blind sweep_blind
nth away, leave a, leave b, 8 min, nth back => a b released
nth away, leave a => a retained; drain_limit drain_stuck
leave a, 140 s, nth away, lease deleted, leave b, 8 min, nth back => a b released
# Capacity.
no capacity a, leave a, 20 min, capacity a => a released; late_replacement
no capacity a, leave a => a retained; hold_limit late_replacement
capacity elsewhere a, leave a => a retained; hold_limit late_replacement
maximum lowered a, retire a => a replacing; no_room
retire a, no capacity a, 300 s, maximum lowered a => a replacing; late_replacement
leave a, 91 s, cordon spare a => a retained; hold_limit late_replacement
# What people do.
leave a, 60 s, pause for days, 2 h, 140 s, resume => a released
leave a, 140 s, pause, 20 min, resume => a released
pause, leave a, leave b, 20 min, resume => a b released
leave a, hold a => a released
leave a, 60 s, restart b => a released
leave a, leave b, 60 s, restart c => a b released
leave a, 60 s, restart a => a released
leave a, 60 s, ignore a => a retained; ignored
leave a, 60 s, ignore a, 5 min, release a => a retained, a.2 released; ignored
leave a, 60 s, hooks abandoned a => a retained; retained
leave a, 60 s, hooks abandoned a, 5 min, release a => a retained, a.2 released; retained
leave a, 60 s, hooks abandoned a, leave b => a retained, b released; retained
leave a, 60 s, hooks completed a => a lost; lost
leave a, leave b, 60 s, hooks completed a => a lost, b released; lost
leave a, 60 s, cordon a => a released
# Machines.
leave a, die a => a lost; lost
leave a, 140 s, die b => a released, b lost; lost
die b, leave a => a released, b lost; lost
spot a => a released
leave a, spot b => a b released
retire a, leave a, spot a => a released
leave a, 60 s, retire a => a released
# What AWS schedules.
retire a => a released
retire a, retire called off a => a cancelled
retire a, reboot a, reboot called off a => a released
reboot a, retire a => a released
retire a, 60 s, reboot a => a released
retire a, no capacity a, 300 s, retire called off a => a cancelled
retire a, retire called off a, 140 s, retire a => a cancelled, a.2 released
retire a, retire b, retire c => a b c released
retire a, leave b => a b released
retire a, retire sooner a => a released
# What was asked for is given back, however it ends.
retire a, leave b, 300 s, leave a => a b released
retire a, 60 s, leave a => 2a a released
retire a, 60 s, die a => 2a released, a lost; lost
retire a, 60 s, ignore a => 1a released, a cancelled
retire a, 60 s, retire called off a => 1a released, a cancelled
retire a, 121 s, cordon spare a, retire called off a => 1a released, a cancelled
# Zones.
shift a, leave a, 8 min, shift over a => a released; zone_frozen
leave a, leave b, 60 s, shift a, 20 min, shift over a => a b released; zone_frozen
shift a, shift b, leave a, leave b, 8 min, shift over b, 20 min, shift over a
    => a b released; zone_frozen
shift a, shift over a, leave a => a released
shift over a, shift a, leave b => b released; zone_frozen
shift a, retire a, 20 min, shift over a => a released; zone_frozen
shift a, spot a => a released; zone_frozen
# The same words again: redelivered after the end, redriven a day later, in another order.
leave a, 60 min, old ticks => a released
leave a, 140 s, old ticks => a released
leave a, 60 min, 1 d, redriven => a released
leave a, 300 s, 1 d, redriven => a released
leave a, 60 min, redriven, old ticks, redriven => a released
spot a, 60 min, 1 d, redriven => a released; doubted
retire a, 60 min, 1 d, redriven => a released
retire a, retire called off a, 20 min, redriven => a cancelled
shift a, shift over a, redriven, leave a => a released
announcements late, leave a, 300 s, announcements come => a released
announcements late, spot a, 5 min, announcements come => a lost
announcements late, retire a, retire called off a, 5 min, announcements come =>
# The ledger refuses every other write.
armed ledger.put error, leave a, 60 min => a released
leave a, leave b, 60 s, armed ledger.put error, 30 min => a b released
# Somebody edits what we keep.
lease for nobody, leave a, leave b => a b released
leave a, 60 s, lease for nobody => a released
used lease for nobody, leave a, leave b => a b released
used lease for nobody, spot a => a released
leave a, 91 s, mark edited 1a i-0nobody => a released
leave a, 140 s, node renamed a => a released
retire a, 60 s, node unlabelled a => a released
paused by a newer release, leave a, 20 min, resumed by a newer release => a released; unreadable
paused by a newer release, spot a => a released; unreadable
# A group goes, or has its machine otherwise than in service.
leave a, 60 s, group gone a => a cancelled; group_gone set_aside
leave a, 6 min, group gone a => a released; set_aside
retire a, group gone a => a replacing; no_group
standby a, leave b => b released; set_aside
standby a, retire a => a holding; group_refuses set_aside waits_long
standby a, spot a => a lost; left_out not_back set_aside
retire a, 60 s, standby a, 20 min, in service a => a released; group_refuses
leave a, 60 s, unknown lifecycle a => a released; set_aside
retire a, 60 s, unknown lifecycle a => a holding; group_refuses waits_long
warm a, leave a, no capacity a, 20 min, capacity a => a released; late_replacement
warm a, balanced a => a released
balanced a, balanced b => 1b a b released
retire a, 60 s, balanced a => 2a a released
refreshed a, refreshed b, refreshed c => a b c released
refreshed a, refreshed b, 60 s, spot c => a b c released
# EC2 recommends, warns, and moves its dates.
only recommended a, only recommended b, only recommended c, leave a
    => a released, b c ridden_through
only recommended a, 2 h, spot a => a ridden_through, a.2 lost; doubted lost
spot a, spot b, spot c => a b c released; ended_early
leave a, leave b, spot a, spot b => a b released; ended_early
said to end a shutting-down => a cancelled
leave a, said to end a shutting-down => a released
retire a, 60 s, retire in an hour a => a released
retire in an hour a, leave b, retire in ten minutes c => a b c released
retire an hour ago a => a released
retire a, pause, retire in ten minutes a, 20 min, resume => a released; held_past_date
shift a, retire a, retire in an hour a, 60 min, shift over a => a released; frozen_zone zone_frozen
# Kafka keeps it: a disk that is offline, an operator that rolls, a quorum that comes and goes.
disk fails b, leave a, 10 min, disk mended b => a released
disk fails b, leave a, 10 min, 2 h => a retained; hold_limit
disk fails b, retire in ten minutes a => a retained; hold_limit waits_long
disk fails b, spot a => a released
operator rolls description c, leave a, 10 min => a released
operator stalls paused, retire a, 2 h => a retained; hold_limit operator_stalled waits_long
leave a, leave b, 140 s, operator rolls description c, 20 min => a b released
leave a, 140 s, kafka without quorum, 140 s, kafka well, kafka without quorum, 140 s, kafka well
    => a released
# Long waits.
retire a, 60 s, pause for days, 6 h, resume => a released
retire a, pause for days, 6 h, 10 min, resume => a released
leave a, pause for days, 6 h, 5 min, resume => a released
leave a, 60 s, away functions 20000, 6 h => a retained; retained
leave a, 140 s, kafka silent, api away, nth away, 20 min, 6 min, api back, kafka well, nth back
    => a released; blind sweep_blind
leave a, 60 s, ignore a, 300 s, spot a => a retained, a.2 released; ignored
# Two zones at once.
shift a, shift b, leave c => c released; zone_frozen
shift a, spot a, shift b, spot b, 60 min, shift over a, shift over b
    => a b released; ended_early zone_frozen
leave a, leave b, 91 s, spare dies a, spare dies b => 1a 1b lost, a b released
leave a, leave b, 91 s, cordon spare b => a released, b retained; hold_limit late_replacement
leave a, leave b, leave c, 60 s, release c => a b c released
# Several words about one machine, and faults in orders that nobody plans for.
only recommended a, spot a, leave a => a released
spot a, only recommended a, leave a => a released
leave a, only recommended a, spot a => a released
leave a, spot a, only recommended a, redriven => a released
spot a, leave a, only recommended a, redriven => a released
announcements late, only recommended a, spot a, leave a, 20 min, announcements come
    => a lost; doubted
announcements late, only recommended a, leave a, 2 h, announcements come => a released
clocks -60, spot a, clocks 60, leave a => a released
leave a, clocks -60, leave b, clocks 60 => a b released
retire in an hour a, only recommended a, spot a => 2a a released
reboot a, retire a, retire called off a, reboot called off a => a cancelled
reboot a, leave a => a released
retire a, retire sooner a, retire called off a, retire in an hour a => a cancelled, a.2 released
shift a, leave a, 10 min, die a, shift over a => a lost; lost zone_frozen
shift a, spot a, leave a, 20 min, redriven, shift over a => a released; doubted zone_frozen
leave a, 140 s, shift a, 20 min, leave b, 20 min, shift over a => a b released; zone_frozen
shift b, shift b, leave b, 4 min, shift over b, shift b, 4 min, shift over b
    => b released; zone_frozen
shift a, die a, die b, 20 min, shift over a, leave c => a b lost, c released; lost zone_frozen
retire a, 60 s, api away, spot a, 5 min, api back => 2a released, a lost; lost
retire a, 5 s, backed up, 60 min, restored => a lost
leave a, 140 s, backed up, 60 min, restored => a released
armed ledger.put error, spot a, leave b, 40 min => a lost, b released; lost
leave a, leave b, 140 s, lease deleted, batch again ticks, old ticks => a b released
leave a, 140 s, die a, leave b => a b released; ended_early
leave a, leave b, leave c, die a => a lost, b c released; lost
retire a, retire b, die c => a b released, c lost; lost
leave a, node deleted a => a released
retire a, 60 s, node deleted a => a released
# Controllers away beside brokers.
one of three controllers lost, leave a, die b, die c => a released, b c lost; lost
two of five controllers lost, leave a => a released
two of five controllers lost, spot a, spot b, 20 min, leave c => a b c released; ended_early
leave a, 140 s, three of five controllers lost, 20 min, controllers well => a released
three of five controllers lost, spot a, 10 min, controllers well => a released
three of five controllers lost, leave a, 10 min, 2 h => a retained; hold_limit
three of five controllers lost, die a, 20 min, leave b, 20 min, controllers well
    => a lost, b released; drain_standing lost not_back
# A reading that Kafka denies lets nobody go, and brings nobody back.
reading denied, leave a => a retained; hold_limit kafka_rights
reading denied, retire in ten minutes a => a holding; kafka_rights waits_long
reading denied, spot a => a lost; kafka_rights not_back
leave a, 300 s, reading denied, 20 min, reading allowed => a released; kafka_rights
# Topics with few replicas, and minimums and places that change meanwhile.
minimum three, leave a => a released
leave a, 300 s, minimum three => a released
disk fails b, leave a, 300 s, minimum three, 10 min, 2 h => a retained; hold_limit
leave a, minimum three, disk fails b, 10 min, disk mended b => a released
single replica a, leave a => a released
single replica a, spot a, leave b => a b released
two replicas a, leave b => b released
two replicas a, die b, 60 s, leave a => a released, b lost; lost
two replicas a, empty log dir b, leave a, 20 min, disk mended b => a released
two replicas a, minimum of one, falls behind b, leave a => a released
two replicas a, leave a, 140 s, topics deleted a => a released
leave a, 140 s, moved off a => a released
moved off a, leave a => a released
moved off a, die a, leave b => a lost, b released; lost
leave a, 300 s, moved off b, 40 min, moved back b => a released
leave a, 300 s, single replica a => a released
# Brokers that come back otherwise than they went, late, or not at all.
leave a, 300 s, another id a, 2 h => a retained; left_out not_back
leave a, 330 s, empty log dir a, 15 min, disk mended a => a released
leave a, leave b, 330 s, empty log dir a, 15 min, disk mended a => a b released
leave a, 330 s, empty log dir a, 2 h => a retained; not_back
spot a, 330 s, empty log dir a, leave b, 20 min, disk mended a => a b released
pod gone a, leave b, 20 min, pod made a => b released
pod gone a, leave a => a retained; hold_limit stands_still volume_on_idle_node
leave a, 300 s, pod gone a, 15 min, pod made a => a released
# Groups that refuse, retain, or go.
retire a, groups refuse, 20 min, groups do as asked => a released; group_refuses
# What is retained is in nobody's number any more: its group has replaced it.
leave a, hooks abandoned a, retire in ten minutes a => a retained, a.2 released; retained
leave a, hooks abandoned a, retire in ten minutes a, 60 s, release a
    => a retained, a.2 released; retained
leave a, hooks abandoned a, 5 min, retire in ten minutes a, release a
    => a retained, a.2 released; retained
leave a, hooks abandoned a, spot a => a retained, a.2 released; retained
leave a, 60 s, hooks abandoned a, 300 s, retire a => a retained, a.2 released; retained
leave a, 60 s, hooks abandoned a, retire a => a retained, a.2 released; retained
leave a, 60 s, hooks abandoned a, 300 s, die a => a retained, a.2 lost; lost retained
retire a, 60 s, standby a, 60 min, die a => a lost; group_refuses lost
group gone a, group gone b, group gone c =>; set_aside
group gone a, group gone b, group gone c, die a => a lost; left_out lost not_back set_aside
retire a, 60 s, group gone a, group gone b, group gone c
    => a holding; group_refuses no_group set_aside waits_long
leave a, no capacity a, pause for days, 6 h, resume, capacity a => a released; late_replacement
leave a, no capacity a, hold a, 30 min, capacity a => a released; late_replacement
leave a, no capacity a, 10 min, capacity elsewhere a, capacity a
    => a retained; hold_limit late_replacement
spot a, spot b, no capacity a, no capacity b, 20 min, capacity a, capacity b
    => a b released; ended_early
retire a, kafka silent, 300 s, balanced a, kafka well => 2a a released
retire a, kafka silent, 300 s, refreshed a, kafka well => 1a 3a a released
retire a, kafka silent, 300 s, scaled in a, kafka well => 1a a released
warm a, warm b, refreshed a, refreshed b, spot c => a b c released
# Machines without Kafka that no group would terminate: no hooks ever stand.
claim deleted b, restart b, 60 s, retire in an hour b, group gone b
    => b opened; left_out no_group set_aside
claim deleted b, restart b, 60 s, standby b, retire in an hour b
    => b opened; left_out no_group set_aside
claim deleted b, restart b, 60 s, standby b, retire in an hour b, 5 min, in service b
    => b released; left_out set_aside
# Room that a group kept is given back by whatever comes next.
retire in ten minutes a, retire in ten minutes b, groups refuse, 20 min, groups do as asked,
    die a, die b => 2a 2b b released, a retained, a.2 lost; group_refuses
groups refuse, retire in ten minutes a, 60 s, retire called off a, 60 s, groups do as asked
    => 1a released, a cancelled
retire in ten minutes a, groups refuse, 20 min, groups do as asked, die a
    => 2a released, a retained, a.2 lost; group_refuses
retire in ten minutes a, groups refuse, 5 min, groups do as asked, release a
    => a released; group_refuses
retire in ten minutes a, groups refuse, 10 min, groups do as asked, release a
    => a released; group_refuses
retire in ten minutes a, groups refuse, 10 min, release a => a gating; group_refuses not_back
retire in ten minutes a, groups refuse, 20 min, groups do as asked, release a
    => a retained, a.2 released; group_refuses
[one leaver]
60 s, terminated by hand a => a lost; lost
140 s, terminated by hand a => a released; ended_early
300 s, terminated by hand a => a released
300 s, terminated by hand 1a => 1a lost, a released; lost
60 s, stopped by hand a => a lost; lost
140 s, stopped by hand a => a released
60 s, stopped by hand a, 340 s, started by hand a => a lost; lost
60 s, node for good a => a released
140 s, node for good a => a released
250 s, node for good 1a => a retained; left_out not_back
60 s, recommended b => a b.2 released, b ridden_through
60 s, recommended a => a released
1 s, recommended a => a ridden_through, a.2 released
60 s, said to end a terminated => a released
60 s, said to end b shutting-down => a released, b cancelled
11 s, said to end a shutting-down => a released
700 s, said to end a terminated => a released
60 s, refreshed b, refreshed c => a b c released
140 s, refreshed a => 1a a released
300 s, refreshed a => 1a a released
60 s, balanced b => a b released
60 s, zone silent a => a released; late_replacement
140 s, zone silent a => a retained; not_back sick
60 s, zone silent b => a b released; late_replacement
15 s, launch fails a => a released; no_capacity
60 s, alone in sync a => a released
60 s, alone in sync b => a released
140 s, alone in sync b => a released
300 s, unclean a => a released
60 s, away shortly api => a released
140 s, away shortly api => a released
60 s, away shortly kafka => a released
60 s, foreign drain, foreign gate, foreign state, foreign spot, foreign retired => a released
60 s, newer state a => a released; unreadable
[two leavers]
140 s, terminated by hand b => a released, b lost; lost
60 s, zone silent c => a b c released; late_replacement
300 s, away shortly kafka => a b released
12 s, every write race, 120 s, every write race, 60 s, every write race, 363 s, every write race
    => a b released
12 s, every write late_race, 120 s, every write late_race, 60 s, every write late_race, 363 s,
    every write late_race => a b released
12 s, batch again events, 120 s, batch again ticks, 60 s, batch again ticks => a b released
1 s, clock ticks 30, clock events -30, clock sweep -30 => a b released
140 s, newer state a => a b released; unreadable
[a rotation and a leaver]
=> a b c released, run done
60 s, run pause, 40 min, run resume => a b c released, run done
1 s, armed records.write error, 2 min, armed records.write error, 4 min,
    armed records.write error, 4 min, armed records.write error => a b c released, run done
1 s, armed records.write death, 2 min, armed records.write death, 4 min,
    armed records.write death, 4 min, armed records.write death => a b c released, run done
60 s, run pause => a c released, run paused
60 s, run abort => 1a c released, a cancelled, run aborted
60 s, ignore a => 1a c released, a cancelled, run stopped; failed:10:1
200 s, disk fails b => 1b a b.2 released, b cancelled, c retained, run done; hold_limit
70 s, node for good a, 1 s, refuse a
    => 1b c released, a retained, b cancelled, run stopped; failed:10:1 group_refuses
100 s, refreshed a => 1a 3a a b c released, run done
[a zone whose brokers share a partition]
5 s, away shortly ledger, 745 s, balanced a => 1a 1b a b c released, run done
[a rotation in place and a leaver that we drain]
400 s, leave a => a b ridden_through, a.2 c released, run done
486 s, leave a, 156 s, away shortly ledger => a b ridden_through, a.2 c released, run done
[hooks near their end and a leaver]
=> a b released
20 min, away kafka 4300 => a retained, b released; hold_limit kafka_silent
50 min, pause => a retained, b released; hold_limit
50 min, away aws 4000 => a b retained; action_fails blind hold_limit retained
[one by one of six, machines ahead]
=> 1a 1b a b c released, run done
100 s, run abort => 2a c released, a cancelled, run aborted
60 s, rolled back all ahead, 640 s, rolled forward => 1a 1b a b c released, run done
[two leavers that the handler hears of]
=> a b released
20 s, terminated by hand a => a b released; ended_early
15 s, away shortly api => a b released
15 s, launch fails a => a b released; budget:orders-kafka
[a spot warning that the handler hears]
=> a b released
[a retirement that the handler hears]
=> a b released
[a rotation of local disks and a leaver]
=> a b c released, run done
1 s, armed kafka.throttle death => a b c released, run done
1 s, armed kafka.unthrottle death => a b c released, run done
400 s, away kafka 4300 => 1b released, a c retained, b cancelled, run stopped;
    drain_standing failed:10:1 hold_limit kafka_silent not_back not_given_back
400 s, run abort => 1b a c released, b cancelled, run aborted
1 s, throttled by others => a b c released, run done
[a zone at a time]
=> 1a 1b a b c released, run done
100 s, die c => 1a a cancelled, 2a 3a released, c lost, run stopped; lost outsider
200 s, disk fails c => 1a 2b 3b a c released, 1b b cancelled, run stopped; outsider
400 s, disk fails c => 1a 2b 3b a c released, 1b b cancelled, run stopped; outsider
[a zone that stops together]
=> 1a 1b a b c released, run done
150 s, die c => 1a a released, c lost, run stopped; lost outsider
400 s, disk fails 1c => 1a 2b 3b a c released, 1b b cancelled, run stopped; outsider
[a zone that we drain]
=> 1a 1b a b c released, run done
[a rotation in place and a leaver]
=> a b ridden_through, c released, run done
200 s, disk fails b => a b ridden_through, c retained, run done; hold_limit
[a zone in place]
=> 1a 1b a b ridden_through, c released, run done
root fails 1a => 1a 1b a b ridden_through, 1a.2 c released, run done
100 s, disk fails c => 1a a ridden_through, c released, run stopped; outsider
150 s, disk fails c => 1a a ridden_through, c released, run stopped; outsider
200 s, die c => 1a a ridden_through, c lost, run stopped; lost outsider
[a rotation of Karpenter's nodes]
=> a b released, run done
60 s, run abort => a cancelled, a.2 ridden_through, run aborted
200 s, pause => a b released, run done
"""


NAMED = {each.name: each for each in (CALM, *SCENARIOS)}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with explored() as wired:
        yield wired


@every_case(("scenario", "line", "ends"), rows_of_sections(HISTORIES))
def test_a_history_ends_as_it_should(stage: Stage, scenario: str, line: str, ends: str) -> None:
    assert ending(played(stage, line, NAMED[scenario])) == ends
