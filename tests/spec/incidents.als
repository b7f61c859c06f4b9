/* Incidents, the lease and the hooks: what the loop promises, without the code that keeps it.

   One step of time is one thing that happens: a function's write, a message, a broker, a hook, an
   outage's worth of waiting. Nothing here has a clock: whatever a timer might do may happen at any
   moment (`lapse`, `timeout`), so what holds here holds for every length of every outage. */
module incidents

sig Node { var pod: lone Place }
enum Place { Old, New }                        // where its broker runs; none while it is on its way
var sig InSync in Node {}                      // brokers that are in every ISR

abstract sig State {}
one sig Opened, Holding, Draining, Gating, Released, Retained, Cancelled extends State {}

sig Party {}                                   // whose brokers a run takes together
sig Incident {
  node: disj one Node,
  party: lone Party,
  var state: one State,
  var hooks: set Hook,                         // in which the instance stands
}
enum Hook { DrainHook, GateHook }
var sig Ahead in Incident {}                   // opened for their machines alone: their turn comes
var sig Room in Incident {}                    // for whose machine the group was asked
var sig Holder in Incident {}                  // of a lease that may lapse: one, or a party's
var sig Used in Incident {}                    // whose drain was noted in the lease, and has not ended
var sig Queued in Incident {}                  // whose message the termination handler may be given
var sig Paged in Incident {}
var sig Consented in Incident {}               // whose last reading, made with the lease, allowed it

fun over: set State { Released + Retained + Cancelled }
fun begun: set State { Draining + Gating + Released + Retained }
/* Whoever may be out beside an incident: its party. */
fun together[i: Incident]: set Incident { i + { o: Incident | some i.party and o.party = i.party } }
pred others_well[i: Incident] { Node - together[i].node in InSync }

pred init {
  all i: Incident | i.state = Opened and i.hooks = (i in Ahead => none else Hook)
  no Room
  no Holder + Used + Queued + Paged + Consented
  all n: Node | n.pod = Old
  InSync = Node
}

