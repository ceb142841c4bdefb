package objects_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// remote makes an owner whose objects are in another cluster.
func remote(namespace, uid, cluster string) objects.Owner {
	return objects.Owner{
		Names:    apinames.Default,
		OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: namespace, Name: "app"}, UID: types.UID(uid), Cluster: types.UID(cluster),
	}
}

// put returns the references of an object after Put.
func put(owner objects.Owner, others ...objects.Reference) []objects.Reference {
	meta := map[string]any{}
	owner.Put(meta, others...)
	annotations := map[string]string{}
	all, _ := meta["annotations"].(map[string]any)
	for key, value := range all {
		annotations[key] = value.(string)
	}
	return apinames.Default.References(nil, annotations)
}

// TestRemoteOwner checks that an owner in another cluster is recognized by its UID, and after a
// restore from a backup also by namespace and cluster. The name is not enough: owners of other
// clusters, and of the target itself, can have the same one.
func TestRemoteOwner(t *testing.T) {
	t.Parallel()
	owner := remote("shop", "u", "home")
	for _, tc := range []struct {
		reason       string
		ref          objects.Reference
		is, namesake bool
	}{
		{"the owner", put(owner)[0], true, true},
		{"restored with another UID", put(remote("shop", "former", "home"))[0], false, true},
		{"in another namespace", put(remote("other", "x", "home"))[0], false, false},
		{"of another cluster", put(remote("shop", "x", "elsewhere"))[0], false, false},
		{"of the target itself", apinames.Default.References([]metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "app", UID: "u",
		}}, nil)[0], false, false},
	} {
		if owner.Is(&tc.ref) != tc.is || owner.SameName(&tc.ref) != tc.namesake {
			t.Errorf("%s: is %t, namesake %t", tc.reason, owner.Is(&tc.ref), owner.SameName(&tc.ref))
		}
	}

	local := remote("shop", "u", "")
	if ref := put(owner)[0]; local.Is(&ref) || local.SameName(&ref) {
		t.Error("an annotation does not make an object owned in the same cluster")
	}
}

// TestOwnersOfOthersStay checks that other owners keep their entries in the annotation, but control
// nothing. A controller in the target itself takes precedence.
func TestOwnersOfOthersStay(t *testing.T) {
	t.Parallel()
	former := put(remote("other", "former", "elsewhere"))
	all := put(remote("shop", "u", "home"), former...)
	if len(all) != 2 || all[0].UID != "u" || all[1].UID != "former" || all[1].Controller != nil {
		t.Errorf("owners %+v", all)
	}

	obs := &objects.Observed{Owners: all}
	if c := obs.Controller(); c == nil || c.UID != "u" {
		t.Errorf("controlled by %+v", c)
	}

	again := put(remote("shop", "u", "home"), all...)
	if len(again) != 2 {
		t.Errorf("applied again, it has %d owners", len(again))
	}
	if restored := put(remote("shop", "new", "home"), all...); len(restored) != 2 || restored[0].UID != "new" || restored[1].UID != "former" {
		t.Errorf("after a restore: %+v", restored)
	}

	obs.Owners = apinames.Default.References([]metav1.OwnerReference{{Kind: "Local", UID: "l", Controller: ptr.To(true)}},
		map[string]string{corev1alpha1.OwnersAnnotation: objects.OwnersValue(all)})

	if c := obs.Controller(); c == nil || c.UID != "l" {
		t.Errorf("an annotation overrules the controller reference: %+v", c)
	}
}

func TestReferencesOfGarbage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", "[]", `{"uid":"x"}`, `[{"uid":1}]`, "null", strings.Repeat("[", 10000)} {
		for _, ref := range apinames.Default.References(nil, map[string]string{corev1alpha1.OwnersAnnotation: text}) {
			if ref.UID != "" {
				t.Errorf("%.20q names %+v", text, ref)
			}
		}
	}

	// This is how an earlier engine wrote the annotation.
	refs := apinames.Default.References(nil, map[string]string{corev1alpha1.OwnersAnnotation: `[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectSetPhase",` +
		`"name":"p","namespace":"n","uid":"u","controller":true}]`})
	if len(refs) != 1 || refs[0].Namespace != "n" || !ptr.Deref(refs[0].Controller, false) {
		t.Errorf("%+v", refs)
	}
}
