package scaffold

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
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

// CheckName refuses what cannot be the name of a package: it is used as a label,
// and as the name of objects and a namespace.
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
	entries, err := fs.ReadDir(templates, "files")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Name() == "namespace.yaml.gotmpl" && !opts.Cluster {
			continue
		}
		parsed, err := template.New(entry.Name()).Delims("<%", "%>").ParseFS(templates, "files/"+entry.Name())
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, values); err != nil {
			return nil, err
		}
		files[entry.Name()] = out.Bytes()
	}
	fixtures, err := testrunner.Fixtures(ctx, files)
	if err != nil {
		return nil, err
	}
	for p, data := range fixtures {
		files[p] = data
	}
	files[".schemas/"+manifestSchema], err = schemas.Files.ReadFile(manifestSchema)
	return files, err
}
