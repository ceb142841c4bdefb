package threeway_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/cli/author/threeway"
)

const base = `kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  args: [a, b, c]
  containers:
  - name: web
    image: web:1
    ports:
    - containerPort: 80
  - name: proxy
    image: proxy:1
`

func TestMerge(t *testing.T) {
	t.Parallel()
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(base) }
	for name, tc := range map[string]struct {
		ours, theirs, want string
		conflicts          []threeway.Conflict
	}{
		"theirs alone": {base, edit("web:1", "web:2"), edit("web:1", "web:2"), nil},
		"ours alone":   {edit("web:1", "web:2"), base, edit("web:1", "web:2"), nil},
		"both alike":   {edit("web:1", "web:2"), edit("web:1", "web:2"), edit("web:1", "web:2"), nil},
		"fields beside each other": {
			edit("replicas: 1", "replicas: 3 # for the weekend"), edit("web:1", "web:2"), edit("replicas: 1", "replicas: 3 # for the weekend", "web:1", "web:2"), nil,
		},
		"comments at what theirs changed": {
			edit("image: web:1", "image: web:1 # pinned\n    # mine"), edit("web:1", "web:2"), edit("image: web:1", "image: web:2 # pinned\n    # mine"), nil,
		},
		"same field": {
			edit("replicas: 1", "replicas: 3"), edit("replicas: 1", "replicas: 2"), "",
			[]threeway.Conflict{{Field: "spec.replicas", Base: "1", Ours: "3", Theirs: "2"}},
		},
		"changed and removed": {
			edit("replicas: 1", "replicas: 3"), edit("  replicas: 1\n", ""), "",
			[]threeway.Conflict{{Field: "spec.replicas", Base: "1", Ours: "3", Theirs: "nothing"}},
		},
		"removed and changed": {
			edit("  replicas: 1\n", ""), edit("replicas: 1", "replicas: 3"), "",
			[]threeway.Conflict{{Field: "spec.replicas", Base: "1", Ours: "nothing", Theirs: "3"}},
		},
		"another container each": {
			base + "  - name: mine\n    image: m\n", edit("  - name: proxy\n    image: proxy:1\n", "  - name: new\n    image: n\n"),
			edit("  - name: proxy\n    image: proxy:1\n", "  - name: new\n    image: n\n  - name: mine\n    image: m\n"), nil,
		},
		"a container that ours changed is removed": {
			edit("proxy:1", "proxy:mine"), edit("  - name: proxy\n    image: proxy:1\n", ""), "",
			[]threeway.Conflict{{Field: "spec.containers[name=proxy]", Base: `{"image":"proxy:1","name":"proxy"}`, Ours: `{"image":"proxy:mine","name":"proxy"}`, Theirs: "nothing"}},
		},
		"arguments": {edit("[a, b, c]", "[a, b, c, mine]"), edit("[a, b, c]", "[new, a, c]"), edit("[a, b, c]", "[new, a, c, mine]"), nil},
		"same argument": {
			edit("[a, b, c]", "[a, x, c]"), edit("[a, b, c]", "[a, y, c]"), "",
			[]threeway.Conflict{{Field: "spec.args[1]", Base: "b", Ours: "x", Theirs: "y"}},
		},
		"text and number": {
			edit("replicas: 1", `replicas: "1"`), edit("replicas: 1", "replicas: 2"), "",
			[]threeway.Conflict{{Field: "spec.replicas", Base: "1", Ours: "1", Theirs: "2"}},
		},
		"templates by their lines": {
			edit("replicas: 1", "replicas: {{ .config.replicas }}"), edit("web:1", "web:2"), edit("replicas: 1", "replicas: {{ .config.replicas }}", "web:1", "web:2"), nil,
		},
		"lines beside each other": {
			edit("replicas: 1", "replicas: {{ .x }}"), edit("args: [a, b, c]", "args: [z]"), edit("replicas: 1", "replicas: {{ .x }}", "args: [a, b, c]", "args: [z]"), nil,
		},
		"same line": {
			edit("replicas: 1", "replicas: {{ .x }}"), edit("replicas: 1", "replicas: 2"), "",
			[]threeway.Conflict{{Field: "line 5", Base: "replicas: 1", Ours: "replicas: {{ .x }}", Theirs: "replicas: 2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, conflicts := threeway.Merge([]byte(base), []byte(tc.ours), []byte(tc.theirs), threeway.Neither)
			if diff := cmp.Diff(tc.conflicts, conflicts); diff != "" {
				t.Error(diff)
			}
			if tc.conflicts == nil {
				if diff := cmp.Diff(tc.want, string(got)); diff != "" {
					t.Error(diff)
				}
				return
			}
			for side, want := range map[threeway.Side]string{threeway.Ours: tc.ours, threeway.Theirs: tc.theirs} {
				got, conflicts := threeway.Merge([]byte(base), []byte(tc.ours), []byte(tc.theirs), side)
				if len(conflicts) > 0 || !threeway.Same(got, []byte(want)) && string(got) != want {
					t.Errorf("%s: got %s, %v", side, got, conflicts)
				}
			}
		})
	}
}

