package loader

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// FuzzSecrets checks that whatever a template does with a sensitive value, no message has a piece
// of it, and only Secrets contain all of it, unless an annotation permits that.
//
// Code: secrets.go, adjust.go, object.go
func FuzzSecrets(f *testing.F) {
	const value = "Geheimnis:{17}-xyz!"
	for _, use := range []string{
		"{{.config.p}}", "{{.config.p | b64enc}}", "{{fail .config.p}}", "{{printf `%x` .config.p}}", "{{toJson .config}}", "{{.config.p | quote}}",
		"{{.config.p | trunc 9}}", "{{include .config.p .}}", "{{cel .config.p}}", "{{semver .config.p}}", "*{{.config.p}}", "{{.config.p}}: {{.config.p}}",
	} {
		f.Add(use, "spec: {a: b}", false)
		f.Add("x", "metadata: {labels: {a: '"+use+"'}}", true)
	}

	f.Fuzz(func(t *testing.T, use, patch string, secret bool) {
		kind := "ConfigMap"
		if secret {
			kind = "Secret"
		}
		if len(use)+len(patch) > 1<<10 {
			return
		}
		files := pkg("manifest.yaml", plain+anyConfig,
			"a.yaml.gotmpl", "apiVersion: v1\nkind: "+kind+"\nmetadata:\n  name: a\n  annotations:\n    package-operator.run/phase: first\ndata:\n  x: "+use+"\n")
		opts := namespaced(withConfig(`{"p":"`+value+`"}`), func(o *Options) {
			o.Sensitive = []string{value}
			o.Patches = []Patch{{Target: PatchTarget{Name: "a"}, Patch: patch}}
		})
		p, err := Load(context.Background(), files, opts)
		message := ""
		if err != nil {
			message = err.Error()
		} else {
			message = p.Warnings.Error()
		}
		for i := 0; i+limits.SensitiveLength <= len(value); i++ {
			piece := value[i : i+limits.SensitiveLength]
			if strings.Contains(message, piece) && !strings.Contains(use+patch, piece) {
				t.Fatalf("%q is in %q", piece, message)
			}
		}
		if err != nil || secret {
			return
		}
		for i, phase := range p.Phases {
			for j, o := range phase.Objects {
				text := string(o.Object.Raw)
				var body any
				require.NoError(t, json.Unmarshal(o.Object.Raw, &body))
				exposed := strings.Contains(text, "expose-secret-values")
				if strings.Contains(text, value) && (!exposed || !p.HoldsSensitive(i, j)) {
					t.Fatalf("the value is in %s", text)
				}
			}
		}
	})
}
