package objects_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
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
	require.Equal(t, 2, len(again), "applied again, it")
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
			require.Equal(t, "", string(ref.UID), fmt.Sprintf("%.20q names %+v", text, ref))
		}
	}

	// This is how an earlier engine wrote the annotation.
	refs := apinames.Default.References(nil, map[string]string{corev1alpha1.OwnersAnnotation: `[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectSetPhase",` +
		`"name":"p","namespace":"n","uid":"u","controller":true}]`})
	if len(refs) != 1 || refs[0].Namespace != "n" || !ptr.Deref(refs[0].Controller, false) {
		t.Errorf("%+v", refs)
	}
}

func TestMayAdopt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason          string
		kind, namespace string
		annotation      string
		controlled      bool
		cluster         types.UID
		want            bool
	}{
		{reason: "the Package of that name", kind: "ObjectDeployment", namespace: "shop", annotation: "shop/web", want: true},
		{reason: "the ClusterPackage of that name", kind: "ClusterObjectDeployment", annotation: "web", want: true},
		{reason: "without the annotation", kind: "ObjectDeployment", namespace: "shop"},
		{reason: "without a name", kind: "ClusterObjectDeployment", annotation: "/"},
		{reason: "another namespace", kind: "ObjectDeployment", namespace: "shop", annotation: "store/web"},
		{reason: "another name", kind: "ObjectDeployment", namespace: "shop", annotation: "shop/web-2"},
		{reason: "the ClusterPackage, not the Package", kind: "ObjectDeployment", namespace: "shop", annotation: "web"},
		{reason: "the Package, not the ClusterPackage", kind: "ClusterObjectDeployment", annotation: "shop/web"},
		{reason: "a set of that name", kind: "ObjectSet", namespace: "shop", annotation: "shop/web"},
		{reason: "controlled by another", kind: "ObjectDeployment", namespace: "shop", annotation: "shop/web", controlled: true},
		{reason: "of another cluster", kind: "ObjectDeployment", namespace: "shop", annotation: "shop/web", cluster: "c"},
	} {
		owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: tc.kind, Namespace: tc.namespace, Name: "web"}, UID: "u", Cluster: tc.cluster}
		obs := &objects.Observed{AdoptableBy: tc.annotation}
		if tc.controlled {
			ref := metav1.OwnerReference{Kind: "Release", Name: "web", UID: "other", Controller: ptr.To(true)}
			obs.Owners = []objects.Reference{{OwnerReference: ref}}
		}
		require.Equal(t, tc.want, owner.MayAdopt(obs), tc.reason)
	}
}

func TestNewerThan(t *testing.T) {
	t.Parallel()
	at := func(version string) *objects.Observed { return &objects.Observed{ResourceVersion: version} }
	for _, tc := range []struct {
		reason string
		a, b   *objects.Observed
		want   bool
	}{
		{"any version is newer than an absent one", at("1"), nil, true},
		{"later", at("10"), at("9"), true},
		{"earlier", at("9"), at("10"), false},
		{"the same", at("9"), at("9"), false},
		{"beyond 32 bits", at("4294967297"), at("4294967296"), true},
		{"no number", at("abc"), at("9"), true},
		{"compared with no number", at("9"), at("abc"), true},
		{"unknown", at(""), at("9"), true},
	} {
		require.Equal(t, tc.want, tc.a.NewerThan(tc.b), tc.reason)
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key  objects.Key
		want string
	}{
		{objects.Key{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "x"}, "apps Deployment n/x"},
		{objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "x"}, "ConfigMap n/x"},
		{objects.Key{Kind: "Namespace", Name: "x"}, "Namespace x"},
	} {
		require.Equal(t, tc.want, tc.key.String())
	}
}

