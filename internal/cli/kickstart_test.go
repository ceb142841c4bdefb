package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	host := serveRegistry(t)
	pushRandom(t, host+"/web:v1")
	in := folder(t, strings.ReplaceAll(twoObjects, "REGISTRY", host))
	out := filepath.Join(t.TempDir(), "below", "shop")
	got := invoke(t, "", "kickstart", out, "-f", in+"/deploy", "-f", in+"/*.yaml", "-p", "replicas,images")
	want := result{0, `Kickstarted the "shop" package with 3 objects.
No probe is known for these kinds; add one to spec.availabilityProbes where there is something to wait for:
- Thing.example.com
Next, pin its images: kubectl package update ` + out + "\n", ""}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(filepath.Join(out, "deploy", "web.deployment.yaml.gotmpl"))
	if err != nil || !strings.Contains(string(data), "  replicas: {{ .config.deployments.web.replicas | toJson }}\n") || !strings.Contains(string(data), "image: {{ .images.web | toJson }}") {
		t.Errorf("%v, %s", err, data)
	}
	for _, args := range [][]string{{"update", out, "--insecure"}, {"validate", out}, {"test", out}, {"build", out}, {"tree", out}} {
		if got := invoke(t, "", args...); got.code != 0 {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := invoke(t, "", "kickstart", out, "-f", in); got.code != 1 || !strings.Contains(got.err, "exists: name a new folder") {
		t.Errorf("got %+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), ".kubectl-package-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
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
		"both":           {object, []string{"-f", "-", "-f", server.URL + "/a.yaml"}, "ConfigMap a is in standard input (document 1) as well"},
		"not found":      {"", []string{"-f", server.URL + "/b.yaml"}, "the server answers 404 Not Found"},
		"redirects":      {"", []string{"-f", server.URL + "/loop"}, "it redirects more than 10 times"},
		"endless":        {"", []string{"-f", server.URL + "/endless"}, "the input has more than 33554432 bytes"},
		"unreachable":    {"", []string{"-f", "http://127.0.0.1:1/a.yaml"}, "connection refused"},
		"no file":        {"", []string{"-f", "nope.yaml"}, "there is no file nope.yaml"},
		"empty folder":   {"", []string{"-f", t.TempDir()}, "there is no YAML or JSON file in "},
		"chart":          {"", []string{"-f", folder(t, "-- Chart.yaml\nname: a\n")}, "is a chart of Helm: render it first"},
		"no input":       {"", nil, "arguments invalid: nothing to make a package of"},
		"parameter":      {"", []string{"-f", "-", "-p", "bogus"}, `arguments invalid: "bogus" cannot be made a parameter`},
		"namespace":      {"", []string{"-f", "-", "-n", "A"}, `arguments invalid: "A" cannot be a namespace`},
		"hostile":        {"apiVersion: v1\nkind: \"Con\\e[31mfig\"\nmetadata: {name: a}\n", []string{"-f", "-"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "shop")
			got := invoke(t, tc.stdin, append([]string{"kickstart", out}, tc.args...)...)
			_, err := os.Stat(filepath.Join(out, "manifest.yaml"))
			if tc.want == "" && (got.code != 0 || err != nil) || tc.want != "" && (got.code != 1 || err == nil || !strings.Contains(got.err, tc.want)) {
				t.Errorf("got %+v, %v, want %q", got, err, tc.want)
			}
			if strings.Contains(got.out+got.err, "\x1b") {
				t.Error("escape sequences of the input are printed")
			}
		})
	}
	if got := invoke(t, "", "kickstart", "Shop", "-f", "-"); got.code != 1 || !strings.Contains(got.err, `"Shop" cannot be the name of a package`) {
		t.Errorf("got %+v", got)
	}
}
