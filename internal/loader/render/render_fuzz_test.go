package render

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/expression"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/fuzzing"
)

// templateSeeds are templates of every kind of action and of most functions.
var templateSeeds = []string{
	"{{if `}}` }}{{/* {{ */}}{{- end -}}", "{{ range $k, $v := .config }}{{ $k }}: {{ $v | quote }}\n{{ else }}none{{ end }}",
	"{{ define `a` }}{{ .x | default 1 }}{{ end }}{{ include `a` (dict `x` 2) | nindent 4 }}", "{{ template `h` . }}", "{{ block `b` . }}{{ . }}{{ end }}",
	"{{ with .package.metadata }}{{ .name }}-{{ .namespace }}{{ end }}{{ .images.web }}", "{{ .missing }}", "{{ .config.missing.deep }}", "{{ break }}", "{{ range until 3 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ . }}{{ end }}",
	"{{ toYAML .config }}{{ fromYAML `a: [1, {b: c}]` | toJson }}", "{{ getFile `h.txt` }}{{ getFileGlob `**` | keys }}", "{{ getFile `a.yaml` }}", "{{ cel `config.replicas > 1 && has(config.name)` }}",
	"{{ b64decMap (dict `a` (b64enc `x`)) }}", "{{ $x := list 1 2 3 }}{{ $x = append $x 4 }}{{ slice $x 1 3 }}{{ chunk 2 $x }}{{ dig `a` `b` `c` (dict) }}",
	"{{ regexReplaceAll `a(b*)c` `abbc` `${1}` }}{{ regexSplit `,` `a,b` -1 }}", "{{ printf `%5.2f %q %v %T` 1.5 `x` .config .images }}", "{{ repeat 3 `ab` | indent 2 | trunc 5 | wrap 2 }}",
	"{{ semverCompare `>=1.29` .environment.kubernetes.version }}", "{{ urlParse `https://u:p@h:1/x?q#f` }}{{ urlJoin (dict `scheme` `s` `host` `h`) }}", "{{ mustRegexFindAll `[` `x` -1 }}", "{{ fail `no` }}",
	"{{-\tif 1}}{{-\n/* \" */ -}}x{{-\r\nend}}", "{{ printf `%99d|%-9.3v` (list 1 2) (dict `a` 1) }}", "{{ untilStep 9223372036854775800 9223372036854775807 5 }}", "{{ without (list 1 2 3) 2 | uniq }}",
	"{{ $d := dict }}{{ $_ := set $d `d` $d }}{{ $d }}", "{{ seq 1 3 }}{{ untilStep 0 10 3 }}{{ max 1 2 }}{{ div 1 0 }}",
	"{{ merge (dict `a` 1) .config | toPrettyJson }}{{ omit .config `name` }}{{ values .config }}{{ sortAlpha (list `b` `a`) | join `,` }}",
	"{{- /* c */ -}} {{- $a := 1 -}} {{- if and $a (not false) (or 0 nil) -}} y {{- else if lt 1 2 -}} z {{- end -}}", "{{ index .config `name` }}{{ len .config }}{{ call .x }}{{ html `<` }}{{ js `'` }}{{ urlquery ` ` }}",
}

// fuzzInput is a package of one template, a helper and a text.
func fuzzInput(c map[string]any, text, helper, rule string) Input {
	in := Input{
		Files:       archive.Files{"a.yaml.gotmpl": []byte(text), "_h.gotmpl": []byte(helper), "h.txt": []byte("text of a file")},
		Context:     c,
		Expressions: expression.New(c),
		PathRule:    func(int) violation.Violation { return violation.Violation{Reason: violation.ReasonFilterInvalid} },
	}
	if rule != "" {
		in.Paths = []manifestsv1alpha1.PackageManifestPath{{Glob: rule, Expression: "config.replicas > 2"}}
	}
	return in
}

