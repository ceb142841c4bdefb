package loader

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

const (
	secretValue = "geheim:Passwort{17}-xyz!"
	anyConfig   = "  config: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"
)

// withSecret configures the package with a value from a Secret.
func withSecret(change ...func(*Options)) Options {
	o := namespaced(withConfig(`{"password":"`+secretValue+`","short":"kurz","pin":12345678,"map":{"a":1}}`),
		func(o *Options) { o.Sensitive = []string{secretValue, "kurz", "12345678"} })
	for _, f := range change {
		f(&o)
	}
	return o
}

func secretObject(more string) string {
	return strings.Replace(configMap("s", "second", more), "ConfigMap", "Secret", 1)
}

func TestSensitiveValuesStayInSecrets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, object string
		// want is the field of the violation; empty if there is none.
		want string
	}{
		{"in a Secret, as text", secretObject("stringData: {p: '{{.config.password}}'}"), ""},
		{"in a Secret, as base64", secretObject("data: {p: '{{.config.password | b64enc}}'}"), ""},
		{"hashed", configMap("a", "first", "data: {sum: '{{.config.password | sha256sum}}'}"), ""},
		{"short", configMap("a", "first", "data: {p: '{{.config.short}}'}"), ""},
		{"a key of an object that is not a Secret", configMap("a", "first", "data: {p: '{{.config.password}}'}"), "data.p"},
		{"within other text", configMap("a", "first", "data: {url: 'postgres://user:{{.config.password}}@db'}"), "data.url"},
		{"as base64", configMap("a", "first", "data: {p: '{{.config.password | b64enc}}'}"), "data.p"},
		{"as base64 of more", configMap("a", "first", "data: {p: '{{printf `ab%sc` .config.password | b64enc}}'}"), "data.p"},
		{"as base64 of more still", configMap("a", "first", "data: {p: '{{printf `a%sbc` .config.password | b64enc}}'}"), "data.p"},
		{"in hex", configMap("a", "first", "data: {p: '{{printf `%x` .config.password}}'}"), "data.p"},
		{"as JSON", configMap("a", "first", "data: {p: '{{toJson .config}}'}"), "data.p"},
		{"a number", strings.Replace(configMap("a", "first", "spec: {pin: {{.config.pin | int64}}}"), "v1\nkind: ConfigMap", "example.com/v1\nkind: X", 1), "spec.pin"},
		{"as a key", configMap("a", "first", "data: {'{{.config.password}}': x}"), "data[[redacted]]"},
		{"in an annotation", configMap("a", "first", "    note: '{{.config.password}}'\n"), "metadata.annotations.note"},
		{"in an annotation that is taken off", configMap("a", "first", "    package-operator.run/condition-map: 'x{{.config.password}} => example.com/X'\n"), "metadata.annotations[package-operator.run/condition-map]"},
		{"in a label", configMap("a", "first", "  labels: {p: 'p-{{.config.pin | int64}}'}\n"), "metadata.labels.p"},
		{"in a list", strings.Replace(configMap("a", "first", "args: [x, '--password={{.config.password}}']"), "v1\nkind: ConfigMap", "example.com/v1\nkind: X", 1), "args[1]"},
		{"in the name of a Secret", strings.Replace(secretObject(""), "name: s", "name: 's-{{.config.pin | int64}}'", 1), "metadata.name"},
		{"as a key of a Secret", secretObject("stringData: {'{{.config.pin | int64}}': x}"), "stringData.[redacted]"},
		{"exposed by annotation", configMap("a", "first", "    package-operator.run/expose-secret-values: 'true'\ndata: {p: '{{.config.password}}'}"), ""},
	} {
		files := pkg("manifest.yaml", plain+anyConfig, "a.yaml.gotmpl", test.object)
		got := lines(t, files, withSecret())
		if test.want == "" {
			require.Equal(t, "", got, test.reason)
			continue
		}
		if !strings.HasPrefix(got, "Secret value outside of Secrets in a.yaml.gotmpl idx 0: ") || !strings.Contains(got, ": "+test.want+": a value that came from a Secret stands here") ||
			!strings.Contains(got, "annotate the object with") || strings.Contains(got, "\n") {
			t.Errorf("%s: %s", test.reason, got)
		}
		checkClean(t, test.reason, got)
	}

	_, err := Load(context.Background(), pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "    package-operator.run/expose-secret-values: yes\n")), namespaced())
	require.ErrorContains(t, err, "expose-secret-values", "the annotation has one value")
}

