package objectslices_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
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
