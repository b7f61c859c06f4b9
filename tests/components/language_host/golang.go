package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	codegen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

type goLanguage struct{}

func (goLanguage) generate(
	pkg *schema.Package, request *pulumirpc.GeneratePackageRequest, _ schema.ReferenceLoader,
) (map[string][]byte, error) {
	return codegen.GeneratePackage("pulumi-language-go", pkg, request.LocalDependencies)
}

func (goLanguage) link(directory, sdk string) error {
	content, err := os.ReadFile(filepath.Join(directory, sdk, "go.mod"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(content), "\n")
	module, found := strings.CutPrefix(first, "module ")
	if !found {
		return errors.New("the SDK's go.mod does not begin with its module")
	}
	here := "./" + filepath.ToSlash(sdk)
	return finish(directory, "go", "mod", "edit", "-require", module+"@v0.0.0", "-replace", module+"="+here)
}

func (goLanguage) install(directory string) error {
	return finish(directory, "go", "mod", "tidy")
}

func (goLanguage) program(run *pulumirpc.RunRequest, engine string) *exec.Cmd {
	command := exec.Command("go", "run", ".")
	command.Env = []string{
		"PULUMI_ENGINE=" + engine,
		"PULUMI_MONITOR=" + run.MonitorAddress,
		"PULUMI_ORGANIZATION=" + run.Organization,
		"PULUMI_PROJECT=" + run.Project,
		"PULUMI_ROOT_DIRECTORY=" + run.Info.RootDirectory,
		"PULUMI_STACK=" + run.Stack,
		fmt.Sprintf("PULUMI_DRY_RUN=%t", run.DryRun),
		fmt.Sprintf("PULUMI_PARALLEL=%d", run.Parallel),
	}
	return command
}
