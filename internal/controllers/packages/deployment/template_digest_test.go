package deployment

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// Digests recorded by earlier versions must stay the same: another digest would load every package
// again.
func TestTemplateDigestStays(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`{"kind":"A","metadata":{"name":"a"},"data":{"b":"2","a":"<1>"}}`:                              "15e8ebcfb185109399de3a51d03c5161",
		`{"metadata":{"labels":{"b":"1","a":"2"},"name":"a","namespace":"n","annotations":{"x":"y"}}}`: "8b216b3a9f2c477308b29bd89f278e0b",
		`{"metadata":{"labels":{},"name":"","creationTimestamp":null}}`:                                "b116a278ec81814dc605449aba239221",
		`{"metadata":{"labels":{"a":null},"name":"a"}}`:                                                "eb3c7056b704992e703adb093281fb54",
		`{"metadata":{"name":"a","unknown":1,"finalizers":["f"]}}`:                                     "ddeba3ef550759b3aa24e9b4afb378b6",
		`{"metadata":{"name":1}}`: "ce6e8851d31a769a45236f20e81f14bf",
		`{"metadata":"text","spec":{"a":[{"b":null,"c":1.0}],"d":1e3,"e":12345678901234567890,"f":{"g":null}}}`: "1c34f5c4cf7db1e0f56f0053e1437e3f",
		`{"spec":{"a":-0.0}}`:            "bdefb53610be8d6b72d310257364c7a4",
		`{"spec":{}}`:                    "4e52bad7a98ecbab37c79488723b5fe8",
		`{"metadata":{}, "a": "\u00e9"}`: "aa68449646d804f5da2a8e0c2b329bff",
	} {
		got, err := templateDigest(&corev1alpha1.ObjectSetTemplateSpec{
			ServiceAccountName: "other",
			Phases: []corev1alpha1.ObjectSetTemplatePhase{
				{Name: "empty"}, {Name: "one", Slices: []string{"s"}, Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(object)}}}},
			},
		})
		if err != nil || got != want {
			t.Errorf("%s: %q, want %q, %v", object, got, want, err)
		}
	}
	for _, object := range []string{`null`, `"text"`, `[]`} {
		spec := &corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{
			{Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(object)}}}},
		}}
		if got, err := templateDigest(spec); err == nil {
			t.Errorf("%s has the digest %s", object, got)
		}
	}
}

// Another account is a setting: the template means the same.
func TestAccountIsNoContent(t *testing.T) {
	t.Parallel()
	spec := corev1alpha1.ObjectSetTemplateSpec{SuccessDelaySeconds: 7}
	without, err := templateDigest(&spec)
	require.NoError(t, err)
	spec.ServiceAccountName = "deployer"
	if with, err := templateDigest(&spec); err != nil || with != without {
		t.Errorf("%s, want %s: %v", with, without, err)
	}
}
