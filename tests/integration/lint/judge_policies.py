"""Judges IAM policies by parliament, in whose environment it runs: `judge_policies.py FILE`.

FILE holds {name: policy document as text}. Prints {name: {"findings": [...], "wildcards": {action:
[resources it takes]}}} as JSON: what parliament objects to, and which actions on every resource
could have been narrowed to some, by AWS's own reference of actions and resources.
"""

import json
import sys
from pathlib import Path

import parliament


def findings(text):
    """Return parliament's findings in one policy, as {"issue", "sid", "detail"}."""
    found = []
    document = json.loads(text)
    for statement in document["Statement"]:
        alone = json.dumps({**document, "Statement": [statement]})
        analysed = parliament.analyze_policy_string(alone)
        found += [
            {"issue": f.issue, "sid": statement.get("Sid", ""), "detail": str(f.detail)}
            for f in analysed.findings
        ]
    # What only shows in the whole: rights that add up.
    for whole in parliament.analyze_policy_string(text, include_community_auditors=True).findings:
        if whole.issue not in {each["issue"] for each in found}:
            found.append({"issue": whole.issue, "sid": "", "detail": str(whole.detail)})
    return found


def narrowable(text):
    """Return the actions on `*` that could name resources, each with the kinds it takes."""
    found = {}
    for statement in json.loads(text)["Statement"]:
        if statement.get("Resource") not in ("*", ["*"]):
            continue
        for action in statement["Action"]:
            service, _, name = action.partition(":")
            taken = _resources(service, name)
            if taken:
                found[action] = taken
    return found


def _resources(service, name):
    for described in parliament.iam_definition:
        if described["prefix"] == service:
            for privilege in described["privileges"]:
                if privilege["privilege"].lower() == name.lower():
                    kinds = (each["resource_type"] for each in privilege["resource_types"])
                    return sorted({kind for kind in kinds if kind})
    return []  # no action that IAM knows: a finding of parliament's own


if __name__ == "__main__":
    policies = json.loads(Path(sys.argv[1]).read_text())
    judged = {
        name: {"findings": findings(text), "wildcards": narrowable(text)}
        for name, text in policies.items()
    }
    json.dump(judged, sys.stdout)
