package objectsetphases

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

func after(names ...string) []corev1alpha1.PreviousRevisionReference {
	var refs []corev1alpha1.PreviousRevisionReference
	for _, name := range names {
		refs = append(refs, corev1alpha1.PreviousRevisionReference{Name: name})
	}
	return refs
}

func TestRelationOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason    string
		me, other relative
		want      relation
	}{
		{"itself", relative{uid: "a", deployment: "shop", revision: 2}, relative{uid: "a", deployment: "shop", revision: 1}, unrelated},
		{"an earlier revision", relative{deployment: "shop", revision: 2}, relative{uid: "b", deployment: "shop", revision: 1}, predecessor},
		{"a later revision", relative{deployment: "shop", revision: 2}, relative{uid: "b", deployment: "shop", revision: 3}, successor},
		{"the same revision", relative{deployment: "shop", revision: 2}, relative{uid: "b", deployment: "shop", revision: 2}, unrelated},
		{"of another deployment", relative{deployment: "shop", revision: 2}, relative{uid: "b", deployment: "store", revision: 1}, unrelated},
		{"without a deployment", relative{revision: 2}, relative{uid: "b", revision: 1}, unrelated},
		{"named", relative{revision: 1, previous: after("b")}, relative{uid: "b", name: "b", revision: 1}, predecessor},
		{"its set is named", relative{previous: after("set-1")}, relative{uid: "b", name: "set-1-deploy", set: "set-1"}, predecessor},
		{"names it", relative{name: "a", revision: 1}, relative{uid: "b", previous: after("a"), revision: 1}, successor},
		{"names its set", relative{name: "set-1-deploy", set: "set-1"}, relative{uid: "b", set: "set-2", previous: after("set-1")}, successor},
		{"each names the other", relative{name: "a", previous: after("b"), revision: 2}, relative{uid: "b", name: "b", previous: after("a"), revision: 1}, predecessor},
		{"each names the other, in the same revision", relative{name: "a", previous: after("b"), revision: 1}, relative{uid: "b", name: "b", previous: after("a"), revision: 1}, unrelated},
		{"the label comes before names", relative{deployment: "shop", revision: 2, previous: after("b")}, relative{uid: "b", name: "b", deployment: "shop", revision: 3}, successor},
		{"of the same set", relative{set: "set-1", previous: after("x")}, relative{uid: "b", name: "x", set: "set-1"}, unrelated},
		{"its own set", relative{set: "set-1", deployment: "shop", revision: 2}, relative{uid: "b", name: "set-1", deployment: "shop", revision: 1}, unrelated},
	} {
		if got := tc.me.relationOf(&tc.other); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
		}
	}
}

// TestRelationsAreOpposite: if one owner hands over, the other one takes over; otherwise neither
// does.
func TestRelationsAreOpposite(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"a", "b", "set-1", "set-2"})
	draw := rapid.Custom(func(t *rapid.T) *relative {
		return &relative{
			uid: types.UID(names.Draw(t, "uid")), name: names.Draw(t, "name"), set: rapid.SampledFrom([]string{"", "set-1", "set-2"}).Draw(t, "set"),
			deployment: rapid.SampledFrom([]string{"", "shop"}).Draw(t, "deployment"), revision: rapid.Int64Range(0, 3).Draw(t, "revision"),
			previous: after(rapid.SliceOfN(names, 0, 2).Draw(t, "previous")...),
		}
	})
	opposite := map[relation]relation{unrelated: unrelated, predecessor: successor, successor: predecessor}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if there, back := a.relationOf(b), b.relationOf(a); back != opposite[there] {
			t.Errorf("%+v is %d to %+v, which is %d to it", b, there, a, back)
		}
	})
}

func TestRelationToDeployment(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		owning []int64
		want   relation
	}{
		{"its own revision alone", []int64{2}, unrelated},
		{"an earlier revision still owns objects", []int64{1, 2}, predecessor},
		{"a later revision", []int64{2, 3}, successor},
		{"both", []int64{1, 2, 3}, successor},
		{"none", nil, unrelated},
	} {
		if got := relationToDeployment(2, tc.owning); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
		}
	}
}

func TestPhaseName(t *testing.T) {
	t.Parallel()
	made := func(kind, set string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: set, Controller: ptr.To(true)}}
	}
	for _, tc := range []struct {
		reason, name string
		refs         []metav1.OwnerReference
		want         string
	}{
		{"by hand", "shop-1-deploy", nil, "shop-1-deploy"},
		{"of a set", "shop-1-deploy", made("ObjectSet", "shop-1"), "deploy"},
		{"of a set with another name", "other", made("ObjectSet", "shop-1"), "other"},
		{"no set with this name", "shop-1-", made("ObjectSet", "shop-1"), "shop-1-"},
		{"of something else", "shop-1-deploy", made("Package", "shop-1"), "shop-1-deploy"},
	} {
		phase := &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: tc.name, OwnerReferences: tc.refs}}
		if got := phaseName(phase); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
		}
	}
}
