package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"

	codegen "github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

type nodeLanguage struct{}

var fromTypes = regexp.MustCompile(`"\./(types/|utilities")`)

func (nodeLanguage) generate(
	pkg *schema.Package, request *pulumirpc.GeneratePackageRequest, loader schema.ReferenceLoader,
) (map[string][]byte, error) {
	files, err := codegen.GeneratePackage(
		"pulumi-language-nodejs", pkg, request.ExtraFiles, request.LocalDependencies, request.Local, loader)
	// Built with Go 1.26, whose filepath.Rel tidies up, these generators take a folder below the
	// root for the root (pulumi#21835); the real plugin of this version is built with an older Go.
	for name, content := range files {
		if path.Dir(name) == "types" {
			files[name] = fromTypes.ReplaceAll(content, []byte(`"../$1`))
		}
	}
	return files, err
}

func (nodeLanguage) link(directory, sdk string) error {
	content, err := os.ReadFile(filepath.Join(directory, sdk, "package.json"))
	if err != nil {
		return err
	}
	var described struct{ Name string }
	if err := json.Unmarshal(content, &described); err != nil {
		return err
	}
	here := "file:" + filepath.ToSlash(sdk)
	return finish(directory, "npm", "pkg", "set", "dependencies."+described.Name+"="+here)
}

func (nodeLanguage) install(directory string) error {
	return finish(directory, "npm", "install", "--no-audit", "--no-fund")
}

func (nodeLanguage) program(run *pulumirpc.RunRequest, engine string) *exec.Cmd {
	arguments := []string{
		"node_modules/@pulumi/pulumi/cmd/run",
		"--engine", engine,
		"--monitor", run.MonitorAddress,
		"--organization", run.Organization,
		"--parallel", fmt.Sprint(run.Parallel),
		"--project", run.Project,
		"--pwd", run.Info.ProgramDirectory,
		"--root-directory", run.Info.RootDirectory,
		"--stack", run.Stack,
	}
	if run.DryRun {
		arguments = append(arguments, "--dry-run")
	}
	command := exec.Command("node", append(arguments, run.Info.EntryPoint)...)
	command.Env = []string{"PULUMI_NODEJS_TYPESCRIPT=true"}
	return command
}
