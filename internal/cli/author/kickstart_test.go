package author_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/imagetest"
)

const twoObjects = `
-- deploy/web.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "REGISTRY/web:v1"}]}
-- deploy/more/service.json
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
-- deploy/.hidden.yaml
not: read
-- deploy/README.md
not read
-- custom.yaml
apiVersion: example.com/v1
kind: Thing
metadata: {name: thing}
`

func TestKickstart(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	imagetest.PushRandom(t, host+"/web:v1")
	in := clitest.Folder(t, strings.ReplaceAll(twoObjects, "REGISTRY", host))
	out := filepath.Join(t.TempDir(), "below", "shop")
	got := clitest.Invoke(t, "", "kickstart", out, "-f", in+"/deploy", "-f", in+"/*.yaml", "-p", "replicas,images", "--version", "v1.2.3")
	want := clitest.Result{Code: 0, Out: `Kickstarted the "shop" package with 3 objects.
No probe is known for these kinds. If there is something to wait for, add one to spec.availabilityProbes:
- Thing.example.com
Next, pin its images: kubectl package update ` + out + "\n", Err: ""}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(filepath.Join(out, "deploy", "web.deployment.yaml.gotmpl"))
	if err != nil || !strings.Contains(string(data), "  replicas: {{ .config.deployments.web.replicas | toJson }}\n") || !strings.Contains(string(data), "image: {{ .images.web | toJson }}") {
		t.Errorf("%v, %s", err, data)
	}
	for _, args := range [][]string{{"update", out, "--insecure"}, {"validate", out}, {"test", out}, {"build", out}, {"inspect", out, "--tree"}} {
		if got := clitest.Invoke(t, "", args...); got.Code != 0 {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), ".kubectl-package-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An existing folder is never overwritten.
func TestKickstartOverAFolder(t *testing.T) {
	t.Parallel()
	out := clitest.Folder(t, "-- a.yaml\na: b\n")
	if got := clitest.Invoke(t, "", "kickstart", out, "-f", "-"); got.Code != 1 || !strings.Contains(got.Err, "exists: name a new folder") {
		t.Errorf("got %+v", got)
	}
}

func TestKickstartFromElsewhere(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.yaml":
			_, _ = w.Write([]byte(object))
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/endless":
			chunk := []byte(strings.Repeat("#\n", 1<<16))
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"standard input": {object, []string{"-f", "-"}, ""},
		"URL":            {"", []string{"-f", server.URL + "/a.yaml"}, ""},
		"both":           {object, []string{"-f", "-", "-f", server.URL + "/a.yaml"}, "ConfigMap a is also in standard input (document 1)"},
		"not found":      {"", []string{"-f", server.URL + "/b.yaml"}, "the server answers 404 Not Found"},
		"redirects":      {"", []string{"-f", server.URL + "/loop"}, "stopped after 10 redirects"},
		"endless":        {"", []string{"-f", server.URL + "/endless"}, "the input has more than 33554432 bytes"},
		"unreachable":    {"", []string{"-f", "http://127.0.0.1:1/a.yaml"}, "connection refused"},
		"no file":        {"", []string{"-f", "nope.yaml"}, "there is no file nope.yaml"},
		"empty folder":   {"", []string{"-f", t.TempDir()}, "there is no YAML or JSON file in "},
		"chart":          {"", []string{"-f", clitest.Folder(t, "-- Chart.yaml\nname: a\n")}, "is a chart of Helm: render it first"},
		"no input":       {"", nil, "arguments invalid: there are no objects"},
		"parameter":      {"", []string{"-f", "-", "-p", "bogus"}, `arguments invalid: "bogus" cannot become a parameter`},
		"namespace":      {"", []string{"-f", "-", "-n", "A"}, `arguments invalid: "A" cannot be a namespace`},
		"version":        {"", []string{"-f", "-", "--version", "1.2"}, `arguments invalid: --version "1.2" is not a semantic version`},
		"scope":          {"", []string{"-f", "-", "--scope", "global"}, `arguments invalid: unknown --scope "global": choose Namespaced or Cluster`},
		"any namespace":  {"", []string{"-f", "-", "--scope", "namespaced", "-n", "a"}, "--namespace and --scope Namespaced contradict each other"},
		"keep":           {"", []string{"-f", "-", "--keep", "pods"}, `arguments invalid: unknown --keep "pods": choose crds`},
		"recreate":       {"", []string{"-f", "-", "--recreate", "pods"}, `arguments invalid: unknown --recreate "pods": choose jobs`},
		"kustomization":  {"", []string{"-f", clitest.Folder(t, "-- kustomization.yaml\nresources: [a.yaml]\n-- a.yaml\n"+object)}, ""},
		"all flags":      {object, []string{"-f", "-", "--scope", "cluster", "--version", "1.2.3", "--keep", "crds", "--recreate", "jobs"}, ""},
		"hostile":        {"apiVersion: v1\nkind: \"Con\\e[31mfig\"\nmetadata: {name: a}\n", []string{"-f", "-"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "shop")
			got := clitest.Invoke(t, tc.stdin, append([]string{"kickstart", out}, tc.args...)...)
			_, err := os.Stat(filepath.Join(out, "manifest.yaml"))
			if tc.want == "" && (got.Code != 0 || err != nil) || tc.want != "" && (got.Code != 1 || err == nil || !strings.Contains(got.Err, tc.want)) {
				t.Errorf("got %+v, %v, want %q", got, err, tc.want)
			}
			if tc.want == "" {
				// A package without templates has no output to compare with fixtures.
				if got := clitest.Invoke(t, "", "test", out); got.Code != 0 {
					t.Errorf("got %+v", got)
				}
			}
			if strings.Contains(got.Out+got.Err, "\x1b") {
				t.Error("escape sequences of the input are printed")
			}
		})
	}
	if got := clitest.Invoke(t, "", "kickstart", "Shop", "-f", "-"); got.Code != 1 || !strings.Contains(got.Err, `"Shop" cannot be the name of a package`) {
		t.Errorf("got %+v", got)
	}
}