func TestKeysAreOrdered(t *testing.T) {
	t.Parallel()
	part := rapid.StringMatching("[ab]?")
	key := rapid.Custom(func(t *rapid.T) objects.Key {
		return objects.Key{Group: part.Draw(t, "group"), Kind: part.Draw(t, "kind"), Namespace: part.Draw(t, "namespace"), Name: part.Draw(t, "name")}
	})

	rapid.Check(t, func(t *rapid.T) {
		a, b, c := key.Draw(t, "a"), key.Draw(t, "b"), key.Draw(t, "c")
		if a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%v and %v: %d", a, b, a.Compare(b))
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Fatalf("%v, %v, %v are in no order", a, b, c)
		}
	})
}

func TestGroupMessages(t *testing.T) {
	t.Parallel()
	many := make([]objects.Message, 10)
	for i := range many {
		many[i] = objects.Message{Object: fmt.Sprintf("ConfigMap shop/c%d", i), Text: "exists already"}
	}

	for name, tc := range map[string]struct {
		reason   string
		messages []objects.Message
		want     []string
	}{
		"many": {
			reason: "one cause appears once, with three names", messages: many,
			want: []string{"ConfigMap shop/c0, ConfigMap shop/c1, ConfigMap shop/c2 and 7 more: exists already"},
		},
		"requests": {
			reason: "the object is named once, and the cause is the same",
			messages: []objects.Message{
				{Object: "ConfigMap shop/a", Text: `create ConfigMap shop/a: configmaps "a" is forbidden: no quota`},
				{Object: "apps Deployment shop/b", Text: `dry-run apply apps Deployment shop/b: Deployment.apps "b" is forbidden: no quota`},
				{Object: "Deployment shop/b", Text: `dry-run apply apps Deployment shop/b: Deployment.apps "b" is invalid: spec.selector: is immutable`},
			},
			want: []string{"ConfigMap shop/a, apps Deployment shop/b: is forbidden: no quota", "Deployment shop/b: is invalid: spec.selector: is immutable"},
		},
		"namespace": {
			reason: "a missing namespace is named, for any name of the object",
			messages: []objects.Message{
				{Object: "ConfigMap shop/shop", Text: `create ConfigMap shop/shop: namespaces "shop" not found`},
				{Object: "Namespace shop", Text: `apply Namespace shop: namespaces "shop" is forbidden: no`},
			},
			want: []string{`ConfigMap shop/shop: namespaces "shop" not found`, "Namespace shop: is forbidden: no"},
		},
		"others": {
			reason: "a text about something else stays as it is, and so does the order",
			messages: []objects.Message{
				{Object: "ConfigMap shop/a", Text: `secrets "b" is forbidden: x`}, {Object: "Shop a", Text: "condition Ready: is False"},
				{Object: "Secret b", Text: `the webhook "b" says: no`},
			},
			want: []string{`ConfigMap shop/a: secrets "b" is forbidden: x`, "Shop a: condition Ready: is False", `Secret b: the webhook "b" says: no`},
		},
	} {
		var got []string
		for _, group := range objects.GroupMessages(tc.messages) {
			got = append(got, group.String())
		}
		require.Equal(t, tc.want, got, name, ": ", tc.reason)
	}

	long := objects.GroupMessages([]objects.Message{{Object: "ConfigMap shop/a", Text: strings.Repeat("é", 1000)}})[0].String()
	if n := utf8.RuneCountInString(long); n != limits.LineRunes || !strings.HasSuffix(long, "é…") {
		t.Errorf("a long text has %d characters: %s", n, long)
	}
}

func TestKeepField(t *testing.T) {
	t.Parallel()
	for key, deletes := range map[objects.Key]bool{
		{Group: "apps", Kind: "Deployment"}:                       true,
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
		{Kind: "Service"}:                    true,
		{Kind: "Secret"}:                     false,
		{Kind: "Namespace"}:                  false,
		{Kind: "PersistentVolumeClaim"}:      false,
		{Group: "apps", Kind: "StatefulSet"}: false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
		{Group: "shop.example.com", Kind: "Database"}:                     false,
	} {
		require.Equal(t, deletes, strings.Contains(apinames.Default.KeepField(key), "Recreate"), fmt.Sprintf("%s: %s", key, apinames.Default.KeepField(key)))
	}
}