/* What stays as it is. */
pred same_cluster { pod' = pod and InSync' = InSync }
pred same_lease { Holder' = Holder and Used' = Used and Consented' = Consented }
pred same_turns { Ahead' = Ahead and Room' = Room }
pred same_handler { Queued' = Queued }
pred others[i: Incident] { all o: Incident - i | o.state' = o.state and o.hooks' = o.hooks }
pred same_incidents { state' = state and hooks' = hooks and Paged' = Paged and same_turns }

/* λ tick, one write each: it may die between any two, and everything else may come between. */
pred ask_room[i: Incident] {                   // a machine ahead
  i.state = Opened and i in Ahead and Room' = Room + i and Ahead' = Ahead
  state' = state and hooks' = hooks and Paged' = Paged
  same_cluster and same_lease and same_handler
}
pred hold[i: Incident] {
  i.state = Opened and i.state' = Holding and i.hooks' = i.hooks
  others[i] and same_cluster and same_lease and same_handler and same_turns and Paged' = Paged
}
pred its_turn[i: Incident] {                   // the run has come to it: the group terminates it
  i in Ahead and i.state = Holding and Ahead' = Ahead - i and Room' = Room
  state' = state and i.hooks' = Hook and (all o: Incident - i | o.hooks' = o.hooks)
  Paged' = Paged and same_cluster and same_lease and same_handler
}
pred call_off[i: Incident] {                   // a pause, an abort, a stop, or an hour
  i in Ahead and i.state in Opened + Holding and i.state' = Cancelled and i.hooks' = i.hooks
  Ahead' = Ahead - i and Room' = Room - i
  others[i] and same_cluster and same_lease and same_handler and Paged' = Paged
}
pred take[i: Incident] {
  i.state = Holding and i not in Ahead and no (Holder + Used) - together[i]
  Holder' = Holder + i and Used' = Used and Consented' = Consented - i
  same_incidents and same_cluster and same_handler
}
pred read[i: Incident] {
  i.state = Holding and i in Holder and others_well[i]
  Consented' = Consented + i and Holder' = Holder and Used' = Used
  same_incidents and same_cluster and same_handler
}
pred note[i: Incident] {                       // the lease is used, in the write before the message
  i.state = Holding and i in Holder and i in Consented and no Used - together[i]
  Used' = Used + i and Holder' = Holder - i and Consented' = Consented - i
  same_incidents and same_cluster and same_handler
}
pred forward[i: Incident] {                    // at once, or by whoever finds the note
  i in Used and i.state = Holding and others_well[i]
  Queued' = Queued + i and i.state' = Draining and i.hooks' = i.hooks
  others[i] and same_cluster and same_lease and same_turns and Paged' = Paged
}
pred follow[i: Incident] {
  i.state = Draining and i.node.pod != Old and i.state' = Gating and i.hooks' = i.hooks
  others[i] and same_cluster and same_lease and same_handler and same_turns and Paged' = Paged
}
pred release[i: Incident] {
  i.state = Gating and i.node.pod = New and i.node in InSync
  i.state' = Released and no i.hooks'
  others[i] and same_cluster and same_handler and Paged' = Paged
  Ahead' = Ahead and Room' = Room - i
  Used' = Used - i and Holder' = Holder - i and Consented' = Consented - i
}
pred retain[i: Incident] {                     // a limit, or the group's own word: paged at once
  i.state not in over and i not in Ahead and i.state' = Retained and no i.hooks'
  others[i] and same_cluster and same_handler and Paged' = Paged + i and same_turns
  Holder' = Holder - i and Consented' = Consented - i and Used' = Used
}
pred end_drain[i: Incident] {                  // somebody sees that it can do nothing any more
  i.state in over and i in Used and i not in Queued and i.node in InSync
  Used' = Used - i and Holder' = Holder and Consented' = Consented
  same_incidents and same_cluster and same_handler
}

/* What others do. */
pred lapse[i: Incident] { i in Holder and Holder' = Holder - i and Used' = Used
  Consented' = Consented - i
  same_incidents and same_cluster and same_handler }
pred timeout[i: Incident] {                    // a hook without heartbeats: its instance is retained
  some i.hooks and no i.hooks' and i.state' = i.state
  others[i] and same_cluster and same_lease and same_handler and same_turns and Paged' = Paged
}
pred evict[i: Incident] {                      // the budget: all pods Ready but a party's own
  i in Queued and i.node.pod = Old and all n: Node - together[i].node | some n.pod
  pod' = pod - i.node->Place and InSync' = InSync - i.node
  same_incidents and same_lease and Queued' = Queued
}
pred drop_message[i: Incident] {               // handled, or dropped by its queue
  i in Queued and Queued' = Queued - i
  same_incidents and same_cluster and same_lease
}
pred start[n: Node] {
  no n.pod and pod' = pod + n->New and InSync' = InSync
  same_incidents and same_lease and same_handler
}
pred catch_up[n: Node] {
  some n.pod and n not in InSync and InSync' = InSync + n and pod' = pod
  same_incidents and same_lease and same_handler
}
pred stutter { same_incidents and same_cluster and same_lease and same_handler }

fact {
  init
  always (stutter or some n: Node | start[n] or catch_up[n] or some i: Incident |
    ask_room[i] or hold[i] or its_turn[i] or call_off[i] or lapse[i] or take[i] or read[i] or note[i] or forward[i] or follow[i] or release[i] or retain[i]
    or end_drain[i] or timeout[i] or evict[i] or drop_message[i])
}

/* The promises; a party counts as one. */
pred one_party[all_of: set Incident] { all disj i, o: all_of | some i.party & o.party }

assert one_party_out { always one_party[{ i: Incident | i.node not in InSync }] }
assert never_two_holders { always one_party[Holder + Used] }
assert one_partys_messages { always one_party[Queued] }
assert gate_after_return { always all i: Incident |
  (i.state != Released and i.state' = Released) implies i.node in InSync and i.node.pod = New }
assert retained_is_heard { always all i: Incident | i.state = Retained implies i in Paged }
assert drained_with_its_note { always all i: Queued | i.node.pod = Old implies i in Used }
assert nothing_ahead_leaves { always all i: Ahead |
  i.node.pod = Old and i not in Holder + Used + Queued and no i.hooks and i.state not in begun }
assert room_is_given_back { always no Room & state.(Released + Cancelled) }

check one_party_out for exactly 3 Node, exactly 3 Incident, 1 Party, 1..12 steps
check never_two_holders for exactly 3 Node, exactly 3 Incident, 1 Party, 1..12 steps
check one_partys_messages for exactly 3 Node, exactly 3 Incident, 1 Party, 1..12 steps
check gate_after_return for exactly 2 Node, exactly 2 Incident, 1 Party, 1..12 steps
check retained_is_heard for exactly 2 Node, exactly 2 Incident, 1 Party, 1..12 steps
check drained_with_its_note for exactly 3 Node, exactly 3 Incident, 1 Party, 1..12 steps
check nothing_ahead_leaves for exactly 2 Node, exactly 2 Incident, 1 Party, 1..12 steps
check room_is_given_back for exactly 2 Node, exactly 2 Incident, 1 Party, 1..12 steps
/* And it is not empty: all may go, one after the other, together, and one with a machine ahead. */
run both_released { eventually all i: Incident | i.state = Released }
  for exactly 2 Node, exactly 2 Incident, 0 Party, 1..22 steps
run a_party_is_out { eventually no InSync } for exactly 2 Node, exactly 2 Incident, 1 Party, 1..14 steps
run one_ahead_is_released { some Ahead and (eventually Incident.state = Released) }
  for exactly 1 Node, exactly 1 Incident, 0 Party, 1..14 steps