// FuzzRender checks that any template either renders within the limits or is refused with a reason.
// Two attempts give the same bytes. A template cannot read anything of the process, and does not
// modify its input.
//
// Code: render.go, scan.go, tree.go, guard.go, measure.go, functions.go, glob.go, context.go
func FuzzRender(f *testing.F) {
	fuzzing.SetCanary(f)
	for _, text := range fuzzing.Examples(f, ".gotmpl") {
		f.Add(text, "{{ define `h` }}helper{{ end }}", "")
	}

	for _, text := range templateSeeds {
		f.Add(text, "{{ define `h` }}helper {{ . }}{{ end }}", "**/a.*")
	}

	c := testContext(f, map[string]any{"replicas": 2, "name": "shop", "list": []any{1, "a", nil}})
	unchanged := runtime.DeepCopyJSON(c)
	f.Fuzz(func(t *testing.T, text, helper, rule string) {
		if len(text)+len(helper)+len(rule) > 4<<10 {
			return
		}
		ctx, cancel := fuzzing.Context(t)
		defer cancel()
		first, problems := renderOnce(ctx, t, fuzzInput(c, text, helper, rule))
		if ctx.Err() != nil || len(text)%4 != 0 {
			return // a second rendering takes as long, so only some inputs get it
		}
		again, problemsAgain := renderOnce(ctx, t, fuzzInput(c, text, helper, rule))
		if ctx.Err() != nil {
			return
		}
		if !reflect.DeepEqual(unchanged, any(c)) {
			t.Fatalf("rendering changed its context: %v", c)
		}
		if !reflect.DeepEqual(problems.Sorted(), problemsAgain.Sorted()) {
			t.Fatalf("%v, then %v", problems, problemsAgain)
		}
		if len(problems) == 0 && !maps.EqualFunc(first.Files, again.Files, bytes.Equal) {
			t.Fatalf("%q, then %q", first.Files, again.Files)
		}
	})
}

func renderOnce(ctx context.Context, t *testing.T, in Input) (*Output, violation.Violations) {
	t.Helper()
	out, problems := Render(ctx, in)
	if ctx.Err() != nil {
		return nil, nil
	}

	fuzzing.CheckViolations(t, problems)
	if len(problems) > 0 {
		return out, problems
	}

	fuzzing.CheckViolations(t, out.Warnings)
	total := 0
	for p, data := range out.Files {
		total += len(data)
		if p != "a.yaml" && p != "h.txt" || len(data) > limits.FileBytes {
			t.Fatalf("%q of %d bytes", p, len(data))
		}
		if bytes.Contains(data, []byte(fuzzing.Canary)) {
			t.Fatalf("the environment of the process is in %q", data)
		}
	}

	if total > limits.PackageBytes {
		t.Fatalf("%d bytes", total)
	}

	return out, nil
}

// FuzzGlob checks that any accepted glob becomes a regular expression that matches whole paths.
// Without special characters, it matches exactly itself.
//
// Code: glob.go
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"**/*.yaml", "a/b.yaml"}, {"[!a-c]{x,y}?\\*", "dx1*"}, {"{a,{b,c}}", "b"}, {"[", "a"}, {"", ""}, {"ü*", "üb"}} {
		f.Add(seed[0], seed[1])
	}

	f.Fuzz(func(t *testing.T, pattern, path string) {
		if len(pattern)+len(path) > 2<<10 {
			return
		}
		match, err := compileGlob(pattern)
		if err != nil {
			return
		}
		_ = match.MatchString(path)
		if !utf8.ValidString(pattern) {
			return
		}
		var literal []byte
		for i := range len(pattern) {
			if bytes.IndexByte([]byte(`*?[]{},\`), pattern[i]) >= 0 {
				literal = append(literal, '\\')
			}
			literal = append(literal, pattern[i])
		}
		quoted, err := compileGlob(string(literal))
		if err != nil || !quoted.MatchString(pattern) {
			t.Fatalf("%q as itself: %v", pattern, err)
		}
		if path != pattern && quoted.MatchString(path) {
			t.Fatalf("%q matches %q", literal, path)
		}
	})
}