// checkClean fails if a text has a piece of the value in any form.
func checkClean(t *testing.T, reason, text string) {
	t.Helper()
	for _, form := range []string{secretValue, strings.ToLower(secretValue), base64.StdEncoding.EncodeToString([]byte(secretValue))} {
		for i := 0; i+limits.SensitiveLength <= len(form); i++ {
			if piece := form[i : i+limits.SensitiveLength]; strings.Contains(text, piece) {
				t.Errorf("%s: %q of the value is in %s", reason, piece, text)
				return
			}
		}
	}
	if strings.Contains(text, "kurz") || strings.Contains(text, "12345678") {
		t.Errorf("%s: a value is in %s", reason, text)
	}
}

func TestObjectsWithSensitiveValues(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+anyConfig,
		"a.yaml", configMap("a", "first", ""),
		"b.yaml.gotmpl", configMap("b", "first", "    package-operator.run/expose-secret-values: 'true'\ndata: {p: '{{.config.password}}'}"),
		"c.yaml", configMap("c", "first", "    package-operator.run/expose-secret-values: 'true'\n"),
		"s.yaml.gotmpl", secretObject("stringData: {hash: '{{.config.short | sha256sum}}'}"))

	p, err := Load(context.Background(), files, withSecret())
	require.NoError(t, err)
	require.Equal(t, [][]bool{{false, true, false}, {true}}, p.Sensitive)
	if !p.HoldsSensitive(0, 1) || p.HoldsSensitive(0, 0) || !p.HoldsSensitive(1, 0) {
		t.Error(p.Sensitive)
	}

	p, err = Load(context.Background(), files, withSecret(func(o *Options) { o.Sensitive = nil }))
	if err != nil || p.Sensitive != nil || p.HoldsSensitive(0, 1) {
		t.Error("without sensitive values no object holds any", err, p.Sensitive)
	}
}

// Values that the schema marks are sensitive even if their Secret is not.
func TestSecretsByTheirSchema(t *testing.T) {
	t.Parallel()
	schema := `  config:
    openAPIV3Schema:
      type: object
      properties:
        user: {type: string}
        password: {type: string, format: password}
        token: &secret {type: string, writeOnly: true}
        merged: {<<: *secret, maxLength: 20}
        shown: {type: string, writeOnly: no}
        tls: {type: object, writeOnly: true, properties: {key: {type: string}}}
        users: {type: array, items: {type: object, properties: {name: {type: string}, "pass.word": {type: string, format: password}}}}
        extra: {type: object, additionalProperties: {type: string, writeOnly: true}}
`

	config := `{"user":"user-value","password":"password-value","token":"token-value","merged":"merged-value","shown":"shown-value","tls":{"key":"tls-key-value"},"users":[{"name":"name-value","pass.word":"word-value"}],"extra":{"any":"any-value"}}`
	secret := map[string]any{
		"user": "user-value", "password": "password-value", "token": "token-value", "merged": "merged-value", "shown": "shown-value", "tls": map[string]any{"key": "tls-key-value"},
		"users": []any{map[string]any{"name": "name-value", "pass.word": "word-value"}}, "extra": map[string]any{"any": "any-value"},
	}

	for expression, want := range map[string]bool{
		".config.user": false, ".config.password": true, ".config.token": true, ".config.merged": true, ".config.shown": false, ".config.tls.key": true, "(index .config.users 0).name": false,
		"(get (index .config.users 0) `pass.word`)": true, ".config.extra.any": true,
	} {
		files := pkg("manifest.yaml", plain+"  version: 1.0.0\n"+schema, "a.yaml.gotmpl", configMap("a", "first", "data: {v: {{"+expression+"}}-x}"))
		opts := namespaced(withConfig(config), func(o *Options) { o.FromSecrets = SecretValues(secret) })
		if got := lines(t, files, opts); (got != "") != want || want && !strings.Contains(got, "data.v: a value that came from a Secret stands here") {
			t.Errorf("%s: %s", expression, got)
		}
	}
}

