package scaffold

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"maps"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	"lockstep.run/lockstep/docs/schemas"
	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/probes"
)

//go:embed all:files
var templates embed.FS

// Options say what to make.
type Options struct {
	// Name of the package.
	Name string
	// Cluster makes one for a ClusterPackage, with a namespace of its own.
	Cluster bool
}

// CheckName validates the name of a package, which is used as a label and as the name of
// objects and a namespace.
func CheckName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a package: %s", name, problems[0])
	}
	return nil
}

// manifestSchema is the file of the manifest's schema.
const manifestSchema = "PackageManifest.json"

// Make returns the files of a new package, with its fixtures.
func Make(ctx context.Context, opts Options) (loader.Files, error) {
	files := loader.Files{}
	_, recipe := probes.Recipe("Deployment")
	values := struct {
		Options
		// Probes are an entry of availabilityProbes in YAML.
		Probes string
	}{opts, strings.ReplaceAll(strings.TrimSpace(recipe), "\n", "\n  ")}
	parsed, err := template.New("").Delims("<%", "%>").ParseFS(templates, "files/*")
	if err != nil {
		return nil, err
	}
	for _, t := range parsed.Templates() {
		if t.Name() == "namespace.yaml.gotmpl" && !opts.Cluster {
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
