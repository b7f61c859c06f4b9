// Command language_host stands in for Pulumi's language plugins of Go and Node.js, which no module
// that can be required holds. Called pulumi-language-go or pulumi-language-nodejs, it does what
// `pulumi package add` and `pulumi up` ask of them: it writes an SDK by the generators that the real
// plugins call, links it into the program, and runs the program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

const prefix = "pulumi-language-"

// A language writes an SDK of a package, links it into a program, and runs the program.
type language interface {
	generate(*schema.Package, *pulumirpc.GeneratePackageRequest, schema.ReferenceLoader) (map[string][]byte, error)
	link(directory, sdk string) error
	install(directory string) error
	program(run *pulumirpc.RunRequest, engine string) *exec.Cmd
}

var languages = map[string]language{"go": goLanguage{}, "nodejs": nodeLanguage{}}

type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	language language
	engine   string
}

func main() {
	if err := serve(strings.TrimPrefix(filepath.Base(os.Args[0]), prefix)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(name string) error {
	spoken, known := languages[name]
	if !known || len(os.Args) < 2 {
		return fmt.Errorf("call this %sgo or %snodejs, and give it the engine's address", prefix, prefix)
	}
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Init: func(server *grpc.Server) error {
			served := &host{language: spoken, engine: os.Args[len(os.Args)-1]}
			pulumirpc.RegisterLanguageRuntimeServer(server, served)
			return nil
		},
	})
	if err != nil {
		return err
	}
	fmt.Println(handle.Port)
	return <-handle.Done
}

// GetPluginInfo names no version: the engine asks for none.
func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{}, nil
}

// GeneratePackage writes the SDK into the directory that it is given.
func (h *host) GeneratePackage(
	_ context.Context, request *pulumirpc.GeneratePackageRequest,
) (*pulumirpc.GeneratePackageResponse, error) {
	loader, err := schema.NewLoaderClient(request.LoaderTarget)
	if err != nil {
		return nil, err
	}
	defer func() { _ = loader.Close() }()
	var spec schema.PackageSpec
	if err := json.Unmarshal([]byte(request.Schema), &spec); err != nil {
		return nil, err
	}
	pkg, diagnostics, err := schema.BindSpec(spec, loader, schema.ValidationOptions{})
	if err != nil {
		return nil, err
	}
	if diagnostics.HasErrors() {
		return nil, diagnostics
	}
	// Without it the generators leave out what makes a module of the SDK.
	pkg.SupportPack = true
	files, err := h.language.generate(pkg, request, schema.NewCachedLoader(loader))
	if err != nil {
		return nil, err
	}
	for name, content := range files {
		path := filepath.Join(request.Directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
	}
	return &pulumirpc.GeneratePackageResponse{}, nil
}

// Link has the program's own list of dependencies name the SDK's folder.
func (h *host) Link(_ context.Context, request *pulumirpc.LinkRequest) (*pulumirpc.LinkResponse, error) {
	directory := request.Info.ProgramDirectory
	for _, each := range request.Packages {
		if err := h.language.link(directory, each.Path); err != nil {
			return nil, err
		}
	}
	return &pulumirpc.LinkResponse{ImportInstructions: "The SDK is linked."}, nil
}

// InstallDependencies fetches what the program and the SDK need.
func (h *host) InstallDependencies(
	request *pulumirpc.InstallDependenciesRequest, _ pulumirpc.LanguageRuntime_InstallDependenciesServer,
) error {
	return h.language.install(request.Info.ProgramDirectory)
}

// GetRequiredPackages leaves it to Pulumi.yaml to name the packages.
func (h *host) GetRequiredPackages(
	context.Context, *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	return &pulumirpc.GetRequiredPackagesResponse{}, nil
}

// Run runs the program to its end; what it prints the engine reads from here.
func (h *host) Run(_ context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	config, err := json.Marshal(request.Config)
	if err != nil {
		return nil, err
	}
	command := h.language.program(request, h.engine)
	command.Dir = request.Info.ProgramDirectory
	command.Env = append(append(os.Environ(), "PULUMI_CONFIG="+string(config)), command.Env...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	var ended *exec.ExitError
	if err := command.Run(); errors.As(err, &ended) {
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program ended with %s", ended)}, nil
	} else if err != nil {
		return nil, err
	}
	return &pulumirpc.RunResponse{}, nil
}

// Cancel ends nothing: whatever runs ends with the engine.
func (h *host) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// finish runs a command and shows what it printed where it fails.
func finish(directory, name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Dir = directory
	if printed, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, printed)
	}
	return nil
}
