package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/expression"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

func testContext(t testing.TB, config map[string]any) map[string]any {
	t.Helper()
	c, err := Context(
		manifestsv1alpha1.TemplateContextPackage{
			Metadata: manifestsv1alpha1.TemplateContextObjectMeta{Name: "shop", Namespace: "team-a", Annotations: map[string]string{"note": "hello"}},
			Image:    "example.com/shop:v1",
		},
		manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: "v1.36.3"}},
		config, map[string]string{"web": "example.com/web@sha256:1"}, map[string]string{},
	)
	require.NoError(t, err)
	return c
}

func files(pairs ...string) archive.Files {
	out := archive.Files{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = []byte(pairs[i+1])
	}
	return out
}

func render(t testing.TB, f archive.Files, config map[string]any, change ...func(*Input)) (*Output, violation.Violations) {
	t.Helper()
	c := testContext(t, config)
	in := Input{
		Files: f, Context: c, Expressions: expression.New(c), Strict: true,
		PathRule: func(i int) violation.Violation {
			return violation.Violation{Reason: violation.ReasonFilterInvalid, Field: fmt.Sprintf("spec.filter.paths[%d].expression", i)}
		},
	}
	for _, f := range change {
		f(&in)
	}
	return Render(context.Background(), in)
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	config := map[string]any{"replicas": 3, "name": "x", "list": []string{"b", "a"}, "nested": map[string]any{"z": 1, "a": true}, "secret": map[string]any{"k": "aGk=", "n": 1}}
	for _, test := range []struct{ reason, text, want string }{
		{"plain text", "a: b\n", "a: b\n"},
		{"the context", "{{.package.metadata.name}} {{.package.metadata.namespace}} {{.package.image}} {{.images.web}} {{.environment.kubernetes.version}}",
			"shop team-a example.com/shop:v1 example.com/web@sha256:1 v1.36.3"},
		{"labels and annotations are there without being set", "{{len .package.metadata.labels}} {{.package.metadata.annotations.note}}", "0 hello"},
		{"numbers are float64", `{{.config.replicas}} {{kindOf .config.replicas}} {{int .config.replicas}}`, "3 float64 3"},
		{"a guarded key can be absent", `{{if hasKey .config "x"}}y{{end}}{{dig "a" "b" "none" .config}}{{get .config "x"}}`, "none"},
		{"toYAML sorts and has no line end", "{{toYAML .config.nested}}|", "a: true\nz: 1|"},
		{"fromYAML", `{{(fromYAML "a: [1, x]").a}}`, "[1 x]"},
		{"b64decMap", `{{b64decMap .config.secret}}`, "map[k:hi]"},
		{"getFile of a file", `{{getFile "dir/plain.txt"}}`, "plain"},
		{"getFile of a file that is rendered later", `{{getFile "z.txt"}}`, "rendered: z"},
		{"getFile of the template itself", `{{getFile "z.txt.gotmpl"}}`, "{{/* x */}}rendered: z"},
		{"getFileGlob", `{{range $p, $c := getFileGlob "dir/*.txt"}}{{$p}}={{$c}} {{end}}`, "dir/other.txt=other dir/plain.txt=plain "},
		{"include and define in other files", `{{include "greet" "you"}} {{template "greet" "me"}}`, "hello you hello me"},
		{"keys and values are sorted", "{{keys .config.nested}} {{values .config.nested}}", "[a z] [true 1]"},
		{"cel", `{{cel "config.replicas > 2"}}`, "true"},
		{"variables, loops, else", `{{$x := 1}}{{range $i, $e := .config.list}}{{$x = add $x $i}}{{$e}}{{else}}none{{end}}{{$x}}{{range until 3}}{{if eq . 1}}{{continue}}{{end}}{{.}}{{end}}`, "ba202"},
		{"null prints as Go prints it", `{{get .config "absent" | default "d"}}{{ .config.list | first }}`, "db"},
		{"a change of the context ends with the file", `{{$_ := set .config "name" "changed"}}{{.config.name}}`, "changed"},
		{"printf", `{{printf "%05.1f %s %q %v" 3.14159 "a" "b" .config.nested}}`, `003.1 a "b" map[a:true z:1]`},
		{"regular expressions", `{{regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"}} {{regexFindAll "[a-z]" "abc" 2}}`, "-W-xxW- [a b]"},
		{"division by zero and the like are errors of the template, see below", `{{ternary "a" "b" true}} {{semverCompare ">=1.2" "1.3.0"}}`, "a true"},
	} {
		out, problems := render(t, files("a.yaml.gotmpl", test.text, "b.yaml.gotmpl", "{{.config.name}}",
			"_helpers.gotmpl", `{{define "greet"}}hello {{.}}{{end}}{{fail "helpers are not executed"}}`,
			"dir/plain.txt", "plain", "dir/other.txt", "other", "dir/sub/deep.txt", "deep", "z.txt.gotmpl", "{{/* x */}}rendered: z"), config)
		if problems != nil {
			t.Errorf("%s: %v", test.reason, problems)
			continue
		}
		require.Equal(t, test.want, string(out.Files["a.yaml"]), test.reason)
		if string(out.Files["b.yaml"]) != "x" || !out.Rendered["b.yaml"] || out.Rendered["dir/plain.txt"] || out.Files["_helpers"] != nil || out.Files["a.yaml.gotmpl"] != nil {
			t.Errorf("%s: %v", test.reason, out.Files.Paths())
		}
	}
}

