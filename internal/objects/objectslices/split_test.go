package objectslices_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/test/require"
)

const deployment = "shop"

// object makes a ConfigMap with this many bytes of data.
func object(name string, bytes int) corev1alpha1.ObjectSetObject {
	raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"k":%q}}`, name, strings.Repeat("x", bytes))
	return corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: []byte(raw)}}
}

func phase(name string, count, bytes int) corev1alpha1.ObjectSetTemplatePhase {
	p := corev1alpha1.ObjectSetTemplatePhase{Name: name}
	for i := range count {
		p.Objects = append(p.Objects, object(fmt.Sprintf("%s-%d", name, i), bytes))
	}
	return p
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		strategy string
		phases   []corev1alpha1.ObjectSetTemplatePhase
		// want lists each phase as "inline objects+slices", with ~ for several slices.
		want string
	}{
		"nothing":        {reason: "a package can be empty", want: ""},
		"small":          {reason: "up to the threshold everything is inline", phases: phases(phase("a", 4, 1000), phase("b", 3, 900)), want: "4+0 3+0"},
		"a large phase":  {reason: "the phase within its share stays inline", phases: phases(phase("a", 3, 100), phase("b", 200, 1000)), want: "3+0 0+~"},
		"many mid-sized": {reason: "the sum counts, not the largest phase", phases: phases(phase("a", 5, 1000), phase("b", 5, 1000)), want: "0+1 0+1"},
		"an empty phase": {reason: "no empty slice", phases: phases(phase("a", 0, 0), phase("b", 100, 1000)), want: "0+0 0+~"},
		"one huge object": {
			reason: "a larger object has its own slice",
			phases: phases(phase("a", 1, 200_000)), want: "0+1",
		},
		"NoOp": {
			reason: "the user's choice", strategy: corev1alpha1.ChunkingStrategyNoOp,
			phases: phases(phase("a", 200, 1000)), want: "200+0",
		},
		"NoOp of much": {
			reason: "a revision stays within the API server's limit", strategy: corev1alpha1.ChunkingStrategyNoOp,
			phases: phases(phase("a", 500, 1000)), want: "0+~",
		},
		"EachObject of many": {
			reason: "the names of the slices are in every revision", strategy: corev1alpha1.ChunkingStrategyEachObject,
			phases: phases(phase("a", 3000, 10), phase("b", 1001, 10)), want: "0+~ 0+~",
		},
		"EachObject": {
			reason: "also below the threshold", strategy: corev1alpha1.ChunkingStrategyEachObject,
			phases: phases(phase("a", 3, 10), phase("b", 2, 10)), want: "0+3 0+2",
		},
		"BinpackNextFit": {
			reason: "as few slices as fit", strategy: corev1alpha1.ChunkingStrategyBinpackNextFit,
			phases: phases(phase("a", 6, 30_000)), want: "0+3",
		},
		"unknown strategy": {
			reason: "counts as none", strategy: "Bogus", phases: phases(phase("a", 2, 10)), want: "2+0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := len(tc.phases)
			split, made, err := objectslices.Split(deployment, tc.strategy, tc.phases, nil)
			require.NoError(t, err)
			var got []string
			for _, p := range split {
				count := fmt.Sprint(len(p.Slices))
				if len(p.Slices) > 1 && strings.Contains(tc.want, "~") {
					count = "~"
				}
				got = append(got, fmt.Sprintf("%d+%s", len(p.Objects), count))
			}
			require.Equal(t, tc.want, strings.Join(got, " "), tc.reason)
			if len(tc.phases) != before || len(tc.phases) > 0 && len(tc.phases[0].Slices) > 0 {
				t.Error("the input was changed")
			}
			require.Equal(t, flatten(tc.phases, nil), flatten(split, made))
		})
	}
}

func phases(p ...corev1alpha1.ObjectSetTemplatePhase) []corev1alpha1.ObjectSetTemplatePhase { return p }

// flatten returns the objects of all phases in the engine's order.
func flatten(phases []corev1alpha1.ObjectSetTemplatePhase, made []objectslices.Slice) []string {
	byName := map[string]objectslices.Slice{}
	for _, s := range made {
		byName[s.Name] = s
	}

	var all []string
	for _, p := range phases {
		for _, o := range p.Objects {
			all = append(all, p.Name+string(o.Object.Raw))
		}
		for _, name := range p.Slices {
			for _, o := range byName[name].Objects {
				all = append(all, p.Name+string(o.Object.Raw))
			}
		}
	}

	return all
}

func TestSplitRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "{", "[]", `{"metadata":5}`} {
		p := phase("deploy", 1, 100_000)
		p.Objects = append(p.Objects, corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: []byte(raw)}})
		if _, _, err := objectslices.Split(deployment, "", phases(p), nil); err == nil || !strings.Contains(err.Error(), `"deploy"`) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 253)
	_, made, err := objectslices.Split(long, corev1alpha1.ChunkingStrategyEachObject, phases(phase("a", 2, 10)), nil)
	require.NoError(t, err)
	if len(made[0].Name) != 253 || made[0].Name == made[1].Name {
		t.Errorf("%d bytes, equal %t", len(made[0].Name), made[0].Name == made[1].Name)
	}

	// Stored revisions contain the name, so a different one would rewrite all slices.
	_, made, err = objectslices.Split(deployment, corev1alpha1.ChunkingStrategyEachObject, phases(phase("a", 1, 10)), nil)
	require.NoError(t, err)
	if want := "shop-f6697930faf2eb15"; made[0].Name != want {
		t.Errorf("got %s, want %s", made[0].Name, want)
	}
}

// genObjects draws a phase of objects of very different sizes.
func genObjects(t *rapid.T) []corev1alpha1.ObjectSetObject {
	sizes := rapid.SliceOfN(genSize(), 1, 80).Draw(t, "sizes")
	objects := make([]corev1alpha1.ObjectSetObject, len(sizes))
	for i, n := range sizes {
		objects[i] = object(fmt.Sprintf("object-%d", i), n)
	}
	return objects
}

func genSize() *rapid.Generator[int] {
	return rapid.OneOf(rapid.IntRange(0, 500), rapid.IntRange(500, 8000), rapid.IntRange(500, 8000), rapid.IntRange(8000, limits.SliceBytes+100))
}

func split(t *rapid.T, objects []corev1alpha1.ObjectSetObject) []objectslices.Slice {
	_, made, err := objectslices.Split(deployment, "", phases(corev1alpha1.ObjectSetTemplatePhase{Name: "a", Objects: objects}), nil)
	require.NoError(t, err)
	return made
}

func TestChunksAreBoundedAndWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		objects := genObjects(t)
		strategy := rapid.SampledFrom([]string{"", "EachObject", "BinpackNextFit"}).Draw(t, "strategy")
		in := phases(corev1alpha1.ObjectSetTemplatePhase{Name: "a", Objects: objects})
		out, made, err := objectslices.Split(deployment, strategy, in, nil)
		require.NoError(t, err)
		if !slices.Equal(flatten(in, nil), flatten(out, made)) {
			t.Fatal("joined chunks are not the input")
		}
		for _, s := range made {
			if n := weight(s); n > limits.SliceBytes && len(s.Objects) > 1 {
				t.Fatalf("%d objects with %d bytes in one slice", len(s.Objects), n)
			}
		}
		again, _, _ := objectslices.Split(deployment, strategy, in, nil)
		if !slices.Equal(out[0].Slices, again[0].Slices) {
			t.Fatalf("not deterministic: %v, then %v", out[0].Slices, again[0].Slices)
		}
	})
}

func weight(s objectslices.Slice) int {
	n := 0
	for _, o := range s.Objects {
		n += len(o.Object.Raw) + len(`{"object":}`)
	}
	return n
}

// A change of one object makes new chunks in one place only, and no more than three slices' worth
// of them.
func TestChangeStaysLocal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		objects := genObjects(t)
		// Ballast on both sides exceeds the threshold by far, so that slices are used.
		for i := range 3 {
			objects = append(objects, object(fmt.Sprintf("ballast-%d", i), limits.SliceThreshold))
		}
		at := rapid.IntRange(0, len(objects)-1).Draw(t, "at")
		changed := slices.Clone(objects)
		switch rapid.SampledFrom([]string{"resize", "remove", "add"}).Draw(t, "change") {
		case "resize":
			changed[at] = object(nameOf(objects[at]), genSize().Draw(t, "size"))
		case "remove":
			changed = slices.Delete(changed, at, at+1)
		case "add":
			changed = slices.Insert(changed, at, object("added", genSize().Draw(t, "size")))
		}
		before := map[string]bool{}
		for _, s := range split(t, objects) {
			before[s.Name] = true
		}
		checkLocal(t, before, split(t, changed))
	})
}

func checkLocal(t *rapid.T, before map[string]bool, after []objectslices.Slice) {
	first, last, bytes := -1, -1, 0
	for i, s := range after {
		if before[s.Name] {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		if len(s.Objects) > 1 || weight(s) <= limits.SliceBytes {
			bytes += weight(s)
		}
	}

	for i := first; i >= 0 && i <= last; i++ {
		if before[after[i].Name] {
			t.Fatalf("slice %d is untouched between changed ones, %d to %d of %d", i, first, last, len(after))
		}
	}

	if bytes > 3*limits.SliceBytes {
		t.Fatalf("%d bytes were rewritten", bytes)
	}
}

func nameOf(o corev1alpha1.ObjectSetObject) string {
	_, rest, _ := bytes.Cut(o.Object.Raw, []byte(`"name":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}
