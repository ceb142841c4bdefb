package render

import (
	"context"
	"errors"
	"strings"
	"testing"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// TestObject executes templates without a package. The expected errors are parts of the actual
// ones.
func TestObject(t *testing.T) {
	t.Parallel()
	env := manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: "v1.36.0"}}
	config := map[string]any{"host": "db", "count": int64(3), "list": []any{"a", "b"}}
	for _, tc := range []struct{ text, want, err string }{
		{text: `{{ .config.host }} {{ .environment.kubernetes.version }}`, want: "db v1.36.0"},
		{text: `{{ add .config.count 1 }} {{ .config.list | join "," }}`, want: "4 a,b"},
		{text: `{{ define "x" }}<{{ . }}>{{ end }}{{ include "x" .config.host }}{{ toYAML .config.list }}`, want: "<db>- a\n- b"},
		{text: `{{ dig "missing" "default" .config }}`, want: "default"},
		{text: "\n{{ .config.missing }}", err: "line 2: "},
		{text: `{{ .config.missing }}`, err: "Guard it with hasKey, dig or default."},
		{text: `{{ .package.metadata.name }}`, err: `no entry for key "package"`},
		{text: `{{ getFile "x" }}`, err: `function "getFile" not defined`},
		{text: `{{ getFileGlob "*" }}`, err: `function "getFileGlob" not defined`},
		{text: `{{ cel "true" }}`, err: `function "cel" not defined`},
		{text: `{{ env "HOME" }}`, err: `function "env" not defined`},
		{text: `{{ if }}`, err: "line 1: "},
		{text: `{{ fail "no" }}`, err: "no"},
		{text: `{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, err: "nest deeper"},
		{text: `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, err: "the template take"},
		{text: `{{ repeat 2000000 "x" }}`, err: "the output has more than 1572864 bytes"},
	} {
		got, err := Object(t.Context(), tc.text, config, env)
		if tc.err == "" && (err != nil || string(got) != tc.want) {
			t.Errorf("%s: %q, %v", tc.text, got, err)
		}
		if tc.err == "" {
			continue
		}
		var failed *ObjectError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), objectTemplate) {
			t.Errorf("%s: %q, %v", tc.text, got, err)
		}
	}

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Object(stopped, "x", nil, env); !errors.Is(err, context.Canceled) {
		t.Errorf("the error of one that is stopped is %v", err)
	}
}