func TestPathRules(t *testing.T) {
	t.Parallel()
	f := files("a/x.yaml", "x", "a/b/y.yaml.gotmpl", `{{fail "excluded files are not executed"}}{{define "d"}}from y{{end}}`,
		"z.yaml.gotmpl", `{{include "d" .}}{{getFile "a/x.yaml"}}`)

	rules := func(rules ...manifestsv1alpha1.PackageManifestPath) func(*Input) {
		return func(in *Input) { in.Paths = rules }
	}

	out, problems := render(t, f, nil, rules(
		manifestsv1alpha1.PackageManifestPath{Glob: "a/**", Expression: "false"},
		manifestsv1alpha1.PackageManifestPath{Glob: "**", Expression: "true"}))

	if diff := cmp.Diff(archive.Files{"z.yaml": []byte("from yx")}, out.Files); diff != "" || problems != nil {
		t.Error(diff, problems)
	}

	_, problems = render(t, f, nil, rules(manifestsv1alpha1.PackageManifestPath{Glob: "a/**", Expression: "config.x"}))
	if want := "Filter invalid: spec.filter.paths[0].expression: evaluation failed: no such key: x. Correct the filter."; len(problems) != 1 || problems[0].String() != want {
		t.Error(problems)
	}
}

func TestTemplateErrors(t *testing.T) {
	t.Parallel()
	config := map[string]any{"replicas": 3, "password": "geheim", "nested": map[string]any{}}
	for _, test := range []struct{ name, text, want string }{
		{"syntax", "a: 1\nb: {{ if }}\n", "Template error in a.yaml.gotmpl line 2: missing value for if"},
		{"unknown function", "{{ env `HOME` }}", `line 1: function "env" not defined`},
		{"no clock", "{{ now }}", `function "now" not defined`},
		{"no randomness", "{{ randAlpha 3 }}", `function "randAlpha" not defined`},
		{"injected functions", "{{ lockstepLeave }}", `function "lockstepLeave" not defined`},
		{"missing key", "\n\n{{ .config.replica }}", `line 3: at <.config.replica>: map has no entry for key "replica". Did you mean "replicas"?`},
		{"missing key, no similar name", "{{ .config.zzz }}", `Set it in spec.config, or give it a default in the schema of the manifest.`},
		{"missing key within null", "{{ .config.nested.a.b }}", `map has no entry for key "a". Guard it with hasKey, dig or default.`},
		{"missing key elsewhere", "{{ .environment.proxy }}", `map has no entry for key "proxy". Guard it with`},
		{"fail", `{{ fail "no luck" }}`, "line 1: at <fail \"no luck\">: error calling fail: no luck"},
		{"panic in a function", `{{ div 1 0 }}`, "error calling div: runtime error: integer divide by zero"},
		{"no such file", `{{ getFile "x" }}`, `file not found: "x"`},
		{"own output", `{{ getFile "a.yaml" }}`, `the file "a.yaml" needs its own output`},
		{"no such template", `{{ include "x" . }}`, `no template "x"`},
		{"bad base64", `{{ b64decMap (dict "k" "%") }}`, `the value of "k" is not base64`},
		{"bad cel", `{{ cel "1" }}`, "the expression is of type int, not bool"},
		{"bad regexp", `{{ regexMatch "(" "" }}`, "the regular expression cannot be read"},
		{"address", `{{ printf "%p" .config }}`, "a format prints an address"},
		{"address within", `{{ printf "%d" (list (semver "1.2.3")) }}`, "a value prints an address"},
		{"template in another file", "{{ template `later` . }}", `b.yaml.gotmpl line 1: at <.config.zzz>`},
	} {
		_, problems := render(t, files("a.yaml.gotmpl", test.text, "b.yaml.gotmpl", "{{define `later`}}{{.config.zzz}}{{end}}"), config)
		if len(problems) != 1 || !strings.Contains(problems[0].String(), test.want) || strings.Contains(problems.Error(), "geheim") {
			t.Errorf("%s: %v", test.name, problems)
		}
	}

	_, problems := render(t, files("a.gotmpl", "{{.config.x}}", "b.gotmpl", "{{.config.y}}"), config)
	require.Equal(t, 2, len(problems), "the problems of all files are reported", problems)
}

