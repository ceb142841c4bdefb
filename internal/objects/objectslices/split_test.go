package objectslices_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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
	require.Equal(t, "shop-f6697930faf2eb15", made[0].Name)
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

// secret makes a Secret with a value.
func secret(name, value string) corev1alpha1.ObjectSetObject {
	raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"data":{"k":%q}}`,
		name, base64.StdEncoding.EncodeToString([]byte(value)))
	return corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: []byte(raw)}}
}

func sealing(key string, holds func(phase, object int) bool) *objectslices.Sealing {
	return &objectslices.Sealing{Key: bytes.Repeat([]byte(key), 32)[:32], Holds: holds}
}

// TestSealedObjectsAreInSecretsAlone checks for any strategy and size that Secrets and objects with
// a sensitive value leave the template and the ObjectSlices, and that all other objects stay in
// their places.
func TestSealedObjectsAreInSecretsAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		strategy := rapid.SampledFrom([]string{
			"", corev1alpha1.ChunkingStrategyNoOp, corev1alpha1.ChunkingStrategyEachObject, corev1alpha1.ChunkingStrategyBinpackNextFit,
		}).Draw(t, "strategy")
		in, plain := make([]corev1alpha1.ObjectSetTemplatePhase, rapid.IntRange(1, 3).Draw(t, "phases")), []corev1alpha1.ObjectSetTemplatePhase(nil)
		holds := map[[2]int]bool{}
		for i := range in {
			in[i].Name = fmt.Sprintf("phase-%d", i)
			rest := corev1alpha1.ObjectSetTemplatePhase{Name: in[i].Name}
			for j := range rapid.IntRange(0, 6).Draw(t, "objects") {
				name := fmt.Sprintf("object-%d-%d", i, j)
				switch rapid.SampledFrom([]string{"plain", "secret", "exposed"}).Draw(t, "object") {
				case "plain":
					in[i].Objects = append(in[i].Objects, object(name, rapid.SampledFrom([]int{10, 40 << 10}).Draw(t, "size")))
					rest.Objects = append(rest.Objects, in[i].Objects[len(in[i].Objects)-1])
				case "secret":
					in[i].Objects = append(in[i].Objects, secret(name, "secret-value"))
				case "exposed":
					in[i].Objects = append(in[i].Objects, object("secret-value-"+name, 10))
					holds[[2]int{i, j}] = true
				}
			}
			plain = append(plain, rest)
		}
		before, err := json.Marshal(in)
		require.NoError(t, err)
		out, made, err := objectslices.Split(deployment, strategy, in, sealing("k", func(p, o int) bool { return holds[[2]int{p, o}] }))
		require.NoError(t, err)
		if after, _ := json.Marshal(in); !bytes.Equal(before, after) {
			t.Fatal("the phases passed in were changed")
		}
		if text, _ := json.Marshal(out); bytes.Contains(text, []byte("secret-value")) || bytes.Contains(text, []byte(`"Secret"`)) {
			t.Fatalf("the template holds a sensitive value: %s", text)
		}
		checkSealed(t, in, out, made)
		want, _, err := objectslices.Split(deployment, strategy, plain, nil)
		require.NoError(t, err)
		for i := range out {
			out[i].SecretSlices = nil
		}
		// The comparison uses text because the objects are large.
		wanted, _ := json.Marshal(want)
		if got, _ := json.Marshal(out); !bytes.Equal(wanted, got) {
			t.Fatalf("an object without sensitive values moved:\n%s\nwant\n%s", got, wanted)
		}
	})
}

// checkSealed compares the objects of all slices with the original ones.
func checkSealed(t *rapid.T, in, out []corev1alpha1.ObjectSetTemplatePhase, made []objectslices.Slice) {
	byName := map[string][]corev1alpha1.ObjectSetObject{}
	for i := range made {
		byName[made[i].Name] = made[i].Objects
		if made[i].Key == nil {
			if text, _ := json.Marshal(made[i].Objects); bytes.Contains(text, []byte("secret-value")) {
				t.Fatalf("slice %s holds a sensitive value", made[i].Name)
			}
			continue
		}
		kept, err := made[i].Secret()
		require.NoError(t, err)
		opened, err := objectslices.Open(kept)
		require.NoError(t, err)
		if diff := cmp.Diff(names(made[i].Objects), names(opened)); diff != "" {
			t.Fatalf("the Secret holds other objects (-want +got):\n%s", diff)
		}
	}

	for i := range out {
		all := map[string]bool{}
		for _, o := range out[i].Objects {
			all[nameOf(o)] = true
		}
		for _, name := range append(out[i].Slices[:len(out[i].Slices):len(out[i].Slices)], out[i].SecretSlices...) {
			for _, o := range byName[name] {
				all[nameOf(o)] = true
			}
		}
		for _, o := range in[i].Objects {
			if !all[nameOf(o)] {
				t.Fatalf("%s of phase %d is nowhere", nameOf(o), i)
			}
		}
		if len(all) != len(in[i].Objects) {
			t.Fatalf("phase %d has %d objects, want %d", i, len(all), len(in[i].Objects))
		}
	}
}

func names(objects []corev1alpha1.ObjectSetObject) []string {
	var all []string
	for _, o := range objects {
		all = append(all, nameOf(o))
	}
	return all
}

// sealed returns the only Secret that holds a value.
func sealed(t *testing.T, key, value string) (objectslices.Slice, *corev1.Secret) {
	t.Helper()
	in := phases(corev1alpha1.ObjectSetTemplatePhase{Name: "a", Objects: []corev1alpha1.ObjectSetObject{secret("s", value)}})
	_, made, err := objectslices.Split(deployment, "", in, sealing(key, nil))
	if err != nil || len(made) != 1 {
		t.Fatalf("%d slices, error %v", len(made), err)
	}
	kept, err := made[0].Secret()
	require.NoError(t, err)
	return made[0], kept
}

// TestNamesOfSecretsRevealNothing checks that an attacker who knows all possible values cannot
// determine the actual one without the deployment's key.
func TestNamesOfSecretsRevealNothing(t *testing.T) {
	t.Parallel()
	one, kept := sealed(t, "a", "yes")
	again, _ := sealed(t, "a", "yes")
	other, _ := sealed(t, "a", "no")
	elsewhere, _ := sealed(t, "b", "yes")
	if one.Name != again.Name {
		t.Error("the same content has two names: it would be written again, and make a revision")
	}
	if one.Name == other.Name {
		t.Error("two contents have one name")
	}
	if one.Name == elsewhere.Name {
		t.Error("the name does not depend on the key: a guess of the value can be checked")
	}
	if !strings.HasPrefix(one.Name, deployment+"-") || kept.Name != one.Name {
		t.Errorf("the names are %s and %s", one.Name, kept.Name)
	}

	if kept.Type != corev1alpha1.SecretSliceType || kept.Immutable == nil || !*kept.Immutable {
		t.Errorf("the Secret is of type %s, immutable %v", kept.Type, kept.Immutable)
	}
}

// TestOpenRefusesForeignSecrets checks that a user who can write Secrets, but no packages, cannot
// add objects to a package.
func TestOpenRefusesForeignSecrets(t *testing.T) {
	t.Parallel()
	_, good := sealed(t, "a", "secret-value")
	_, evil := sealed(t, "e", "secret-value of an attacker")
	for name, change := range map[string]func(*corev1.Secret){
		"other objects":               func(s *corev1.Secret) { s.Data["objects"] = evil.Data["objects"] },
		"another key":                 func(s *corev1.Secret) { s.Data["key"] = evil.Data["key"] },
		"other objects and their key": func(s *corev1.Secret) { s.Data = evil.Data },
		"no key":                      func(s *corev1.Secret) { delete(s.Data, "key") },
		"a longer key":                func(s *corev1.Secret) { s.Data["key"] = append(bytes.Clone(s.Data["key"]), 0) },
		"no data":                     func(s *corev1.Secret) { s.Data = nil },
		"another name":                func(s *corev1.Secret) { s.Name = evil.Name },
		"another type":                func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque },
		"objects that are not a list": func(s *corev1.Secret) { s.Data["objects"] = []byte(`{"secret-value":1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := good.DeepCopy()
			change(changed)
			objects, err := objectslices.Open(changed)
			if err == nil {
				t.Fatalf("it is opened: %d objects", len(objects))
			}
			if strings.Contains(err.Error(), "secret-value") {
				t.Errorf("the error quotes the value: %v", err)
			}
		})
	}
}

// TestTooLargeForASecret checks that the error names the object and the limit, but no value.
func TestTooLargeForASecret(t *testing.T) {
	t.Parallel()
	in := phases(corev1alpha1.ObjectSetTemplatePhase{Name: "a", Objects: []corev1alpha1.ObjectSetObject{
		secret("large", strings.Repeat("secret-value", limits.SecretSliceBytes/12)),
	}})
	_, _, err := objectslices.Split(deployment, "", in, sealing("k", nil))
	if err == nil {
		t.Fatal("it was accepted")
	}
	text := err.Error()
	if !strings.Contains(text, "Secret large") || !strings.Contains(text, fmt.Sprint(limits.SecretSliceBytes)) || len(text) > 1000 {
		t.Errorf("the error is %.300s", text)
	}
}
