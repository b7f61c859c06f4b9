"""Which programs are built from which modules, at which version, and where they are kept.

A folder beside this file holds a go.mod and go.sum. Most programs share one, so that what several
are made of is one version, and is compiled once; a folder of its own has what conflicts with it.
The versions are read from there, so that a pin stands in one place.
"""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from core.ground.errors import StillwaterError
from local.place import cache_directory

MODULES = Path(__file__).resolve().parent
SHARED = MODULES / "twin"
# No symbol tables: half the size, and nobody debugs these.
PLAIN = "-s -w"
# Large, and nothing that a program spends its time in: calls in there are not inlined. Mostly it is
# generated. EC2's client alone takes a compiler 32 s of a processor in the place of 175.
NOT_INLINED = (
    "github.com/aws/aws-sdk-go/service/...",
    "github.com/aws/aws-sdk-go-v2/service/...",
    "k8s.io/client-go/informers/...",
    "k8s.io/client-go/kubernetes/...",
    "k8s.io/kubernetes/pkg/...",
)
COMPILER_FLAGS = tuple(f"-gcflags={packages}=-l" for packages in NOT_INLINED)


@dataclass(frozen=True, slots=True)
class Binary:
    """One program and the folder of its module that it is built from, "" for the module's own."""

    name: str
    inside: str
    estimate_seconds: int  # cold, on two cores


@dataclass(frozen=True, slots=True)
class Tool:
    """One Go module, the folder that pins it, and what is taken from it."""

    name: str
    module: str
    binaries: tuple[Binary, ...]
    # Appended to PLAIN; {version} and {minor} come from the pin.
    link_flags: str = ""
    # Folders of the module to keep: kept name -> path inside the module.
    charts: tuple[tuple[str, str], ...] = ()
    # What the module lets a build leave out.
    build_tags: tuple[str, ...] = ()
    # Where its go.mod is.
    folder: Path = SHARED

    @property
    def packages(self) -> dict[str, str]:
        """Return what each program is built from, by its name."""
        return {b.name: f"{self.module}/{b.inside}".rstrip("/") for b in self.binaries}

    @property
    def version(self) -> str:
        """Return the pinned version, without its v: 1.35.4; of a replaced module, what is built."""
        go_mod = (self.folder / "go.mod").read_text()
        module = re.escape(self.module)
        pinned = re.search(
            rf"^\s*(?:replace )?{module}(?: v\S+)? => \S+ v(\S+)", go_mod, re.MULTILINE
        ) or re.search(rf"^\s*(?:require )?{module} v(\S+)", go_mod, re.MULTILINE)
        if pinned is None:
            raise StillwaterError(
                f"{self.folder / 'go.mod'} does not require {self.module}; "
                f"restore the file from the repository."
            )
        return pinned.group(1)

    @property
    def flags(self) -> str:
        """Return the linker's flags, which also tell the programs their own version."""
        minor = self.version.split(".")[1]
        return f"{PLAIN} {self.link_flags.format(version=self.version, minor=minor)}".strip()

    @property
    def key(self) -> str:
        """Return the cache key: the same sources and flags, the same programs."""
        digest = hashlib.sha256()
        for part in (
            (self.folder / "go.mod").read_bytes(),
            (self.folder / "go.sum").read_bytes(),
            f"{self.flags} {COMPILER_FLAGS}".encode(),
            repr((self.packages, self.charts)).encode(),
            *(tag.encode() for tag in self.build_tags),
            platform.machine().encode(),
        ):
            digest.update(hashlib.sha256(part).digest())
        return f"{self.name}-{self.version}-{digest.hexdigest()[:12]}"

    @property
    def home(self) -> Path:
        """Return the directory of the built tool; it exists only when it is complete."""
        return cache_directory() / "tools" / self.key


