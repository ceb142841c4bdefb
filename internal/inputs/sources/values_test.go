package sources

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

// shelf is a fake API server.
type shelf map[string]map[string]string

func (s shelf) get(_ context.Context, ref Ref) (*Object, error) {
	data, ok := s[ref.String()]
	if !ok {
		return nil, nil
	}
	o := &Object{Data: map[string][]byte{}}
	for key, text := range data {
		o.Data[key] = []byte(text)
	}
	return o, nil
}

func secretKey(name string, change ...func(*corev1alpha1.SecretKeyReference)) corev1alpha1.ValueSource {
	ref := &corev1alpha1.SecretKeyReference{Name: name, Key: "k"}
	for _, c := range change {
		c(ref)
	}
	return corev1alpha1.ValueSource{SecretKeyRef: ref}
}

func configMapKey(name string) corev1alpha1.ValueSource {
	return corev1alpha1.ValueSource{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: name, Key: "k"}}
}

func plain(ref *corev1alpha1.SecretKeyReference)    { ref.Sensitive = ptr.To(false) }
func optional(ref *corev1alpha1.SecretKeyReference) { ref.Optional = true }

func TestRead(t *testing.T) {
	t.Parallel()
	found := shelf{
		"ConfigMap team/a": {"k": "size: 1\nnested: {x: 1, l: [1, 2]}\n"},
		"ConfigMap team/b": {"k": `{"nested": {"l": [3], "z": null}, "big": 12345678901234567890}`},
		"Secret team/s":    {"k": "password: correct horse\npin: 12345678\nnested: {x: hidden}\n"},
		"Secret team/p":    {"k": "password: plain one\n"},
		"Secret team/ops":  {"k": "- {op: add, path: /data/x, value: {deep: secret value}}\n- {op: remove, path: /data/y}\n"},
		"Secret team/smp":  {"k": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: the-name, labels: {a: the-label}}\ndata: {x: the-value}\n"},
		"ConfigMap team/e": {"k": "# nothing\n"},
	}

	for name, tc := range map[string]struct {
		reason string
		spec   corev1alpha1.PackageSpec
		want   Values
	}{
		"no sources": {
			reason: "the config is passed on as it is",
			spec:   corev1alpha1.PackageSpec{Config: &runtime.RawExtension{Raw: []byte(`{"a": null}`)}},
			want:   Values{Config: []byte(`{"a": null}`)},
		},
		"no source at all": {reason: "as with earlier engines"},
		"merged": {
			reason: "objects key by key, the rest as a whole, the config over all",
			spec: corev1alpha1.PackageSpec{
				ConfigFrom: []corev1alpha1.ValueSource{configMapKey("a"), configMapKey("b"), configMapKey("e")},
				Config:     &runtime.RawExtension{Raw: []byte(`{"nested": {"w": 9007199254740993}}`)},
			},
			want: Values{Config: []byte(`{"big":12345678901234567000,"nested":{"l":[3],"w":9007199254740993,"x":1,"z":null},"size":1}`)},
		},
		"sensitive": {
			reason: "every value of such a Secret, also one that is overridden",
			spec:   corev1alpha1.PackageSpec{ConfigFrom: []corev1alpha1.ValueSource{secretKey("s"), secretKey("p", plain)}},
			want: Values{
				Config:    []byte(`{"nested":{"x":"hidden"},"password":"plain one","pin":12345678}`),
				Sensitive: []string{"12345678", "correct horse", "hidden"},
				FromSecrets: []loader.SecretValue{
					{Path: []string{"password"}, Value: "plain one"},
				},
			},
		},
		"ordinary values that are overridden": {
			reason: "the value that counts is the user's own",
			spec: corev1alpha1.PackageSpec{
				ConfigFrom: []corev1alpha1.ValueSource{secretKey("p", plain)},
				Config:     &runtime.RawExtension{Raw: []byte(`{"password": "mine"}`)},
			},
			want: Values{Config: []byte(`{"password":"mine"}`)},
		},
		"optional and missing": {
			reason: "passed over",
			spec: corev1alpha1.PackageSpec{
				ConfigFrom: []corev1alpha1.ValueSource{secretKey("none", optional), secretKey("s", optional, func(r *corev1alpha1.SecretKeyReference) { r.Key = "none" })},
				Patches:    []corev1alpha1.PackagePatch{{PatchFrom: ptr.To(secretKey("none", optional))}, {Patch: "own"}},
			},
			want: Values{Config: []byte(`{}`), Patches: []string{"", "own"}},
		},
		"sensitive patches": {
			reason: "their values, and neither operations nor the object's name",
			spec: corev1alpha1.PackageSpec{Patches: []corev1alpha1.PackagePatch{
				{PatchFrom: ptr.To(secretKey("ops"))}, {PatchFrom: ptr.To(secretKey("smp"))},
			}},
			want: Values{
				Patches:   []string{found["Secret team/ops"]["k"], found["Secret team/smp"]["k"]},
				Sensitive: []string{"secret value", "the-label", "the-value"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(context.Background(), found.get, &tc.spec, "team")
			require.NoError(t, err)
			if len(got.Patches) == 0 {
				got.Patches = nil
			}
			if len(got.Sensitive) == 0 {
				got.Sensitive = nil
			}
			require.Equal(t, &tc.want, got, tc.reason)
		})
	}
}

// The error about a wrong source contains its reference, and quotes no content.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	found := shelf{
		"Secret team/list":   {"k": "[geheim-geheim]"},
		"Secret team/broken": {"k": "a: geheim-geheim\nb: [\n"},
		"Secret team/two":    {"k": "a: geheim-geheim\n---\nb: 1\n"},
		"Secret team/double": {"k": "geheim-geheim: 1\ngeheim-geheim: 2\n"},
		"Secret team/bytes":  {"k": "a: \xff\xfegeheim-geheim"},
		"Secret team/large":  {"k": "a: " + strings.Repeat("geheim-geheim", limits.ConfigBytes/13+1)},
		"Secret team/other":  {"other": "geheim-geheim"},
		"Secret team/bomb":   {"k": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"},
	}

	for name, want := range map[string]string{
		"list":   "it has to be an object",
		"broken": "line ",
		"two":    "2 YAML documents",
		"double": "not valid",
		"bytes":  "not UTF-8",
		"large":  "the limit is 204800",
		"other":  `it has no key "k". Create it, or set optional: true.`,
		"none":   "it does not exist. Create it, or set optional: true.",
		"bomb":   "not valid",
	} {
		spec := &corev1alpha1.PackageSpec{
			ConfigFrom: []corev1alpha1.ValueSource{secretKey(name)},
			Patches:    []corev1alpha1.PackagePatch{{PatchFrom: ptr.To(secretKey("none"))}},
		}
		_, err := Read(context.Background(), found.get, spec, "team")
		var wrong violation.Violations
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Secret team/"+name) ||
			!strings.Contains(err.Error(), "spec.configFrom[0]") || !strings.Contains(err.Error(), "spec.patches[0].patchFrom") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: the error quotes the content: %v", name, err)
		}
	}

	down := errors.New("the API server is away")
	_, err := Read(context.Background(), func(context.Context, Ref) (*Object, error) { return nil, down },
		&corev1alpha1.PackageSpec{ConfigFrom: []corev1alpha1.ValueSource{secretKey("s")}}, "team")
	if !errors.Is(err, down) {
		t.Errorf("an outage is not the package's fault: %v", err)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("a: 1", `{"a": {"b": [1]}}`)
	f.Add("a: &x {b: *x}", "[]")
	f.Add("? {}\n: 1", "\ufeffa: null")
	f.Fuzz(func(t *testing.T, a, b string) {
		found := shelf{"Secret team/a": {"k": a}, "Secret team/b": {"k": b}}
		spec := &corev1alpha1.PackageSpec{
			ConfigFrom: []corev1alpha1.ValueSource{secretKey("a"), secretKey("b", plain)},
			Patches:    []corev1alpha1.PackagePatch{{PatchFrom: ptr.To(secretKey("b"))}},
		}
		values, err := Read(context.Background(), found.get, spec, "team")
		var wrong violation.Violations
		if err != nil && !errors.As(err, &wrong) {
			t.Errorf("%v", err)
		}
		if err == nil && len(values.Config) == 0 {
			t.Error("there is neither a config nor an error")
		}
	})
}
