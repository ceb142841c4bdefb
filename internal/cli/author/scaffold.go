package author

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