func TestStrictness(t *testing.T) {
	t.Parallel()
	f := files("a.gotmpl", "{{define `x`}}1{{end}}", "b.gotmpl", "{{define `x`}}2{{end}}{{define `y`}}y{{end}}", "c.gotmpl", "{{define `y`}} {{end}}{{template `x`}}{{template `y`}}", "c", "static")
	_, problems := render(t, f, nil)
	if len(problems) != 1 || !strings.Contains(problems.Error(), `the template "x" is defined in a.gotmpl as well`) {
		t.Error(problems)
	}
	out, problems := render(t, f, nil, func(in *Input) { in.Strict = false })
	if problems != nil || string(out.Files["c"]) != "2y" || len(out.Warnings) != 2 {
		t.Error(problems, out)
	}
}

// Templates that try to exceed their share are refused in bounded time and memory, each with the
// limit that it exceeds.
func TestHostileTemplates(t *testing.T) {
	double := func(start, step string) string {
		return "{{$x := " + start + "}}{{range until 60}}{{$x = " + step + "}}{{end}}{{$x}}"
	}
	tree := "{{define `t0`}}x{{end}}"
	for i := 1; i < 60; i++ {
		tree += fmt.Sprintf("{{define `t%d`}}{{template `t%d` .}}{{template `t%d` .}}{{end}}", i, i-1, i-1)
	}

	value, list := fmt.Sprintf("more than %d bytes", limits.TemplateValueBytes), fmt.Sprintf("the limit is %d", limits.TemplateItems)
	for _, test := range []struct{ name, text, want string }{
		{"recursion", "{{define `a`}}{{template `a` .}}{{end}}{{template `a` .}}", fmt.Sprintf("deeper than %d levels", limits.TemplateDepth)},
		{"recursion by include", "{{define `a`}}{{include `a` .}}{{end}}{{include `a` .}}", fmt.Sprintf("deeper than %d levels", limits.TemplateDepth)},
		{"a tree of calls", tree + "{{template `t59` .}}", fmt.Sprintf("more than %d steps", limits.TemplateSteps)},
		{"a long loop", "{{range 1000000000}}{{end}}", fmt.Sprintf("more than %d steps", limits.TemplateSteps)},
		{"nested loops", "{{range until 10000}}{{range until 10000}}{{range until 10000}}{{end}}{{end}}{{end}}", "more than"},
		{"until", "{{until 1000000000}}", list},
		{"untilStep", "{{untilStep 0 1000000000000 1}}", list},
		{"untilStep backwards", "{{untilStep 1000000000000 -1000000000000 -1}}", list},
		{"untilStep whose counter overflows", "{{untilStep 9223372036854775800 9223372036854775807 5}}", "2 to the power of 60"},
		{"seq whose counter overflows", "{{seq 9223372036854775800 5 9223372036854775806}}", "2 to the power of 60"},
		{"seq", "{{seq 1 1000000000}}", list},
		{"repeat", "{{repeat 1000000000 `xx`}}", value},
		{"indent", "{{indent 1000000000 `x`}}", value},
		{"nindent of many lines", "{{nindent 100000 (repeat 1000 `\n`)}}", value},
		{"replace", "{{replace `x` (repeat 100000 `y`) (repeat 100000 `x`)}}", value},
		{"join", "{{join (repeat 100000 `y`) (until 1000)}}", value},
		{"wrapWith", "{{wrapWith 1 (repeat 10000 `y`) (repeat 10000 `x y `)}}", value},
		{"printf width", "{{printf `%999999999d` 1}}", "width or precision"},
		{"printf width as an argument", "{{printf `%*d` 999999 1}}", "width or precision"},
		{"printf of one argument many times", "{{printf (repeat 1000 `%[1]s`) (repeat 100000 `x`)}}", value},
		{"doubling a text", double("`xxxxxxxx`", "print $x $x"), value},
		{"doubling a list", double("list 1", "concat $x $x"), value},
		{"a list of itself", double("list 1", "list $x $x"), value},
		{"a map of itself", double("dict `a` `b`", "dict `a` $x `b` $x"), value},
		{"a map that contains itself", "{{$d := dict}}{{$_ := set $d `a` $d}}{{$d}}", "contains itself"},
		{"a map that contains itself, by two", "{{$a := dict}}{{$b := dict `a` $a}}{{$_ := set $a `b` $b}}{{toJson $a}}", "contains itself"},
		{"a list that grew afterwards", "{{$a := dict}}{{$l := list}}{{range until 1000}}{{$l = append $l $a}}{{end}}{{$_ := set $a `x` (repeat 1000000 `x`)}}{{$l}}", value},
		{"nested deep", double("list 1", "list $x") + double("list 1", "list $x") + "{{$x := list}}{{range until 200}}{{$x = list $x}}{{end}}", fmt.Sprintf("deeper than %d levels", limits.TemplateValueDepth)},
		{"output", "{{range until 100000}}" + strings.Repeat("x", 1000) + "{{end}}", fmt.Sprintf("the output has more than %d bytes", limits.FileBytes)},
		{"regular expression", "{{regexMatch `((a?){10}){100}` (repeat 1000000 `a`)}}", fmt.Sprintf("the limit of the product is %d", limits.TemplateMatchWork)},
		{"regular expression in the must form", "{{mustRegexMatch `((a?){10}){100}` (repeat 1000000 `a`)}}", fmt.Sprintf("the limit of the product is %d", limits.TemplateMatchWork)},
		{"long pattern", "{{regexMatch (repeat 10000 `a`) `a`}}", fmt.Sprintf("the limit is %d", limits.TemplatePatternBytes)},
		{"replacement", "{{regexReplaceAll `a` (repeat 100000 `a`) (repeat 100000 `b`)}}", value},
		{"split", "{{splitList `` (repeat 1000000 `a`)}}", list},
		{"uniq", "{{uniq (until 90000)}}", "a list of 90000 elements to compare with 90000 values"},
		{"without", "{{without (until 90000)" + strings.Repeat(" 1", 20_000) + "}}", "a list of 90000 elements to compare with 20000 values"},
		{"printf width for each element", "{{printf `%9999d` (until 90000)}}", value},
		{"printf width for each key and value", "{{$d := dict}}{{range until 1000}}{{$_ := set $d (toString .) .}}{{end}}{{printf `%-9999v` $d}}", value},
		{"many lines in the depth", "{{$x := repeat 500000 `a\n`}}{{range until 90}}{{$x = dict `a` $x}}{{end}}{{toYAML $x}}", value},
		{"many values in the depth", "{{$x := until 90000}}{{range until 40}}{{$x = list $x}}{{end}}{{toPrettyJson $x}}", value},
		{"many variables", strings.Repeat("{{$x := 1}}", 100_000) + strings.Repeat("{{$x}}", 100_000), fmt.Sprintf("more than %d variables", limits.TemplateVariables)},
		{"a long version", "{{semverCompare `^1` (repeat 4000000 `1`)}}", fmt.Sprintf("the limit is %d", limits.TemplatePatternBytes)},
		{"fromJson", "{{fromJson (repeat 2000000 `[`)}}", "to parse"},
		{"fromYAML", "{{fromYAML (repeat 1000000 `[a,`)}}", fmt.Sprintf("the limit is %d", limits.DocumentMarks)},
		{"nested blocks", strings.Repeat("{{if true}}", 10_000) + strings.Repeat("{{end}}", 10_000), fmt.Sprintf("nest deeper than %d", limits.TemplateNesting)},
		{"nested blocks behind a dash and a tab", strings.Repeat("{{-\tif true}}", 10_000) + strings.Repeat("{{-\nend}}", 10_000), fmt.Sprintf("nest deeper than %d", limits.TemplateNesting)},
		{"nested blocks behind a quote in a comment", "{{-\n/* \" */ -}}" + strings.Repeat("{{if true}}", 10_000) + strings.Repeat("{{end}}", 10_000), fmt.Sprintf("nest deeper than %d", limits.TemplateNesting)},
		{"else if", "{{if true}}" + strings.Repeat("{{else if true}}", 10_000) + "{{end}}", fmt.Sprintf("nest deeper than %d", limits.TemplateNesting)},
		{"parentheses", "{{" + strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 10_000) + "}}", fmt.Sprintf("nest deeper than %d", limits.TemplateNesting)},
		{"parentheses behind a quote", "{{ `}}` | print '\\'' \"}}{{end}}\\\"\" " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + "}}", fmt.Sprintf("nest deeper than %d", limits.TemplateNesting)},
		{"much code", strings.Repeat("{{1}}", 1_000_000), fmt.Sprintf("more than %d bytes between", limits.TemplateCodeBytes)},
		{"many arguments", "{{print" + strings.Repeat(" 1", 2_000_000) + "}}", fmt.Sprintf("more than %d bytes between", limits.TemplateCodeBytes)},
		{"much work", "{{$x := repeat 4000000 `x`}}{{range until 100000}}{{$_ := upper $x}}{{end}}", "more than"},
		{"a large file", "{{getFile `large`}}", fmt.Sprintf("the limit for templates is %d", limits.TemplateValueBytes)},
		{"large files", "{{getFileGlob `**`}}", value},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := files("a.gotmpl", test.text, "large", strings.Repeat("x", limits.TemplateValueBytes+1))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, problems := render(t, f, nil)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if len(problems) != 1 || problems[0].Reason != violation.ReasonLimit || !strings.Contains(problems[0].String(), test.want) {
				t.Errorf("got %.500s, want %q", problems.Error(), test.want)
			}
			if took > 30*time.Second || after.Sys > before.Sys+1<<30 {
				t.Errorf("took %v, %d MiB more", took, (after.Sys-before.Sys)>>20)
			}
			t.Logf("took %v", took)
		})
	}
}

