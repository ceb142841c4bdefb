package secrets_test

import (
	"fmt"
	"strings"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

// manifest has a schema for the value and, on request, probes that fail with it.
func manifest(probes string) string {
	return harness.Manifest("shop", []string{"credentials", "deploy"}, `  config:
    openAPIV3Schema:
      type: object
      required: [password, namespace]
      properties:
        password: {type: string, minLength: 8}
        namespace: {type: string}
  availabilityProbes:
  - selector: {kind: {group: "", kind: Secret}}
    probes:
    - cel: {rule: 'has(self.data.password) && size(self.data.password) > 0', message: "the Secret has no password"}
`+probes)
}

// failing are probes of versions that fail on Secrets. Their messages could quote values: values
// that differ, and values that cannot be converted.
var failing = map[string]string{
	"v3": `    - fieldsEqual: {fieldA: .data.password, fieldB: .data.url}
    - cel: {rule: 'self.data.password == self.data.url', message: "password and url differ"}
`,
	"v4": `    - fieldsEqual: {fieldA: '.data.password | tonumber', fieldB: '1'}
    - cel: {rule: 'int(self.data.password) == 1', message: "the password is no number"}
`,
}

// content are the objects of a version: Secrets with the value in every form, and
// objects without it.
func content(version string, large bool) harness.Files {
	object := func(kind, name, phase string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: %s\n  namespace: {{ .config.namespace }}\n  annotations:\n    package-operator.run/phase: %s\n", kind, name, phase)
	}
	docs := []string{
		object("Secret", "credentials", "credentials") + `stringData:
  version: ` + version + `
  password: {{ .config.password | quote }}
  url: {{ printf "postgres://app:%s@db/app" .config.password | quote }}
`,
		object("Secret", "encoded", "deploy") + `data:
  password: {{ .config.password | b64enc }}
  one: {{ printf "x%s" .config.password | b64enc }}
  two: {{ printf "xy%s" .config.password | b64enc }}
  twice: {{ .config.password | b64enc | b64enc }}
`,
		object("ConfigMap", "settings", "deploy") + "data:\n  version: " + version + "\n",
	}
	for i := range 30 {
		if large {
			docs = append(docs, object("ConfigMap", fmt.Sprintf("large-%02d", i), "deploy")+"data:\n  text: "+strings.Repeat("lockstep ", 400)+"\n")
		}
	}
	return harness.Files{"objects.yaml.gotmpl": strings.Join(docs, "---\n")}
}

// push pushes the versions of both packages: 1 and 2 differ in their Secrets, 3 and
// 4 have probes that fail.
func (l *lives) push(t *testing.T) {
	t.Helper()
	for name, large := range map[string]bool{"small": false, "large": true} {
		for _, version := range []string{"v1", "v2", "v3", "v4"} {
			files := content(version, large)
			files["manifest.yaml"] = manifest(failing[version])
			l.env.Push(t, name+":"+version, files)
		}
	}
}

// leak pushes a package whose ConfigMap contains the value; exposed means that the object permits
// that.
func (l *lives) leak(t *testing.T, exposed bool) string {
	t.Helper()
	doc, tag := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: leak\n  annotations:\n    package-operator.run/phase: deploy\n", "refused"
	if exposed {
		doc, tag = doc+"    package-operator.run/expose-secret-values: \"true\"\n", "exposed"
	}
	return l.env.Push(t, "leak:"+tag, harness.Files{
		"manifest.yaml": manifest(""), "leak.yaml.gotmpl": doc + "data:\n  dsn: postgres://app:{{ .config.password }}@db/app\n",
	})
}