// A bundle of the Operator Lifecycle Manager gives the package its name. The folder keeps the name
// of the argument.
func TestKickstartFromABundle(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	const csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: o}\nspec:\n  installModes: [{type: AllNamespaces, supported: true}]\n  install:\n    strategy: deployment\n    spec:\n      deployments:\n      - name: o\n        spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: o, image: o}]}}}\n"
	manifests, err := loader.BuildFolder("manifests", loader.Files{"csv.yaml": []byte(csv)}, loader.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := loader.BuildFolder("metadata", loader.Files{"annotations.yaml": []byte("annotations: {operators.operatorframework.io.bundle.package.v1: some-operator}\n")}, loader.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	layers, err := metadata.Layers()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := mutate.AppendLayers(manifests, layers...)
	if err != nil {
		t.Fatal(err)
	}
	for ref, image := range map[string]v1.Image{host + "/bundle:v1": bundle, host + "/other:v1": manifests} {
		parsed, err := name.ParseReference(ref, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(parsed, image); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "mine")
	got := clitest.Invoke(t, "", "kickstart", out, "-b", host+"/bundle:v1", "--insecure")
	if got.Code != 0 || got.Out != "Kickstarted the \"some-operator\" package with 2 objects.\n" {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "test", out); got.Code != 0 {
		t.Errorf("got %+v", got)
	}
	for ref, want := range map[string]string{
		host + "/other:v1": "the image is not a bundle of the Operator Lifecycle Manager", host + "/nope:v1": "image not found", "a b": "invalid image reference",
	} {
		if got := clitest.Invoke(t, "", "kickstart", out+"2", "-b", ref, "--insecure"); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: got %+v, want %q", ref, got, want)
		}
	}
}
