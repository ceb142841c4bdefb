package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/ui"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// Result is the result of a command line.
type Result struct {
	Code     int
	Out, Err string
}

// Invoke runs a command line without a cluster.
func Invoke(t *testing.T, stdin string, args ...string) Result {
	t.Helper()
	return InvokeOn(t, func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error) {
		t.Error("a connection was made")
		return nil, os.ErrInvalid
	}, stdin, args...)
}

// piped is the argument that separates a command line from an expression for jq -r.
const piped = "|jq"

// InvokeOn runs a command line with a connection. It can be piped to jq, as users do: "list", "-o",
// "json", "|jq", ".[].name".
func InvokeOn(t *testing.T, dial command.Dialer, stdin string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	expression := ""
	if i := slices.Index(args, piped); i >= 0 {
		args, expression = args[:i], args[i+1]
	}

	var out, errOut bytes.Buffer
	all := clustertest.Streams(&out, &errOut)
	all.In = strings.NewReader(stdin)
	code := cli.RunOn(ctx, args, all, dial, ui.Commands)
	if expression == "" {
		return Result{code, out.String(), errOut.String()}
	}

	return Result{code, jq(t, out.Bytes(), expression), errOut.String()}
}

// jq returns the results of an expression on JSON. Texts are printed without quotes.
func jq(t *testing.T, printed []byte, expression string) string {
	t.Helper()
	query, err := gojq.Parse(expression)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(printed, &value))
	var b strings.Builder
	for results := query.Run(value); ; {
		switch result, more := results.Next(); result := result.(type) {
		case error:
			t.Fatalf("%s: %v", expression, result)
		case string:
			b.WriteString(result + "\n")
		default:
			if !more {
				return b.String()
			}
			text, err := gojq.Marshal(result)
			require.NoError(t, err)
			b.Write(append(text, '\n'))
		}
	}
}

// Folder writes files, which have "-- path" lines before their content, and returns the folder.
func Folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	var path string
	var content strings.Builder
	flush := func() {
		defer content.Reset()
		if path == "" {
			return
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			flush()
			path = filepath.Join(dir, strings.TrimSpace(name))
			continue
		}
		content.WriteString(line)
	}

	flush()
	return dir
}

// Fixed writes the fixtures of a package, and returns its folder.
func Fixed(t *testing.T, dir string) string {
	t.Helper()
	if got := Invoke(t, "", "test", dir, "--update", "--ignore-schemas"); got.Code != 0 {
		t.Fatalf("write the fixtures: %+v", got)
	}
	return dir
}

// GoodPackage is valid and has two test cases.
const GoodPackage = `
-- manifest.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata:
  name: web
spec:
  version: 1.2.0
  scopes: [Namespaced, Cluster]
  phases:
  - name: settings
  - name: deploy
  availabilityProbes:
  - probes:
    - condition: {type: Available, status: "True"}
    selector:
      kind: {group: apps, kind: Deployment}
  config:
    openAPIV3Schema:
      type: object
      properties:
        color: {type: string, default: red}
test:
  template:
  - name: blue
    context:
      package: {metadata: {name: shop-web, namespace: shop}}
      config: {color: blue}
  - name: cluster
    context:
      package: {metadata: {name: web}}
-- settings/cm.yaml.gotmpl
apiVersion: v1
kind: ConfigMap
metadata:
  name: color-{{ .config.color }}
  namespace: {{ .package.metadata.namespace | default "web" }}
  annotations: {package-operator.run/phase: settings}
-- web.yaml.gotmpl
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: {{ .package.metadata.namespace | default "web" }}
  annotations: {package-operator.run/phase: deploy}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: {{ .package.metadata.namespace | default "web" }}
  annotations: {package-operator.run/phase: deploy}
spec: {ports: [{port: 80}]}
-- .hidden/file
not in the image
`

// BadPackage has several problems.
const BadPackage = `
-- manifest.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata:
  name: web
spec:
  scopes: [Namespaced]
  phasse: []
  version: 1.0.0
  phases:
  - name: deploy
-- cm.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: first
  annotations: {package-operator.run/phase: deploy}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: "evil"
  annotations: {package-operator.run/phase: "de\e[31mploy"}
`

// ValuesFile writes a file of values, and returns its path.
func ValuesFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Times matches durations, which tests replace because they differ from run to run.
var Times = regexp.MustCompile(` *[0-9.]+s\b`)
