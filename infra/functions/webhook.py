"""Builds where NTH reports an ended drain: a function URL, and the token NTH shows there.

NTH signs nothing, it sends static headers: AWS_IAM is out of its reach. So the URL is public,
and λ webhook lets in only who knows the token. ADR 0011 says why no gateway stands before it.

Secrets Manager makes the token, once; in the cluster it is a Secret that NTH's pod reads. It stands
in no value of the chart, in no output and in no function's environment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec
from core.cluster.operated import operated_cluster
from core.ground import naming
from core.settings.functions import WebhookSettings
from infra import iam
from infra.functions import packaging
from infra.functions.definition import Definition, Scope, item_right, know, send
from infra.functions.function import LambdaFunction, Shared

TYPE = "stillwater:infra:Webhook"
NAMESPACE = "kube-system"
SECRET = "aws-node-termination-handler-webhook"  # noqa: S105 - a Secret's name
HEADERS_KEY = "headers"
TOKEN_HEADER = "x-stillwater-token"  # noqa: S105 - the header's name
TOKEN_LENGTH = 48
# A secret that a destroyed environment leaves behind would block the next one of its name.
RECOVERY_DAYS = 7


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        item_right(scope, "ReadIncidents", ["GetItem"], "incident#*"),
        item_right(scope, "NoteReports", ["PutItem"], "incident#*", "ignored#*"),
        send(scope, "AskForATick", "ticks"),
        know(scope.secret(naming.webhook_secret(scope.cluster.prefix)), "KnowTheToken"),
    ]


WEBHOOK = Definition(
    name="webhook",
    description="NTH has ended a drain attempt: a note in the incident, and a tick",
    settings=WebhookSettings,
    may=_may,
    # NTH gives up after 5 s.
    timeout_seconds=5,
    reserved_concurrency=lambda cluster: cluster.webhook_concurrency or None,
)


class Webhook(pulumi.ComponentResource):
    """λ webhook behind its URL, and the Secret with the header NTH must send."""

    url: pulumi.Output[str]
    # Changes with the token, so that NTH's pod starts again with the new one.
    token_fingerprint: pulumi.Output[str]
    # What NTH's pod needs before it can start.
    secret: k8s.core.v1.Secret

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        account: iam.Account,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._scope = name, Scope(cluster=operated_cluster(spec), account=account)
        self._child = pulumi.ResourceOptions(parent=self)
        shared = aws.secretsmanager.Secret(
            f"{name}-token",
            name=naming.webhook_secret(spec.prefix),
            description="The node termination handler's token for the webhook",
            recovery_window_in_days=0 if spec.ephemeral else RECOVERY_DAYS,
            opts=self._child,
        )
        token = self._token(shared)
        self.token_fingerprint = pulumi.Output.unsecret(
            token.apply(lambda known: hashlib.sha256(known.encode()).hexdigest()[:16])
        )
        self.secret = self._headers_secret(token)
        self.url = self._public_url(self._function(shared))
        self.register_outputs({"url": self.url})

    def _token(self, shared: aws.secretsmanager.Secret) -> pulumi.Output[str]:
        """Fill the secret once; a later run keeps what is there."""
        made = aws.secretsmanager.get_random_password_output(
            password_length=TOKEN_LENGTH,
            exclude_punctuation=True,
            opts=pulumi.InvokeOptions(parent=self),
        )
        version = aws.secretsmanager.SecretVersion(
            f"{self._name}-token-value",
            secret_id=shared.id,
            secret_string=pulumi.Output.secret(made.random_password),
            # Every run draws another password; only the first is used.
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=["secretString"],
                additional_secret_outputs=["secretString"],
            ),
        )
        return pulumi.Output.secret(version.secret_string.apply(str))

    def _headers_secret(self, token: pulumi.Output[str]) -> k8s.core.v1.Secret:
        headers = token.apply(
            lambda known: json.dumps({"Content-type": "application/json", TOKEN_HEADER: known})
        )
        return k8s.core.v1.Secret(
            f"{self._name}-secret",
            metadata=k8s.meta.v1.ObjectMetaArgs(name=SECRET, namespace=NAMESPACE),
            string_data={HEADERS_KEY: headers},
            opts=self._child,
        )

    def _function(self, shared: aws.secretsmanager.Secret) -> LambdaFunction:
        scope, prefix = self._scope, self._scope.cluster.prefix
        # Table and queue are a later layer's; until they exist nothing is drained.
        late = {
            "ledger_table": naming.ledger_table(prefix),
            "ticks_queue_url": scope.account.queue_url(naming.queue(prefix, "ticks")),
            "secret_arn": shared.arn,
        }
        told = Shared(scope=scope, package=packaging.build(), late=late)
        return LambdaFunction(f"{self._name}-function", WEBHOOK, told, opts=self._child)

    def _public_url(self, function: LambdaFunction) -> pulumi.Output[str]:
        url = aws.lambda_.FunctionUrl(
            f"{self._name}-url",
            function_name=function.name,
            authorization_type="NONE",
            opts=self._child,
        )
        # Both are asked for since October 2025; the second is bound to calls through a URL.
        for role, action, bound in (
            ("url", "lambda:InvokeFunctionUrl", {"function_url_auth_type": "NONE"}),
            ("url-invoke", "lambda:InvokeFunction", {"invoked_via_function_url": True}),
        ):
            aws.lambda_.Permission(
                f"{self._name}-{role}-permission",
                action=action,
                function=function.name,
                principal="*",
                opts=self._child,
                **bound,
            )
        return url.function_url