// No error message has a sensitive value.
func TestMessagesHaveNoSensitiveValues(t *testing.T) {
	t.Parallel()
	object := func(more string) Files {
		return pkg("manifest.yaml", plain+anyConfig, "a.yaml.gotmpl", configMap("a", "first", more))
	}
	template := func(text string) Files { return object("data: {x: '{{" + text + "}}'}\n") }
	schema := func(properties string) Files {
		return pkg("manifest.yaml", plain+"  config: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, "+properties+"}}\n")
	}

	manifest := func(more string) Files {
		return pkg("manifest.yaml", plain+anyConfig+more, "a.yaml", configMap("a", "first", ""))
	}

	for _, test := range []struct {
		reason string
		files  Files
		opts   Options
	}{
		{"config, type", schema("properties: {password: {type: integer}}"), withSecret()},
		{"config, pattern", schema("properties: {password: {type: string, pattern: '^x$'}}"), withSecret()},
		{"config, enum", schema("properties: {password: {type: string, enum: [a, b]}}"), withSecret()},
		{"config, length", schema("properties: {password: {type: string, maxLength: 3}}"), withSecret()},
		{"config, format", schema("properties: {password: {type: string, format: ipv4}}"), withSecret()},
		{"config, short value", schema("properties: {short: {type: string, maxLength: 3}}"), withSecret()},
		{"config, number", schema("properties: {pin: {type: integer, maximum: 3}}"), withSecret()},
		{"config, required next to it", schema("required: [other]"), withSecret()},
		{"config, rule", schema("properties: {password: {type: string, x-kubernetes-validations: [{rule: 'self == \"x\"'}]}}"), withSecret()},
		{"config, message of a rule", schema("properties: {password: {type: string, x-kubernetes-validations: [{rule: 'self == \"x\"', messageExpression: '\"got \" + self'}]}}"), withSecret()},
		{"config, no object", schema("properties: {password: {type: object}}"), withSecret()},
		{"config, unknown key", pkg("manifest.yaml", stated(plain+"  config: {openAPIV3Schema: {type: object, properties: {}}}\n")), withSecret(func(o *Options) { o.Config = []byte(`{"` + secretValue + `":1}`) })},
		{"fail", template("fail .config.password"), withSecret()},
		{"fail with a part", template("fail (substr 3 20 .config.password)"), withSecret()},
		{"fail with base64", template("fail (b64enc .config.password)"), withSecret()},
		{"fail with hex", template("fail (printf `%x` .config.password)"), withSecret()},
		{"fail with a quoted value", template("fail (quote .config.password)"), withSecret()},
		{"fail with a short value", template("fail .config.short"), withSecret()},
		{"fail with much text", template("fail (repeat 10000 .config.password)"), withSecret()},
		{"fail with everything", template("fail (toYAML .config)"), withSecret()},
		{"a function that parses", template("fromYAML .config.password | fail"), withSecret()},
		{"JSON", template("mustFromJson .config.password"), withSecret()},
		{"a version", template("semver .config.password"), withSecret()},
		{"a range", template("semverCompare .config.password `1.2.3`"), withSecret()},
		{"an expression", template("regexMatch (print `(` .config.password) `a`"), withSecret()},
		{"a file", template("getFile .config.password"), withSecret()},
		{"a glob", template("getFileGlob (print `[` .config.password)"), withSecret()},
		{"a template", template("include .config.password ."), withSecret()},
		{"an address", template("urlParse (print `:` .config.password)"), withSecret()},
		{"a format", template("printf `%d` .config.password | fail"), withSecret()},
		{"a field of a text", template(".config.password.x"), withSecret()},
		{"an index", template("index .config.map .config.password | fail"), withSecret()},
		{"a comparison", template("lt .config.password 1"), withSecret()},
		{"a number", template("add .config.pin `x` | printf `%d` | fail"), withSecret()},
		{"CEL in a template", template("cel .config.password"), withSecret()},
		{"CEL of a value", template("cel (print `config.map[\"` .config.password `\"]`)"), withSecret()},
		{"a path rule", manifest("  filter: {paths: [{glob: '*', expression: 'config.map[config.password]'}]}\n"), withSecret()},
		{"a condition", manifest("  filter: {conditions: [{name: a, expression: 'int(config.password) > 1'}]}\n"), withSecret()},
		{"a condition that is not a bool", manifest("  filter: {conditions: [{name: a, expression: 'config.password'}]}\n"), withSecret()},
		{"the condition of an object", object("    package-operator.run/condition: '{{.config.password}}'\n"), withSecret()},
		{"the condition of an object, evaluated", object("    package-operator.run/condition: 'duration(config.password) == duration(config.password)'\n"), withSecret()},
		{"YAML, syntax", object("data: {a: {{.config.password}} }}\n"), withSecret()},
		{"YAML, a key twice", object("data:\n  '{{.config.password}}': 1\n  '{{.config.password}}': 2\n"), withSecret()},
		{"YAML, an alias", object("data: *{{.config.password | trunc 12 | replace `:` ``}}\n"), withSecret()},
		{"YAML, a tag", object("data: !{{.config.password | trunc 14 | replace `{` ``}} x\n"), withSecret()},
		{"YAML, a number", object("data: !!int '{{.config.password}}'\n"), withSecret()},
		{"YAML, an escape", object("data: \"\\{{.config.password}}\"\n"), withSecret()},
		{"a name", pkg("manifest.yaml", plain+anyConfig, "a.yaml.gotmpl", configMap("'/{{.config.password}}'", "first", "")), withSecret()},
		{"a namespace", object("  namespace: '{{.config.password}}'\n"), withSecret()},
		{"a phase", pkg("manifest.yaml", plain+anyConfig, "a.yaml.gotmpl", configMap("a", "'{{.config.password}}'", "")), withSecret()},
		{"a kind", pkg("manifest.yaml", plain+anyConfig, "a.yaml.gotmpl", "apiVersion: 'a/b/{{.config.password}}'\nkind: '{{.config.password}}'\nmetadata: {name: a}\n"), withSecret()},
		{"a label", object("  labels: {a: '{{.config.password}}'}\n"), withSecret()},
		{"a key of labels", object("  labels: {'{{.config.password}}': a}\n"), withSecret()},
		{"a mode", object("    package-operator.run/collision-protection: '{{.config.password}}'\n"), withSecret()},
		{"a mapping", object("    package-operator.run/condition-map: '{{.config.password}}'\n"), withSecret()},
		{"a policy", object("    package-operator.run/deletion-policy: '{{.config.password}}'\n"), withSecret()},
		{"a duplicate", pkg("manifest.yaml", plain+anyConfig, "a.yaml.gotmpl", secretObject("")+"---\n"+secretObject(""), "b.yaml.gotmpl", configMap("'{{.config.pin | int64}}'", "first", "")), withSecret()},
		{"a patch, value", object(""), withSecret(func(o *Options) {
			o.Patches = []Patch{{Target: PatchTarget{Name: "a"}, Patch: "[{op: test, path: /metadata/name, value: '" + secretValue + "'}]"}}
		})},
		{"a patch, path", object(""), withSecret(func(o *Options) {
			o.Patches = []Patch{{Target: PatchTarget{Name: "a"}, Patch: "[{op: remove, path: '/" + secretValue + "'}]"}}
		})},
		{"a patch, syntax", object(""), withSecret(func(o *Options) {
			o.Patches = []Patch{{Target: PatchTarget{Name: "a"}, Patch: "a: *" + secretValue}}
		})},
		{"a patch that makes an object invalid", object(""), withSecret(func(o *Options) {
			o.Patches = []Patch{{Target: PatchTarget{Name: "a"}, Patch: "metadata: {namespace: x, labels: {a: '" + secretValue + "'}}"}}
		})},
		{"common metadata", object(""), withSecret(func(o *Options) { o.CommonMetadata.Labels = map[string]string{"a": secretValue} })},
		{"a default namespace", object(""), withSecret(cluster, func(o *Options) { o.DefaultNamespace = secretValue })},
		{"the name of the Package", object(""), withSecret(func(o *Options) { o.Package.Metadata.Name = secretValue })},
		{"too many Secrets", object(""), withSecret(func(o *Options) {
			o.Sensitive = append(o.Sensitive, strings.Repeat(secretValue, limits.SensitiveBytes/10))
		})},
	} {
		p, err := Load(context.Background(), test.files, test.opts)
		if err == nil {
			err = p.Warnings.Err()
		}
		if err == nil {
			t.Errorf("%s: neither an error nor a warning", test.reason)
			continue
		}
		checkClean(t, test.reason, err.Error())
	}

	p, err := Load(context.Background(), object("    package-operator.run/expose-secret-values: 'true'\ndata: {'a{{.config.password}}': a, 'a{{.config.password}}': b}\n"), withSecret())
	if err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].String(), "the key stands twice") {
		t.Fatal(err, p)
	}

	checkClean(t, "a warning", p.Warnings.Error())
}

func TestSensitiveValuesInPatches(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+anyConfig, "a.yaml", configMap("a", "first", ""))
	got := lines(t, files, withSecret(func(o *Options) {
		o.Patches = []Patch{{Target: PatchTarget{Name: "a"}, Patch: "data: {p: '" + secretValue + "'}"}}
		o.CommonMetadata.Annotations = map[string]string{"note": secretValue}
	}))

	for _, want := range []string{"data.p: a value that came from a Secret stands here (after spec.patches[0])", "metadata.annotations.note: a value"} {
		require.Contains(t, got, want)
	}

	if _, err := Load(context.Background(), files, withSecret(func(o *Options) {
		o.Patches = []Patch{{Target: PatchTarget{Name: "a"}, Patch: "metadata: {annotations: {" + corev1alpha1.ExposeSecretValuesAnnotation + ": 'true'}}\ndata: {p: '" + secretValue + "'}"}}
	})); err != nil {
		t.Error("the user who installs the package can expose a value, too:", err)
	}
}
