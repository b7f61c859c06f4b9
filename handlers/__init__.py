"""Lambda entry points, thin: what AWS announced -> one incident in the ledger -> ticks until done.

    EventBridge -> events queue -> interruption -> ledger -> ticks queue -> tick -> ... -> released
    every minute                -> sweep        -> ledger -> ticks queue, and what is over -> S3
    NTH, over HTTPS             -> webhook      -> ledger -> ticks queue
    a person                    -> rotate       -> a run in the ledger -> ticks queue
    whoever wrote the ledger    -> stories queue -> slack -> one thread per incident, or run
    every five minutes          -> volumes      -> what the volumes need, asked of their node pools
    whoever may ask             -> health       -> 200, 503 or 500, and why

settings    the frozen environment infra rendered
interruption, tick, sweep, webhook, slack, rotate, health, volumes   `handler(event, context)`
reception   an announcement about an instance -> its incident
notices     announcements about volumes, zones and groups
observe     adapters -> core.incidents.observation: what is true now
act         core actions -> idempotent effects
ledger      incidents, lease and announcements in one DynamoDB table (table: its items)
chronicle   tells Slack's queue and CloudWatch what was written to the ledger
export      files what is over in S3
deadline    asks several sources at once, for a bounded time
threads     what Slack was told of each incident
records     single documents in the same table, on which stand
  freezes     the zones' incidents, and what they freeze
  told        what a person was called about already
  leadership  which brokers are kept from leading, and what was changed for it
  shifts      what is done about frozen zones, and undone
  runs        the rotation run
  rotations   a turn of it
  volume_records  what is remembered of each volume (volume_sight: one look at all of them)
adapters/   aws, kubernetes, pods, kafka, connect, slack, secrets, metrics: who alone knows a client

What each function calls, for its least-privilege role (ARNs: the prefix's own resources; `*` where
AWS offers no resource level). Every function also writes its own log group.

    function      AWS actions                                        resource
    interruption  sqs:ReceiveMessage, DeleteMessage, GetQueueAttributes   <prefix>-events
                  sqs:SendMessage                                    <prefix>-ticks, -stories
                  dynamodb:GetItem, PutItem                          <prefix>-incidents
                  dynamodb:Query                                     <prefix>-incidents/index/open
                  ec2:DescribeInstances, DescribeVolumes,
                    DescribeAvailabilityZones                        *
    tick          sqs:ReceiveMessage, DeleteMessage, GetQueueAttributes   <prefix>-ticks
                  sqs:SendMessage                                    <prefix>-ticks, -nth, -stories
                  dynamodb:GetItem, PutItem                          <prefix>-incidents
                  dynamodb:Query                                     <prefix>-incidents/index/open
                  ec2:DescribeInstances, DescribeInstanceStatus,
                    DescribeVolumes, DescribeAvailabilityZones       *
                  autoscaling:DescribeAutoScalingGroups              *
                  autoscaling:RecordLifecycleActionHeartbeat,
                    CompleteLifecycleAction, SetDesiredCapacity,
                    SetInstanceProtection,
                    TerminateInstanceInAutoScalingGroup              the prefix's groups
    sweep         sqs:SendMessage                                    <prefix>-ticks, -stories
                  dynamodb:GetItem, PutItem                          <prefix>-incidents
                  dynamodb:Query                                     <prefix>-incidents/index/open
                  ec2:DescribeInstances, DescribeInstanceStatus,
                    DescribeAvailabilityZones                        *
                  autoscaling:DescribeAutoScalingGroups              *
                  s3:PutObject                                       the archive, incidents/*
    volumes       dynamodb:GetItem, PutItem                          the table's volume#*
                  dynamodb:Query                                     <prefix>-incidents/index/open
                  ec2:DescribeInstances, DescribeVolumes,
                    DescribeVolumesModifications                     *
                  cloudwatch:GetMetricData                           *
    rotate        sqs:SendMessage                                    <prefix>-ticks
                  dynamodb:GetItem, PutItem                          <prefix>-incidents
                  dynamodb:Query                                     <prefix>-incidents/index/open
                  ec2:DescribeInstances,
                    DescribeLaunchTemplateVersions                   *
                  autoscaling:DescribeAutoScalingGroups              *
    webhook       sqs:SendMessage                                    <prefix>-ticks
                  dynamodb:GetItem, PutItem                          incident#*, ignored#*
                  secretsmanager:GetSecretValue                      <prefix>/nth-webhook
    slack         sqs:ReceiveMessage, DeleteMessage, GetQueueAttributes   <prefix>-stories
                  sqs:SendMessage                                    <prefix>-stories
                  dynamodb:GetItem                                   incident#*, rotation#*,
                                                                     freezes#<cluster>
                  dynamodb:GetItem, PutItem                          story#*
                  secretsmanager:GetSecretValue                      the spec's slack.secret_name
    health        dynamodb:GetItem                                   freezes#<cluster>
                  dynamodb:Query                                     <prefix>-incidents/index/open

Instances and groups of this cluster are those that carry the tag key of core.naming.managed_tag
(any value): on the groups, and propagated at launch to their instances.

sts:GetCallerIdentity, presigned for the EKS token by tick, sweep, rotate and health, needs no
permission. Those four talk to Kubernetes, so they need an access entry each and a route to the API
server; tick, rotate and health talk to the brokers.

    Kubernetes (sweep)  cluster-wide: list nodes, csinodes
    Kubernetes (rotate) cluster-wide: list nodes, csinodes
                        in the Kafka namespace: list pods, and two Secrets as tick does
    Kubernetes (tick)   cluster-wide: list csinodes; list and delete volumeattachments;
                        list, get and patch nodes
                        in the Kafka namespace: list pods and poddisruptionbudgets, and where its
                        listener has TLS get the Secret <cluster>-cluster-ca-cert,
                        and the one with its own credentials
    Kubernetes (health) in the Kafka namespace: list pods, GET through the API server's proxy from
                        the REST port of each Connect worker and the metrics of each Kafka node,
                        named; and those Secrets
    Kafka               as core.availability.kafka_rights says for the calls of each function in
                        core.cluster.rights (docs/reference/kafka-rights.md)

The ledger's table: partition key `pk` (string), time to live on `expires_at`, and one sparse index
named `open` with partition key `open` (string), all attributes projected: an item carries `open`
only while its incident is open or not yet filed, so the sweep never reads what is over.
"""
