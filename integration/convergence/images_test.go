package convergence_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

// image is a package as it was pushed.
type image struct {
	reference, digest string
	files             loader.Files
}

// components of every image; the root is one without a name.
var components = []string{"", "alpha", "beta"}

// push pushes three versions of one package. Each has objects of its own, and the
// last one is large enough for slices.
func push(t *testing.T) []image {
	t.Helper()
	var images []image
	for version := 1; version <= 3; version++ {
		files := harness.Files{}
		for _, component := range components {
			folder := ""
			if component != "" {
				folder = "components/" + component + "/"
			}
			for path, content := range content(version, component) {
				files[folder+path] = content
			}
		}
		reference := env.Push(t, fmt.Sprintf("shop:v%d", version), files)
		ref, err := name.ParseReference(reference, name.Insecure)
		require.NoError(t, err)
		found, err := remote.Head(ref, remote.WithContext(t.Context()))
		require.NoError(t, err)
		pushed := image{reference: reference, digest: found.Digest.String(), files: files.Bytes()}
		images = append(images, pushed)
	}
	return images
}

// phases of every version. The objects of the second one are probed.
var phases = []string{"first", "second", "third"}

// content returns one version of one component. All that an object is rendered
// from shows in it.
func content(version int, component string) harness.Files {
	spec := `  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}, selector: {matchLabels: {gated: "true"}}}
    probes:
    - cel: {rule: 'self.data.value != "stuck"', message: "it is stuck"}
  config:
    openAPIV3Schema:
      type: object
      properties:
        size: {type: integer, default: 1}
        note: {type: string, default: none}
        gate: {type: string, default: open}
        password: {type: string, default: none-at-all}
`
	if component == "" {
		spec += "  components: {}\n"
	}
	files := harness.Files{
		"manifest.yaml": harness.Manifest(strings.Trim("shop-"+component, "-"), phases, spec),
		"first.yaml.gotmpl": configMap("shown", "first", fmt.Sprintf(`  version: "%d"
  component: %q
  size: "{{ .config.size }}"
  note: {{ .config.note | quote }}
  environment: '{{ toJson .environment }}'
`, version, component)) + `---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .package.metadata.name }}-hidden
  annotations: {package-operator.run/phase: first}
stringData:
  password: {{ .config.password | quote }}
`,
		"second.yaml.gotmpl": strings.Replace(configMap("gate", "second", "  value: {{ .config.gate | quote }}\n"),
			"  annotations:", "  labels: {gated: \"true\"}\n  annotations:", 1),
		"third.yaml.gotmpl": configMap("same", "third", "  value: same\n") + "---\n" +
			configMap("changes", "third", fmt.Sprintf("  value: v%d\n  v%d: own\n", version, version)) + "---\n" +
			configMap(fmt.Sprintf("only-v%d%s", version, component), "third", "  value: here\n"),
	}
	if version == 3 {
		for i := range 4 {
			files["third.yaml.gotmpl"] += "---\n" + configMap(fmt.Sprintf("large-%d", i), "third", fmt.Sprintf("  value: %q\n", strings.Repeat("large ", 600)))
		}
	}
	return files
}

func configMap(suffix, phase, data string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .package.metadata.name }}-%s
  annotations: {package-operator.run/phase: %s}
data:
%s`, suffix, phase, data)
}
