"""Says in words what each pattern of a description asks for: nobody reads expressions at a form.

A test holds the table complete for every setting there is.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.cluster.adopted_names import BOOTSTRAP, GROUP, KAFKA, NODE_POOL
from core.cluster.fields import SUBDOMAIN

_AN_ID = "and 17 digits or letters from a to f, as AWS shows it"
WORDS: Mapping[str, str] = {
    r"^[a-z]{2,4}(-[a-z]+)+-[0-9]$": "a region such as eu-west-1; a zone has a letter more",
    r"^[a-z]{2,4}(-[a-z]+)+-[0-9][a-z]$": "an availability zone such as eu-west-1a: its region and "
    "one letter",
    r"^([01][0-9]|2[0-3]):[0-5][0-9]$": "a time of day in UTC between 00:00 and 23:59, such as "
    "03:30",
    r"^1\.[0-9]{2}$": "a minor version of Kubernetes such as 1.35, in quotes",
    r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$": "an instance type such as r7g.large",
    r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$": "at most 32 lower case letters, digits and hyphens, the "
    "first a letter and the last no hyphen",
    r"^[a-z][a-z0-9-]{1,41}[a-z0-9]$": "3 to 43 lower case letters, digits and hyphens, the first "
    "a letter and the last no hyphen",
    r"^[a-z0-9]{1,11}$": "at most 11 lower case letters and digits",
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": "at most 63 lower case letters, digits and hyphens, "
    "with no hyphen at either end",
    f"^{SUBDOMAIN}$": "at most 253 lower case letters, digits, dots and hyphens, with a letter or "
    "digit at both ends and beside each dot",
    rf"^({SUBDOMAIN}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?$": "the key of a "
    "Kubernetes label such as example.com/pool or pool",
    r"^[a-zA-Z_][a-zA-Z0-9_]*$": "the name of a Prometheus label: letters, digits and underscores, "
    "no digit first",
    r"^[a-zA-Z0-9._-]{1,249}$": "at most 249 letters, digits, dots, underscores and hyphens",
    r"^[0-9A-Za-z][0-9A-Za-z_-]{0,62}$": "at most 63 letters, digits, underscores and hyphens, a "
    "letter or digit first",
    r"^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$": "at most 100 letters, digits, underscores and hyphens, a "
    "letter or digit first",
    GROUP: "the name of an Auto Scaling group: at most 255 characters, without colons, and "
    "without a space at either end",
    NODE_POOL: "the name of a NodePool, which is the value of a label on its nodes: at most 63 "
    "lower case letters, digits, dots and hyphens, with a letter or digit at both ends",
    KAFKA: "the name of a Kafka resource: at most 47 lower case letters, digits and hyphens, with "
    "no hyphen at either end, since Strimzi's Services are called by it",
    r"^[A-Za-z0-9/_+=.@-]{1,512}$": "the name of a secret: at most 512 letters, digits and /_+=.@-",
    r"^[A-Za-z0-9_.:/-]+$": "letters, digits and _.:/- alone",
    r"^[CG][A-Z0-9]{8,20}$": "a channel's id, which Slack shows at the end of its details, such as "
    "C0123456789; no name",
    r"^[^=\s][^=\x00-\x1f]*$": "the key of a tag, without an equals sign",
    r"^[^=\s][^=\x00-\x1f]{0,127}(=[^\x00-\x1f]{0,255}\S)?$": "the key of a tag, or KEY=VALUE",
    BOOTSTRAP: "HOST:PORT, several with commas and no spaces",
    r"^[^\s\x00-\x1f\x7f\"<>\\^`{|}\ufffe\uffff]+[^/\s\x00-\x1f\x7f\"<>\\^`{|}\ufffe\uffff]$": "an "
    "address without spaces, quotes, braces and other signs that no address has, and without a "
    "slash at its end",
    r"^[^\x00-\x1f\x7f]+$": "text without tabs, line breaks and other control characters",
    r"^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?([/?][^\s\"\\;]*)?$": "an "
    "address that begins with https:// and a host's name, and has no spaces in it",
    r"^https://sqs\.[a-z0-9-]+\.amazonaws\.com/[0-9]{12}/[A-Za-z0-9_-]{1,80}$": "the URL of a "
    "standard queue, such as https://sqs.eu-west-1.amazonaws.com/111122223333/NAME",
    r"^arn:aws:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$": "the ARN of a standard topic, such "
    "as arn:aws:sns:eu-west-1:111122223333:NAME",
    r"^arn:aws:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}"
    r"-[0-9a-f]{12})$": "the ARN of a KMS key, arn:aws:kms:REGION:ACCOUNT:key/ID; no alias",
    r"^vpc-([0-9a-f]{8}|[0-9a-f]{17})$": f"vpc- {_AN_ID}",
    r"^subnet-([0-9a-f]{8}|[0-9a-f]{17})$": f"subnet- {_AN_ID}",
    r"^rtb-([0-9a-f]{8}|[0-9a-f]{17})$": f"rtb- {_AN_ID}",
    r"^sg-([0-9a-f]{8}|[0-9a-f]{17})$": f"sg- {_AN_ID}",
}


def asked_for(pattern: str) -> str:
    """Return what a pattern asks for, as a clause."""
    words = WORDS.get(pattern)
    return f"it must match {pattern}" if words is None else f"it must be {words}"
