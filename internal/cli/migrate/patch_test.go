package migrate

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/patch"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

func objectOf(apiVersion, group, kind, namespace, name string) object {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return object{Key: objects.Key{Group: group, Kind: kind, Namespace: namespace, Name: name}, Live: u}
}

var web = objectOf("apps/v1", "apps", "Deployment", "shop", "web")

func TestPatches(t *testing.T) {
	t.Parallel()
	other := corev1alpha1.PackagePatch{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"}
	spec := &corev1alpha1.PackageSpec{Patches: []corev1alpha1.PackagePatch{other}}
	for range 2 { // the second time there is one
		require.NoError(t, addPatch(spec, web, "shop"))
	}
	const want = "$patch: delete\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n"
	if len(spec.Patches) != 2 || spec.Patches[1].Patch != want {
		t.Fatalf("the patches are %v", spec.Patches)
	}
	set, problems := patch.Compile([]patch.Patch{{Patch: spec.Patches[1].Patch}})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	if left, _, problem := set.Apply(web.Live.Object); left != nil || problem != nil {
		t.Errorf("the loader leaves %v, %v", left, problem)
	}
	if left, _, _ := set.Apply(objectOf("apps/v1", "apps", "Deployment", "store", "web").Live.Object); left == nil {
		t.Error("the object of another namespace is deleted, too")
	}
	for name, o := range map[string]object{
		"of another name": objectOf("apps/v1", "apps", "Deployment", "shop", "front"), "of another kind": objectOf("apps/v1", "apps", "StatefulSet", "shop", "web"),
		"of another group": objectOf("v1", "", "Deployment", "shop", "web"), "of another namespace": objectOf("apps/v1", "apps", "Deployment", "store", "web"),
	} {
		if dropPatches(spec, []object{o}) {
			t.Errorf("the object %s takes the patch off", name)
		}
	}
	if !dropPatches(spec, []object{web}) {
		t.Error("the patch stays")
	}
	require.Equal(t, []corev1alpha1.PackagePatch{other}, spec.Patches, "other patches")
}

func TestPatchesAreLimited(t *testing.T) {
	t.Parallel()
	spec := &corev1alpha1.PackageSpec{Patches: make([]corev1alpha1.PackagePatch, limits.Patches)}
	if err := addPatch(spec, web, ""); err == nil || len(spec.Patches) != limits.Patches {
		t.Errorf("%d patches, %v", len(spec.Patches), err)
	}
}
