package migrate

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func zipped(data []byte) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(data)
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// record returns a release as Helm stores it.
func record(t *testing.T, name, namespace, manifest string) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"name": name, "namespace": namespace, "version": 3, "info": map[string]any{"status": "deployed"}, "manifest": manifest,
		"config": map[string]any{"password": "secret"}, "hooks": []any{map[string]any{"manifest": "secret"}},
	})
	require.NoError(t, err)
	return zipped(data)
}

func TestReadHelm(t *testing.T) {
	t.Parallel()
	const one = "# Source: web/templates/service.yaml\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	const two = "---\n# nothing here\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a, namespace: kube-system}\nmetadata: {name: a, namespace: kube-system} # charts repeat keys\n"
	service := objects.Key{Kind: "Service", Namespace: "store", Name: "web"}
	for _, tc := range []struct {
		reason, data string
		want         []objects.Key
		err          string
	}{
		{reason: "objects", data: record(t, "web", "store", one+two), want: []objects.Key{service, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding", Namespace: "kube-system", Name: "a"}}},
		{reason: "nothing", err: "it is not compressed by gzip and encoded as base64"},
		{reason: "no base64", data: "{}", err: "it is not compressed by gzip and encoded as base64"},
		{reason: "broken off", data: base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b, 0x08, 0, 0}), err: "it is not compressed by gzip and encoded as base64"},
		{reason: "no JSON", data: zipped([]byte("secret")), err: "it is not valid JSON of a release"},
		{reason: "of another name", data: record(t, "other", "store", one), err: "it belongs to another release than its name and namespace"},
		{reason: "of another namespace", data: record(t, "web", "other", one), err: "it belongs to another release than its name and namespace"},
		{reason: "no YAML", data: record(t, "web", "store", one+"---\nsecret: [\n"), err: "its manifest is not valid YAML"},
		{reason: "no object", data: record(t, "web", "store", "- secret"), err: "one of its objects lacks apiVersion, kind or name"},
		{reason: "a bomb", data: zipped(bytes.Repeat([]byte(" "), limits.HelmReleaseBytes+1)), err: "it has more than 33554432 bytes uncompressed, which is the limit"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			got, err := readHelm(tc.data, "store", "web")
			text := ""
			if err != nil {
				text, got = err.Error(), nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || text != tc.err {
				t.Errorf("error %q, want %q (-want +got):\n%s", text, tc.err, diff)
			}
		})
	}
}
