"""Rotation asks Kafka: may this node go, is it back, who goes next, and what a whole run does.

Of every instance that leaves, whoever sends it away, core.incidents asks these:
views          one reading of Kafka
consent        may this node go; refusals name the partition or voter
lease          who may take a node out
presence       is it back for good

Before a run, λ rotate asks:
outdated       which nodes are not what their group would launch today
selection      which nodes it is about: those, or those named
plan           order, time, bytes, what blocks, what cannot be kept
estimate       how long a move takes, from the moves there have been; pace: how fast logs come back
run_record     the run, as the ledger keeps it
wishes         pause, resume, abort

On each turn of a run, λ tick asks progress, which asks in this order:
observation    everything true at the moment
order          who is first
hours          may a node begin at this hour, with so much of the maintenance window left
preconditions  what speaks against it; claims: of a node that Karpenter launched
parallel       who of its zone goes together with it (core.availability.consent)
following      how those fare that are away (core.availability.consent: whose absence stops them)
refill         how fast one that lost its disk copies it again
step           what the turn comes to: the run, what to do for it, when to look again

story          a run as one Slack thread

docs/rotation.md follows a run through them.
"""