_KUBERNETES_VERSION = "k8s.io/component-base/version"
# Clients, helm among them, cannot parse the version of an API server built without.
_KUBERNETES_FLAGS = (
    f"-X {_KUBERNETES_VERSION}.gitVersion=v{{version}} "
    f"-X {_KUBERNETES_VERSION}.gitMajor=1 -X {_KUBERNETES_VERSION}.gitMinor={{minor}}"
)
# In the order in which a first build proceeds: what fails fast comes first.
TOOLS = (
    Tool(
        "etcd",
        "go.etcd.io/etcd/server/v3",
        (Binary("etcd", "", 20),),
    ),
    Tool(
        "node-termination-handler",
        "github.com/aws/aws-node-termination-handler",
        (Binary("node-termination-handler", "cmd", 60),),
        charts=(("aws-node-termination-handler", "config/helm/aws-node-termination-handler"),),
    ),
    Tool(
        "aws-load-balancer-controller",
        "sigs.k8s.io/aws-load-balancer-controller",
        (Binary("aws-load-balancer-controller", "", 65),),
        charts=(("aws-load-balancer-controller", "helm/aws-load-balancer-controller"),),
    ),
    Tool("helm", "helm.sh/helm/v3", (Binary("helm", "cmd/helm", 10),)),
    Tool(
        "aws-iam-authenticator",
        "sigs.k8s.io/aws-iam-authenticator",
        (Binary("aws-iam-authenticator", "cmd/aws-iam-authenticator", 10),),
    ),
    Tool(
        "pulumi",
        "github.com/pulumi/pulumi/pkg/v3",
        (Binary("pulumi", "cmd/pulumi", 55),),
        # The Automation API refuses an engine that does not know its version.
        link_flags="-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={version}",
    ),
    Tool(
        "kubernetes",
        "k8s.io/kubernetes",
        (
            Binary("kube-apiserver", "cmd/kube-apiserver", 115),
            Binary("kube-controller-manager", "cmd/kube-controller-manager", 50),
            Binary("kube-scheduler", "cmd/kube-scheduler", 5),
        ),
        link_flags=_KUBERNETES_FLAGS,
    ),
)
# Neither the twin nor the demo runs them: `make test` builds them before its first test.
FOR_TESTS = (
    # Judges prose by the rules in .vale/: `make check` builds it, and a test of that judge.
    Tool(
        "vale",
        "github.com/vale-cli/vale/v3",
        (Binary("vale", "cmd/vale", 100),),
        folder=MODULES / "vale",
    ),
    Tool(
        "promtool",
        "github.com/prometheus/prometheus",
        (
            Binary("promtool", "cmd/promtool", 80),
            Binary("prometheus", "cmd/prometheus", 30),
        ),
        # A rule is checked, and a stored series queried, without any service discovery.
        build_tags=("remove_all_sd",),
        folder=MODULES / "promtool",
    ),
    Tool(
        "kube-score",
        "github.com/zegl/kube-score",
        (Binary("kube-score", "cmd/kube-score", 85),),
        folder=MODULES / "kube-score",
    ),
    # Its charts alone, which bring the real definitions of its kinds.
    Tool(
        "karpenter",
        "github.com/aws/karpenter-provider-aws",
        (),
        charts=(("karpenter", "charts/karpenter"), ("karpenter-crd", "charts/karpenter-crd")),
        folder=MODULES / "karpenter",
    ),
)
# `make test-long` builds it beside those.
FOR_LONG_TESTS = (
    # Karpenter's own controllers before a cloud that makes Node objects and no machines. Its module
    # is the one that the provider above requires, so that both are one version.
    Tool(
        "karpenter-kwok",
        "sigs.k8s.io/karpenter",
        (Binary("karpenter-kwok", "kwok", 150),),
        link_flags="-X sigs.k8s.io/karpenter/pkg/operator.Version={version}",
        charts=(("karpenter-kwok-crd", "kwok/apis/crds"),),
        folder=MODULES / "karpenter-kwok",
    ),
)
# What a person drains with, as `make bench-drainers` does.
KUBECTL = Tool("kubectl", "k8s.io/kubernetes", (Binary("kubectl", "cmd/kubectl", 60),))
# The language host that runs programs in YAML: `make test-components` alone builds it.
PULUMI_YAML = Tool(
    "pulumi-yaml",
    "github.com/pulumi/pulumi-yaml",
    (Binary("pulumi-language-yaml", "cmd/pulumi-language-yaml", 180),),
    link_flags="-X github.com/pulumi/pulumi-yaml/pkg/version.Version={version}",
    folder=MODULES / "pulumi-yaml",
)
# Built when something asks for them, and not before.
ON_REQUEST = (KUBECTL, PULUMI_YAML)
EVERY = (*TOOLS, *FOR_TESTS, *FOR_LONG_TESTS, *ON_REQUEST)
BINARIES = {binary.name: tool for tool in EVERY for binary in tool.binaries}
CHARTS = {kept: tool for tool in (*TOOLS, *FOR_TESTS, *FOR_LONG_TESTS) for kept, _ in tool.charts}
