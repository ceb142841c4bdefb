package author

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/docs/schemas"
	"lockstep.run/lockstep/internal/cli/author/repositories"
	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/probes"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{
		newInit(on.Streams), newKickstart(on.Streams), newValidate(on.Streams), newLint(on.Streams), newRender(on.Streams), newInspect(on.Streams),
		newTest(on.Streams), newUpdate(on.Streams), newBuild(on.Streams), repositories.New(on.Streams),
	}
}

// initCommand is kubectl package init.
type initCommand struct {
	streams genericiooptions.IOStreams
	cluster bool
	name    string
}

// newInit returns the command init.
func newInit(streams genericiooptions.IOStreams) *cobra.Command {
	c := initCommand{streams: streams}
	cmd := command.Runs(&cobra.Command{
		Use:        "init FOLDER",
		SuggestFor: []string{"create"},
		Short:      "Create a working package",
		Long: `Create a package in a new or empty folder: a manifest with a JSON Schema for editors, templates of a
ConfigMap, a Deployment and a Service in two phases, probes, a configuration schema, a locked image, test
cases and a README. It validates, passes its tests and lint, and can be installed as it is.`,
		Example: `  kubectl package init shop && kubectl package test shop`,
		Args:    command.Takes("FOLDER"),
	}, func(args []string) (string, error) {
		folder := filepath.Clean(args[0])
		if c.name == "" {
			c.name = filepath.Base(folder)
		}
		return folder, checkName(c.name)
	}, c.run)

	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "create a ClusterPackage, with a namespace of its own")
	cmd.Flags().StringVar(&c.name, "name", "", "set the `name` of the package")
	return cmd
}

// run creates the files in memory first, so that an error leaves no half of a package.
func (c *initCommand) run(ctx context.Context, folder string) error {
	if err := vacant(folder); err != nil {
		return err
	}
	files, err := scaffold(ctx, c.name, c.cluster)
	if err != nil {
		return err
	}

	// WriteFolder creates the folder itself. An empty one can be removed.
	if err := os.Remove(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write the package: %w", err)
	}
	if err := content.WriteFolder(folder, files); err != nil {
		return err
	}

	shown := terminal.Line(folder)
	fmt.Fprintf(c.streams.Out, `The package %s is in %s. Next:
  kubectl package test %[2]s
  kubectl package inspect %[2]s/
  kubectl package build %[2]s --tag registry.example.com/%[1]s:v0.1.0 --push
`, c.name, shown)

	return nil
}

// vacant rejects a folder with content, and the working directory.
func vacant(folder string) error {
	info, err := os.Lstat(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the folder %s: %w", folder, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || !info.IsDir() || len(entries) > 0 || folder == "." {
		return fmt.Errorf("%s exists and is not an empty folder: choose a new one", folder)
	}
	return nil
}

// newPackage has templates with the delimiters <% and %>, because {{ and }} belong to the new
// package.
//
//go:embed all:newpackage
var newPackage embed.FS

// checkName validates the name of a package, which becomes a label and the name of objects and a
// namespace.
func checkName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a package: %s", name, problems[0])
	}
	return nil
}

// manifestSchema is the file with the manifest's schema.
const manifestSchema = "PackageManifest.json"

// scaffold returns the files of a new package with its fixtures. The schema of the manifest, for
// editors, is in a folder that the image does not include. A ClusterPackage gets a namespace of its
// own. validate, test and lint accept the result.
func scaffold(ctx context.Context, name string, cluster bool) (loader.Files, error) {
	files := loader.Files{}
	_, recipe := probes.Recipe("Deployment")
	values := struct {
		Name    string
		Cluster bool
		// Probes are an entry of availabilityProbes in YAML.
		Probes string
	}{name, cluster, strings.ReplaceAll(strings.TrimSpace(recipe), "\n", "\n  ")}

	parsed, err := template.New("").Delims("<%", "%>").ParseFS(newPackage, "newpackage/*")
	if err != nil {
		return nil, err
	}

	for _, t := range parsed.Templates() {
		if t.Name() == "namespace.yaml.gotmpl" && !cluster {
			continue
		}

		var out bytes.Buffer
		if err := t.Execute(&out, values); err != nil {
			return nil, err
		}
		files[t.Name()] = out.Bytes()
	}

	fixtures, err := testrunner.Fixtures(ctx, files)
	if err != nil {
		return nil, err
	}

	maps.Copy(files, fixtures)
	files[".schemas/"+manifestSchema], err = schemas.Files.ReadFile(manifestSchema)
	return files, err
}
