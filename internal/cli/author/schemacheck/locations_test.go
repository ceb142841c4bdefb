package schemacheck

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

const widgetSchema = `{
	"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
	"properties": {
		"apiVersion": {}, "kind": {}, "metadata": {},
		"spec": {"$ref": "definitions.json#/definitions/spec"}
	}
}`

const widgetDefinitions = `{"definitions": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}, "color": {"enum": ["red", "blue"]}}}}}`

const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1, color: red}}"

func TestExpand(t *testing.T) {
	t.Parallel()
	apps := schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}
	for _, test := range []struct {
		pattern string
		gvk     schema.GroupVersionKind
		want    string
	}{
		{"a/{{ .Group }}/{{.ResourceKind}}_{{ .ResourceAPIVersion }}.json", apps, "a/networking.k8s.io/ingress_v1.json"},
		{"{{ .NormalizedKubernetesVersion }}-standalone{{ .StrictSuffix }}/{{- .ResourceKind -}}{{ .KindSuffix }}.json", apps, "v1.30.0-standalone-strict/ingress-networking-v1.json"},
		{"{{ .ResourceKind }}{{ .KindSuffix }}", schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pod-v1"},
	} {
		if got, err := expand(test.pattern, test.gvk, "1.30.0"); err != nil || got != test.want {
			t.Errorf("%s: %q, %v, want %q", test.pattern, got, err, test.want)
		}
	}
	if _, err := NewLocations([]string{`{{ printf "%1000000000d" 1 }}.json`}, LocationOptions{}); err == nil || !strings.Contains(err.Error(), "has no variable") {
		t.Errorf("a template: %v", err)
	}
}

func TestLocations(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	dir := filepath.Join(outside, "package")
	for name, text := range map[string]string{
		"package/schemas/widget.json": widgetSchema, "package/schemas/definitions.json": widgetDefinitions, "secret.json": widgetDefinitions,
		"package/broken/widget.json": "password: x", "package/large/widget.json": `"` + strings.Repeat("x", limits.SchemaFileBytes) + `"`,
		"package/leads/widget.json": `{"$ref": "file:///etc/passwd"}`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(outside, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.json"), filepath.Join(dir, "link.json")))
	for _, test := range []struct {
		reason, location, object string
		found                    bool
		want                     []Finding
		err                      string
	}{
		{"a good one", "schemas/{{ .ResourceKind }}.json", widget, true, nil, ""},
		{"mistakes", "schemas/{{ .ResourceKind }}.json", strings.Replace(widget, "size: 1, color: red", "size: one, color: green", 1), true,
			[]Finding{{Field: "spec.color", Problem: "value must be one of 'red', 'blue'"}, {Field: "spec.size", Problem: "got string, want integer"}}, ""},
		{"an unknown field", "schemas/{{ .ResourceKind }}.json", strings.Replace(widget, "spec:", "status: {}, spec:", 1), true,
			[]Finding{{Problem: "additional properties 'status' not allowed"}}, ""},
		{"no file", "schemas/other-{{ .ResourceKind }}.json", widget, false, nil, ""},
		{"a path out of the folder stays in it", "../secret.json", widget, false, nil, ""},
		{"a link out of the folder", "link.json", widget, false, nil, "path escapes"},
		{"a reference out of the folder", "leads/{{ .ResourceKind }}.json", widget, false, nil, "neither a file of the package nor an HTTP URL"},
		{"no JSON, which is not quoted", "broken/{{ .ResourceKind }}.json", widget, false, nil, "it is not valid JSON"},
		{"too large", "large/{{ .ResourceKind }}.json", widget, false, nil, "more than 8388608 bytes, which is the limit"},
		{"a URL without leave", "https://127.0.0.1:1/{{ .ResourceKind }}.json", widget, false, nil, ""},
	} {
		l, err := NewLocations([]string{"default", test.location}, LocationOptions{Folder: dir, KubernetesVersion: "v1.36.0"})
		require.NoError(t, err)
		got, found, err := l.Check(context.Background(), yamltest.Object(t, test.object))
		if (test.err == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "password")) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.err)
		}
		if found != test.found {
			t.Errorf("%s: found is %t", test.reason, found)
		}
		require.Equal(t, test.want, got, test.reason)
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch r.URL.Path {
		case "/widget.json":
			_, _ = w.Write([]byte(widgetSchema))
		case "/definitions.json":
			_, _ = w.Write([]byte(widgetDefinitions))
		case "/broken.json":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	check := func(text string, patterns ...string) (bool, error) {
		l, err := NewLocations(patterns, LocationOptions{Folder: t.TempDir(), Download: true})
		require.NoError(t, err)
		_, found, err := l.Check(context.Background(), yamltest.Object(t, text))
		if err == nil {
			_, found, err = l.Check(context.Background(), yamltest.Object(t, text))
		}
		return found, err
	}
	if found, err := check(widget, server.URL+"/none-{{ .ResourceKind }}.json", server.URL+"/{{ .ResourceKind }}.json"); !found || err != nil {
		t.Errorf("found %t, %v", found, err)
	}
	if asked != 3 {
		t.Errorf("%d requests, want each URL once", asked)
	}
	if _, err := check(widget, server.URL+"/broken.json"); err == nil || !strings.Contains(err.Error(), "500 Internal Server Error") {
		t.Errorf("got %v", err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	l, err := NewLocations([]string{server.URL + "/widget.json"}, LocationOptions{Download: true})
	require.NoError(t, err)
	if _, _, err := l.Check(ended, yamltest.Object(t, widget)); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupt: %v", err)
	}
}
