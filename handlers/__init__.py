"""Lambda entry points, thin: what AWS announced -> one incident in the ledger -> ticks until done.

    EventBridge -> events queue -> interruption -> ledger -> ticks queue -> tick -> ... -> released
    every minute                -> sweep        -> ledger -> ticks queue, and what is over -> S3
    NTH, over HTTPS             -> webhook      -> ledger -> ticks queue
    a person                    -> rotate       -> a run in the ledger -> ticks queue
    whoever wrote the ledger    -> stories queue -> slack -> one thread per incident, or run
    every five minutes          -> volumes      -> what the volumes need, asked of their node pools
    whoever may ask             -> health       -> 200, 503 or 500, and why

At the top stand the entry points alone: each reads its settings (store.settings), opens what it
needs and hands over to a module beside it or a package below. What each may do is defined in
infra.functions (docs/reference/functions.md).

incidents/    an announcement -> its incident -> a turn of the loop; the sweep; what NTH reports
rotation/     what a person asks of a run, and a turn of it
volume/       one look at all volumes, one plan, what is asked of the node pools
store/        the ledger: incidents, lease, runs, records and settings in one DynamoDB table
adapters/     who alone knows a client: AWS, Kubernetes, Kafka, Connect, Slack, Prometheus

The ledger's table: partition key `pk` (string), time to live on `expires_at`, and one sparse index
named `open` with partition key `open` (string), all attributes projected: an item carries `open`
only while its incident is open or not yet filed, so the sweep never reads what is over.
"""