// Each file is within its limit, but all of them together are not.
func TestRenderedFilesAreBoundedTogether(t *testing.T) {
	const size = limits.FileBytes / 2
	text := fmt.Sprintf("{{range until %d}}%s{{end}}", size>>12, strings.Repeat("x", 1<<12))
	all := files("a.gotmpl", text)
	for i := range limits.PackageBytes / size {
		all[fmt.Sprintf("b%d.gotmpl", i)] = []byte(text)
	}
	_, problems := render(t, all, nil)
	want := fmt.Sprintf("the rendered files have more than %d bytes", limits.PackageBytes)
	if len(problems) != 1 || problems[0].Reason != violation.ReasonLimit || !strings.Contains(problems[0].String(), want) {
		t.Errorf("got %.500s, want %q", problems.Error(), want)
	}
}

func TestRenderHonoursContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, problems := Render(ctx, Input{Files: files("a.gotmpl", "{{range until 100}}x{{end}}"), Context: map[string]any{}})
	if len(problems) != 1 || !strings.Contains(problems.Error(), "canceled") {
		t.Error(problems)
	}
}

func TestSprigNames(t *testing.T) {
	t.Parallel()
	all := sprig.TxtFuncMap()
	for _, name := range sprigNames {
		if all[name] == nil {
			t.Errorf("sprig has no %s", name)
		}
	}

	functions := (&renderer{}).functions()
	for name := range passing {
		if functions[name] == nil {
			t.Errorf("no function %s", name)
		}
	}

	for name := range checks {
		if functions[name] == nil {
			t.Errorf("no function %s", name)
		}
	}

	for _, name := range strings.Fields("env expandenv now date randInt uuidv4 genCA derivePassword getHostByName osBase htmlDate lookup") {
		if functions[name] != nil {
			t.Errorf("%s is not for templates", name)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.yaml", "a.yaml", true}, {"*.yaml", "b/a.yaml", false}, {"**.yaml", "b/a.yaml", true}, {"b/**", "b/c/d", true},
		{"?.txt", "a.txt", true}, {"?.txt", "/.txt", false}, {"[a-c].txt", "b.txt", true}, {"[!a-c].txt", "b.txt", false},
		{"[!a-c].txt", "d.txt", true}, {"{a,b*}.txt", "bcd.txt", true}, {"{a,b*}.txt", "c.txt", false}, {`\*.txt`, "*.txt", true},
		{`\*.txt`, "a.txt", false}, {"a.b", "axb", false}, {"ü*", "übung", true}, {"a,b", "a,b", true},
	} {
		g, err := compileGlob(test.pattern)
		if err != nil || g.MatchString(test.path) != test.want {
			t.Errorf("%s on %s: %v", test.pattern, test.path, err)
		}
	}

	for _, bad := range []string{"[", "[]", "{a", "[z-a]", strings.Repeat("x", limits.TemplatePatternBytes+1)} {
		if _, err := compileGlob(bad); err == nil {
			t.Errorf("%.20s is accepted", bad)
		}
	}
}

// The same input gives the same output, byte for byte.
func TestRenderIsDeterministic(t *testing.T) {
	t.Parallel()
	snippets := []string{
		"{{toYAML .config}}", "{{.config}}", "{{range $k, $v := .config}}{{$k}}{{$v}}{{end}}", "{{keys .config}}", "{{values .config}}",
		"{{getFile `f0`}}", "{{getFileGlob `*`}}", "{{toJson (merge (dict `a` 1) .config)}}", "{{omit .config `a`}}", "{{pick .config `b` `c`}}",
		"{{$_ := set .config `z` 1}}", "{{include `t` .}}", "{{define `t`}}t{{end}}", "{{pluck `a` .config (dict `a` 2)}}", "{{uniq (list 1 2 1)}}", "text\n",
	}

	rapid.Check(t, func(rt *rapid.T) {
		f := archive.Files{"t.gotmpl": []byte("{{define `t`}}{{.config}}{{end}}")}
		for i := range rapid.IntRange(1, 4).Draw(rt, "files") {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(snippets), 1, 6).Draw(rt, "parts"), "")
			f[fmt.Sprintf("f%d.gotmpl", i)] = []byte(text)
		}
		config := map[string]any{}
		for _, k := range rapid.SliceOfDistinct(rapid.StringMatching(`[a-f]`), func(s string) string { return s }).Draw(rt, "keys") {
			config[k] = rapid.IntRange(0, 9).Draw(rt, "value")
		}
		lenient := func(in *Input) { in.Strict = false }
		first, problems := render(t, f, config, lenient)
		for range 3 {
			again, againProblems := render(t, maps.Clone(f), config, lenient)
			if diff := cmp.Diff(problems.Sorted(), againProblems.Sorted()); diff != "" {
				rt.Fatal(diff)
			}
			if problems == nil && !cmp.Equal(first.Files, again.Files) {
				rt.Fatal(cmp.Diff(first.Files, again.Files))
			}
		}
	})
}

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
