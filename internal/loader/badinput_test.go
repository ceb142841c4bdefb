package loader

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

// badInput is one row of the checklist of bad input (docs/development/invariants.md).
type badInput struct {
	name  string
	files Files
	opts  Options
	// want is part of the message; empty if the input is read.
	want string
	// reads is part of the objects, or of the warnings, if the input is read.
	reads string
}

// TestBadInput covers the rows C and D along with TestManifestProblems, TestObjectProblems and the
// tests of packages document and render; package archive has A, and package registry has B. Each is
// refused with a reason and, if it is large, with the limit. Otherwise the input means the same as
// for kubectl. None takes much memory.
func TestBadInput(t *testing.T) {
	var rows []badInput
	for _, part := range [][]badInput{badDocuments(), badManifests(), badNames(), badSchemas(), badObjects(), badTemplates(), badReach(), badExpressions()} {
		rows = append(rows, part...)
	}

	for _, test := range rows {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, err := Load(context.Background(), test.files, test.opts)
			runtime.ReadMemStats(&after)
			if after.HeapSys > before.HeapSys+(600<<20) {
				t.Errorf("the heap grew by %d MiB", (after.HeapSys-before.HeapSys)>>20)
			}
			if test.want != "" {
				var vs violation.Violations
				if !errors.As(err, &vs) || !strings.Contains(vs.Error(), test.want) {
					t.Errorf("got %.500v\nwant %s", err, test.want)
				}
				return
			}
			require.NoError(t, err)
			text := p.Warnings.Error()
			for _, phase := range p.Phases {
				for _, o := range phase.Objects {
					text += "\n" + string(o.Object.Raw)
				}
			}
			require.Contains(t, text, test.reads)
		})
	}
}