// A field that is edited in place does not identify an element, also where it is unique.
func TestMergeOfEditedFields(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ reason, base, ours, theirs, want string }{
		{"a host", "[{host: a, v: 1, w: 1}]", "[{host: b, v: 1, w: 1}]", "[{host: a, v: 2, w: 1}]", "[{host: b, v: 2, w: 1}]"},
		{"a type", "[{type: A, v: 1, w: 1}]", "[{type: B, v: 1, w: 1}]", "[{type: A, v: 2, w: 1}]", "[{type: B, v: 2, w: 1}]"},
		{
			"a path in a longer list", "[{path: /a, v: 1}, {path: /b, v: 1, w: 1}, {path: /d, v: 1}]", "[{path: /a, v: 1}, {path: /c, v: 1, w: 1}, {path: /d, v: 1}]",
			"[{path: /a, v: 1}, {path: /b, v: 2, w: 1}, {path: /d, v: 1}]", "[{path: /a, v: 1}, {path: /c, v: 2, w: 1}, {path: /d, v: 1}]",
		},
	} {
		got, conflicts := threeway.Merge([]byte("l: "+tc.base), []byte("l: "+tc.ours), []byte("l: "+tc.theirs), threeway.Neither)
		if !threeway.Same(got, []byte("l: "+tc.want)) || conflicts != nil {
			t.Errorf("%s: got %s, %v", tc.reason, got, conflicts)
		}
	}
}

// If only one side has changes, the result is that side; merging again changes nothing.
func TestMergeHolds(t *testing.T) {
	t.Parallel()
	draw := func(rt *rapid.T, label string) []byte {
		var out strings.Builder
		for _, key := range []string{"a", "b", "c"} {
			switch rapid.IntRange(0, 3).Draw(rt, label+key) {
			case 0:
			case 1:
				out.WriteString(key + ": " + rapid.SampledFrom([]string{"1", "2", "x"}).Draw(rt, label+"v") + "\n")
			case 2:
				out.WriteString(key + ":\n")
				for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"m", "n", "o"}), rapid.ID).Draw(rt, label+"l") {
					out.WriteString("- name: " + name + "\n  v: " + rapid.SampledFrom([]string{"1", "2"}).Draw(rt, label+"w") + "\n")
				}
			case 3:
				out.WriteString(key + ": [" + strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"p", "q", "r"})).Draw(rt, label+"s"), ", ") + "]\n")
			}
		}
		return []byte("z: 0\n" + out.String())
	}
	rapid.Check(t, func(rt *rapid.T) {
		base, ours, theirs := draw(rt, "base"), draw(rt, "ours"), draw(rt, "theirs")
		if got, conflicts := threeway.Merge(base, base, theirs, threeway.Neither); !threeway.Same(got, theirs) || conflicts != nil {
			rt.Fatalf("%s, %v", got, conflicts)
		}
		if got, conflicts := threeway.Merge(base, append([]byte("# mine\n"), base...), theirs, threeway.Neither); !threeway.Same(got, theirs) || conflicts != nil {
			rt.Fatalf("%s, %v", got, conflicts)
		}
		if got, conflicts := threeway.Merge(base, ours, base, threeway.Neither); string(got) != string(ours) || conflicts != nil {
			rt.Fatalf("%s, %v", got, conflicts)
		}
		for _, side := range []threeway.Side{threeway.Ours, threeway.Theirs} {
			merged, conflicts := threeway.Merge(base, ours, theirs, side)
			if conflicts != nil {
				rt.Fatalf("%s: %v", side, conflicts)
			}
			again, conflicts := threeway.Merge(theirs, merged, theirs, threeway.Neither)
			if string(again) != string(merged) || conflicts != nil {
				rt.Fatalf("%s became %s, %v", merged, again, conflicts)
			}
		}
	})
}
