"""The calls behind every resource type in use, a module per kind of service.

`calls` says how to read them; importing this package enters them.
"""

from local.refusals.calls import TYPES
from local.refusals.catalogue import (  # noqa: F401 - importing them enters their calls
    balancing,
    compute,
    events,
    identity,
    kubernetes,
    network,
    storage,
)

# Names that pulumi-aws had for them before.
for older, now in (
    ("alb/listener:Listener", "lb/listener:Listener"),
    ("alb/loadBalancer:LoadBalancer", "lb/loadBalancer:LoadBalancer"),
    ("alb/targetGroup:TargetGroup", "lb/targetGroup:TargetGroup"),
    ("s3/bucketV2:BucketV2", "s3/bucket:Bucket"),
    (
        "s3/bucketServerSideEncryptionConfigurationV2:BucketServerSideEncryptionConfigurationV2",
        "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    ),
    ("s3/bucketVersioningV2:BucketVersioningV2", "s3/bucketVersioning:BucketVersioning"),
):
    TYPES[f"aws:{older}"] = TYPES[f"aws:{now}"]