// TestPhaseWithoutName checks that a phase without a name is an error of the manifest, and not of
// each object in that phase. If it is not an error, the objects are refused.
func TestPhaseWithoutName(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		manifest, phases, want, not string
	}{
		"lenient":              {plain, "[{title: first}, {name: second}]", `phase "first". The manifest has: second.`, "spec.phases"},
		"lenient, no name":     {plain, "[{title: first}]", `phase "first"`, "spec.phases"},
		"with a spec.version":  {plain + "  version: 1.0.0\n", "[{title: first}, {name: second}]", "spec.phases[0].title", `phase "first"`},
		"no phases":            {plain, "[]", "spec.phases: Required value", `phase "first"`},
		"only dependencies":    {plain + "  dependencies: [{name: db, package: {name: db.example.com}}]\n", "[]", `phase "first". Add it to the manifest, which names no phases.`, "Required"},
		"of all, with version": {plain + "  version: 1.0.0\n", "[{title: first}]", "spec.phases[0].title", `phase "first"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := strings.Replace(tc.manifest, "[{name: first}, {name: second}]", tc.phases, 1)
			_, err := Load(t.Context(), pkg("manifest.yaml", manifest, "a.yaml", configMap("a", "first", "")), namespaced())
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), tc.not) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// withData is a package with one ConfigMap that has this data.
func withData(data string) Files {
	return pkg("manifest.yaml", plain+anyConfig, "a.yaml", configMap("a", "first", data))
}

func withTemplate(text string) Files {
	return pkg("manifest.yaml", plain+anyConfig, "a.yaml.gotmpl", configMap("a", "first", "data: {x: '"+text+"'}\n"))
}

func badDocuments() []badInput {
	bomb := "data:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += fmt.Sprintf("  %c: &%c [*%c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c, *%[3]c]\n", c, c, c-1)
	}

	many := strings.Repeat("---\n"+configMap("a", "first", ""), limits.DocumentsPerFile+1)
	return []badInput{
		{"C1 alias bomb", withData(bomb), namespaced(), fmt.Sprintf("more than %d values, aliases expanded", limits.DocumentNodes), ""},
		{"C1 deep nesting", withData("data: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)), namespaced(), "Invalid YAML in a.yaml idx 0", ""},
		{"C1 deep nesting below the parser's limit", withData("data: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), namespaced(), fmt.Sprintf("nests deeper than %d levels", limits.DocumentDepth), ""},
		{"C1 10,000 documents and one", pkg("manifest.yaml", plain, "a.yaml", many), namespaced(), fmt.Sprintf("the limit is %d", limits.DocumentsPerFile), ""},
		{"C1 byte order mark", pkg("manifest.yaml", "\ufeff"+plain, "a.yaml", "\ufeff"+configMap("a", "first", "")), namespaced(), "", `"name":"a"`},
		{"C1 tabs", withData("data:\n\ta: b\n"), namespaced(), "found character that cannot start any token", ""},
		{"C1 CRLF", pkg("manifest.yaml", strings.ReplaceAll(plain, "\n", "\r\n"), "a.yaml", strings.ReplaceAll(configMap("a", "first", "data: {k: v}\n"), "\n", "\r\n")), namespaced(), "", `"data":{"k":"v"}`},
		{"C1 tag !!binary", withData("data: {k: !!binary aGFsbG8=}"), namespaced(), "", `"k":"hallo"`},
		{"C1 tag !!binary that is not a text", withData("data: {k: !!binary /w==}"), namespaced(), "data.k: the value is not a valid binary", ""},
		{"C1 custom tag", versioned(withData("data: {k: !python/object x}")), namespaced(), "data.k: the tag !python/object", ""},
		{"C1 booleans of YAML 1.1", withData("data: {a: yes, b: Off, c: 'no'}"), namespaced(), "", `"data":{"a":true,"b":false,"c":"no"}`},
		{"C1 octals of YAML 1.1", withData("data: {a: 0644, b: 0o644, c: '0644'}"), namespaced(), "", `"data":{"a":420,"b":420,"c":"0644"}`},
		{"C1 NaN", withData("data: {k: .nan}"), namespaced(), "data.k: .nan has no form in JSON", ""},
		{"C1 infinity", withData("data: {k: -.inf}"), namespaced(), "data.k: -.inf has no form in JSON", ""},
		{"C1 numbers above 2^53", withData("data: {k: 9007199254740993, l: -9223372036854775808}"), namespaced(), "", `"data":{"k":9007199254740993,"l":-9223372036854775808}`},
	}
}

func badManifests() []badInput {
	replace := func(old, with string) Files {
		return pkg("manifest.yaml", strings.Replace(plain, old, with, 1), "a.yaml", configMap("a", "first", ""))
	}
	many := pkg("manifest.yaml", plain)
	for f := range 11 {
		many[fmt.Sprintf("%d.yaml", f)] = []byte(strings.Repeat("---\n"+configMap("a", "first", ""), limits.DocumentsPerFile-1))
	}

	return []badInput{
		{"C2 unknown version of the manifest", replace("v1alpha1", "v9"), namespaced(), `unknown version "v9", supported versions: v1alpha1`, ""},
		{"C2 unknown kind of manifest", replace("kind: PackageManifest", "kind: Package"), namespaced(), "unknown GVK in manifest.yaml", ""},
		{"C2 no phases", replace("[{name: first}, {name: second}]", "[]"), namespaced(), "spec.phases: Required value", ""},
		{"C2 phase twice", replace("second", "first"), namespaced(), `spec.phases[1].name: Duplicate value: "first"`, ""},
		{"C2 object in two phases", pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", ""), "b.yaml", configMap("a", "second", "")), namespaced(), "Duplicate Object in b.yaml", ""},
		{"C2 no objects", pkg("manifest.yaml", plain), namespaced(), "", ""},
		{"C2 100,000 objects", many, namespaced(), fmt.Sprintf("more than %d objects", limits.PackageObjects), ""},
		{"C2 no files", Files{}, namespaced(), "Package image contains no files. Might be corrupted.", ""},
	}
}

func badNames() []badInput {
	manifest := func(name string) Files {
		return pkg("manifest.yaml", strings.Replace(plain, "name: shop", "name: "+name, 1))
	}
	version := func(v string) Files { return pkg("manifest.yaml", plain+"  version: "+v+"\n") }
	object := func(name string) Files { return pkg("manifest.yaml", plain, "a.yaml", configMap(name, "first", "")) }
	return []badInput{
		{"C3 newline in a name", manifest(`"a\nb"`), namespaced(), "metadata.name: control characters are not allowed", ""},
		{"C3 bidi control in a name", manifest(`"a\u202eb"`), namespaced(), "metadata.name: control characters are not allowed", ""},
		{"C3 newline in an object's name", object(`"a\nb"`), namespaced(), "metadata.name: control characters are not allowed", ""},
		{"C3 path in a phase", pkg("manifest.yaml", strings.Replace(plain, "name: first", `name: "../../first"`, 1), "a.yaml", configMap("a", "../../first", "")), namespaced(), "", `"name":"a"`},
		{"C3 path in the component", pkg("manifest.yaml", plain+"  components: {}\n"), namespaced(func(o *Options) { o.Component = "../../etc" }), "Invalid component path", ""},
		{"C3 leading dash in a test case", pkg("manifest.yaml", plain+"test: {template: [{name: '-rf /'}]}\n"), namespaced(), "cannot be the name of a folder", ""},
		{"C3 no semantic version", version("1.2"), namespaced(), `spec.version: "1.2" is not a semantic version`, ""},
		{"C3 prefix v", version("v1.2.3"), namespaced(), `spec.version: "v1.2.3" is not a semantic version. Write it as 1.2.3`, ""},
		{"C3 build metadata", version("1.2.3+build"), namespaced(), "", ""},
		{"C3 newline in a version", version(`"1.2.3\n"`), namespaced(), "is not a semantic version", ""},
		{"C3 name of 1,000 characters", manifest(strings.Repeat("x", 1000)), namespaced(), "metadata.name: 1000 characters; the limit is 253", ""},
	}
}

func badSchemas() []badInput {
	schema := func(text string) Files {
		return pkg("manifest.yaml", plain+"  config: {openAPIV3Schema: {type: object, properties: {a: "+text+"}}}\n")
	}
	properties := make([]string, 25_000)
	for i := range properties {
		properties[i] = fmt.Sprintf("p%d: {type: string}", i)
	}

	return []badInput{
		{"C4 $ref to itself", schema("{$ref: '#'}"), namespaced(), "spec.config.openAPIV3Schema.properties[a].$ref", ""},
		{"C4 $ref by http", schema("{$ref: 'http://169.254.169.254/latest'}"), namespaced(), "properties[a].$ref", ""},
		{"C4 $ref to a file", schema("{$ref: 'file:///etc/passwd'}"), namespaced(), "properties[a].$ref", ""},
		{"C4 $ref to a device", schema("{$ref: '/dev/zero'}"), namespaced(), "properties[a].$ref", ""},
		{"C4 catastrophic pattern", schema("{type: string, pattern: '^(a+)+$'}"), namespaced(withConfig(`{"a":"` + strings.Repeat("a", 50_000) + `!"}`)), "spec.config.a", ""},
		{"C4 huge pattern", schema("{type: string, pattern: '" + strings.Repeat("(a{1,500}b{1,500})", 1000) + "'}"), namespaced(), "spec.config.openAPIV3Schema", ""},
		{"C4 default that violates the schema", schema("{type: integer, default: x}"), namespaced(), "properties[a].default", ""},
		{"C4 10,000 properties", schema("{type: object, properties: {" + strings.Join(properties[:10_000], ", ") + "}}"), namespaced(), "", ""},
		{"C4 25,000 properties", schema("{type: object, properties: {" + strings.Join(properties, ", ") + "}}"), namespaced(), fmt.Sprintf("more than %d schemas", limits.SchemaNodes), ""},
		{"C4 rule that costs too much", schema("{type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(x, self.all(y, self.all(z, x == y || y == z)))'}]}"), namespaced(), "properties[a].x-kubernetes-validations[0].rule", ""},
		{"C4 large config", schema("{type: string}"), namespaced(withConfig(`{"a":"` + strings.Repeat("x", limits.ConfigBytes) + `"}`)), fmt.Sprintf("the limit is %d", limits.ConfigBytes), ""},
	}
}

// versioned returns a package whose manifest states its version.
func versioned(files Files) Files {
	files["manifest.yaml"] = []byte(stated(string(files["manifest.yaml"])))
	return files
}

func badObjects() []badInput {
	meta := func(more string) Files { return withData("  " + more + "\n") }
	other := func(apiVersion, kind string) Files {
		return pkg("manifest.yaml", plain, "a.yaml", strings.Replace(configMap("a", "first", ""), "apiVersion: v1\nkind: ConfigMap", "apiVersion: "+apiVersion+"\nkind: "+kind, 1))
	}

	return []badInput{
		{"C5 no apiVersion", other("''", "ConfigMap"), namespaced(), "GroupVersionKind not set", ""},
		{"C5 no kind", other("v1", "''"), namespaced(), "GroupVersionKind not set", ""},
		{"C5 no name", pkg("manifest.yaml", plain, "a.yaml", configMap("", "first", "")), namespaced(), "the object has no name", ""},
		{"C5 list", pkg("manifest.yaml", plain, "a.yaml", "apiVersion: v1\nkind: ConfigMapList\nmetadata: {name: a}\nitems: [{apiVersion: v1}]\n"), namespaced(), "a list cannot be an object of a package", ""},
		{"C5 generateName", meta("generateName: x"), namespaced(), "metadata.generateName", ""},
		{"C5 status", versioned(withData("status: {ready: true}")), namespaced(), "status: a package must not set it", ""},
		{"C5 managedFields", meta("managedFields: [{manager: x}]"), namespaced(), "metadata.managedFields: a package must not set it", ""},
		{"C5 uid", meta("uid: x"), namespaced(), "metadata.uid: a package must not set it", ""},
		{"C5 resourceVersion", meta("resourceVersion: '1'"), namespaced(), "metadata.resourceVersion: a package must not set it", ""},
		{"C5 ownerReferences", meta("ownerReferences: [{name: x}]"), namespaced(), "metadata.ownerReferences: a package must not set it", ""},
		{"C5 deletionTimestamp", versioned(meta("deletionTimestamp: '2026-01-01T00:00:00Z'")), namespaced(), "metadata.deletionTimestamp: a package must not set it", ""},
		{"C5 another namespace", meta("namespace: kube-system"), namespaced(), `the object is in the namespace "kube-system", the Package in "team-a"`, ""},
		{"C5 cluster kind in a Package", other("rbac.authorization.k8s.io/v1", "ClusterRole"), namespaced(), "ClusterRole is cluster-scoped, and a Package may only bring objects of its own namespace", ""},
		{"C5 our labels", versioned(meta("labels: {package-operator.run/cache: 'True'}")), namespaced(), "metadata.labels[package-operator.run/cache]: a package must not set it", ""},
	}
}

func badTemplates() []badInput {
	return []badInput{
		{"D1 two files that need each other", pkg("manifest.yaml", plain, "a.yaml.gotmpl", "{{getFile `b.yaml`}}", "b.yaml.gotmpl", "{{getFile `a.yaml`}}"), namespaced(), "needs its own output", ""},
		{"D1 function that panics", withTemplate("{{div 1 0}}"), namespaced(), "error calling div: runtime error: integer divide by zero", ""},
		{"D1 nil", withTemplate("{{(get .config `none`).x.y}}"), namespaced(), "Template error in a.yaml.gotmpl line 7", ""},
		{"D1 missing key", withTemplate("{{.config.none}}"), namespaced(), `map has no entry for key "none"`, ""},
		{"D1 output that depends on the order of maps", withTemplate("{{range $k, $v := .config}}{{$k}}{{end}} {{keys .config}} {{values .config}}"), namespaced(withConfig(`{"d":1,"c":2,"b":3,"a":4}`)), "", "abcd [a b c d] [4 3 2 1]"},
		{"D1 address", withTemplate("{{printf `%p` .config}}"), namespaced(), "a format prints an address", ""},
	}
}

func badReach() []badInput {
	var rows []badInput
	for _, call := range []string{
		"env `HOME`", "expandenv `$HOME`", "now", "date `2006` 1", "randAlpha 8", "uuidv4", "genPrivateKey `rsa`", "getHostByName `localhost`",
		"osBase `/a`", "lookup `v1` `Secret` `` ``", "htpasswd `a` `b`", "readFile `/etc/passwd`",
	} {
		name, _, _ := strings.Cut(call, " ")
		rows = append(rows, badInput{"D2 function " + name, withTemplate("{{" + call + "}}"), namespaced(), fmt.Sprintf("function %q not defined", name), ""})
	}

	return append(rows,
		badInput{"D2 file outside of the package", withTemplate("{{getFile `../../etc/passwd`}}"), namespaced(), `file not found: "../../etc/passwd"`, ""},
		badInput{"D2 absolute file", withTemplate("{{getFile `/etc/passwd`}}"), namespaced(), `file not found: "/etc/passwd"`, ""},
		badInput{"D2 glob outside of the package", withTemplate("{{len (getFileGlob `/etc/**`)}}{{len (getFileGlob `../**`)}}"), namespaced(), "", `"x":"00"`},
		badInput{"D2 template text in the config", withTemplate("{{.config.text}}"), namespaced(withConfig(`{"text":"{{fail 1}}{{.config}}"}`)), "", `"x":"{{fail 1}}{{.config}}"`},
		badInput{"D2 template text in the config, by define", withTemplate("{{include .config.text .}}"), namespaced(withConfig(`{"text":"{{fail 1}}"}`)), "no template", ""},
		badInput{"D2 secret in a name", pkg("manifest.yaml", plain+anyConfig, "a.yaml.gotmpl", configMap("a-{{.config.pin | int64}}", "first", "")), withSecret(), "metadata.name: a value that came from a Secret stands here", ""},
	)
}

func badExpressions() []badInput {
	condition := func(text string) Files {
		return pkg("manifest.yaml", plain+anyConfig+"  filter: {conditions: [{name: a, expression: "+text+"}]}\n")
	}

	probe := func(text string) Files {
		return pkg("manifest.yaml", plain+"  availabilityProbes: [{selector: {kind: {group: '', kind: ConfigMap}}, probes: ["+text+"]}]\n")
	}
	list := "[" + strings.Repeat("1,", 99) + "1]"
	return []badInput{
		{"D3 nested comprehensions", condition(`"` + strings.Repeat(list+".all(x, ", 6) + "true" + strings.Repeat(")", 6) + `"`), namespaced(), "cost limit exceeded", ""},
		{"D3 search of a list that was doubled 31 times", condition("'1 in [[0]]" + strings.Repeat(".map(y, y + y)", 31) + "[0]'"), namespaced(), fmt.Sprintf("builds a list or map of more than %d values", limits.ExpressionValues), ""},
		{"D3 types that nest", condition("'[0]" + strings.Repeat(".map(y, [y])", 100) + " == []'"), namespaced(), fmt.Sprintf("more than %d macros", limits.ExpressionMacros), ""},
		{"D3 rule of a schema that doubles", pkg("manifest.yaml", plain+"  config: {openAPIV3Schema: {type: object, x-kubernetes-validations: [{rule: '1 in [[0]]"+strings.Repeat(".map(y, y + y)", 31)+"[0]'}]}}\n"), namespaced(), fmt.Sprintf("may have more than %d values", limits.SchemaRuleValues), ""},
		{"D3 probe whose types nest", probe("{cel: {rule: '[0]" + strings.Repeat(".map(y, [y])", 100) + " == []', message: m}}"), namespaced(), fmt.Sprintf("more than %d macros", limits.ExpressionMacros), ""},
		{"D3 huge literal", condition("'\"" + strings.Repeat("x", limits.ExpressionBytes) + "\" == config.a'"), namespaced(), fmt.Sprintf("the limit is %d", limits.ExpressionBytes), ""},
		{"D3 unbounded matches", condition(`'config.text.matches("((a?){20}){20}b")'`), namespaced(withConfig(`{"text":"` + strings.Repeat("a", 150_000) + `"}`)), fmt.Sprintf("the limit of the product is %d", limits.TemplateMatchWork), ""},
		{"D3 huge program of matches", condition(`'config.text.matches("` + strings.Repeat("(a?){1000}|", 300) + `b")'`), namespaced(withConfig(`{"text":"` + strings.Repeat("a", 150_000) + `"}`)), "actual cost limit exceeded", ""},
		{"D3 type error when it runs", condition("'config.text > 1'"), namespaced(withConfig(`{"text":"x"}`)), "evaluation failed: no such overload", ""},
		{"D3 missing key", condition("config.none"), namespaced(), "evaluation failed: no such key: none", ""},
		{"D3 no bool", condition("'1'"), namespaced(), "the expression is of type int, not bool", ""},
		{"D3 deep parentheses", condition("'" + strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000) + "'"), namespaced(), "Filter invalid in manifest.yaml", ""},
		{"D3 probe with a huge rule", probe("{cel: {rule: '" + strings.Repeat("true || ", 3000) + "true', message: m}}"), namespaced(), "Availability probe invalid", ""},
		{"D3 probe that loops", probe("{fieldsEqual: {fieldA: '[range(1000000000)]', fieldB: .a}}"), namespaced(), "Availability probe invalid", ""},
	}
}
