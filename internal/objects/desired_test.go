package objects_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

func metadata() objects.ManagedMetadata {
	return objects.ManagedMetadata{
		Labels:   map[string]string{"package-operator.run/package": "app", "package-operator.run/version": "1.2.3"},
		Revision: 7,
		Owner:    objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}, UID: "owner"},
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	config := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "x"}
	secret := objects.Key{Kind: "Secret", Namespace: "n", Name: "x"}
	for _, tc := range []struct {
		name, reason string
		key          objects.Key
		raw, want    string
	}{
		{
			name: "plain", reason: "labels, revision and controller are stamped on",
			key: config, raw: `{"metadata":{"name":"x"},"data":{"a":"b"}}`,
			want: `{"metadata":{"name":"x","namespace":"n",
				"labels":{"package-operator.run/cache":"True","package-operator.run/package":"app","package-operator.run/version":"1.2.3"},
				"annotations":{"package-operator.run/revision":"7"},
				"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"app","uid":"owner","controller":true}]},
				"data":{"a":"b"}}`,
		},
		{
			name: "labelled", reason: "the author's labels and annotations stay, ours win",
			key: config, raw: `{"metadata":{"name":"x","labels":{"app":"web","package-operator.run/package":"other","package-operator.run/cache":"False"},
				"annotations":{"note":"hi","package-operator.run/revision":"999"}}}`,
			want: `{"metadata":{"name":"x","namespace":"n",
				"labels":{"app":"web","package-operator.run/cache":"True","package-operator.run/package":"app","package-operator.run/version":"1.2.3"},
				"annotations":{"note":"hi","package-operator.run/revision":"7"},
				"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"app","uid":"owner","controller":true}]}}`,
		},
		{
			name: "left by a generator", reason: "status and creation time are not applied, null maps are not maps",
			key: config, raw: `{"metadata":{"name":"x","namespace":"n","creationTimestamp":null,"labels":null,"annotations":null},"status":{}}`,
			want: `{"metadata":{"name":"x","namespace":"n",
				"labels":{"package-operator.run/cache":"True","package-operator.run/package":"app","package-operator.run/version":"1.2.3"},
				"annotations":{"package-operator.run/revision":"7"},
				"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"app","uid":"owner","controller":true}]}}`,
		},
		{
			name: "cluster-scoped", reason: "a namespace is taken off",
			key: objects.Key{Kind: "Namespace", Name: "x"}, raw: `{"metadata":{"name":"x","namespace":"n"}}`,
			want: `{"metadata":{"name":"x",
				"labels":{"package-operator.run/cache":"True","package-operator.run/package":"app","package-operator.run/version":"1.2.3"},
				"annotations":{"package-operator.run/revision":"7"},
				"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"app","uid":"owner","controller":true}]}}`,
		},
		{
			name: "secret", reason: "stringData is never returned, so drift could not be seen in it; it wins over data",
			key: secret, raw: `{"metadata":{"name":"x"},"data":{"a":"b2xk","b":"Yg=="},"stringData":{"a":"new","c":""}}`,
			want: `{"metadata":{"name":"x","namespace":"n",
				"labels":{"package-operator.run/cache":"True","package-operator.run/package":"app","package-operator.run/version":"1.2.3"},
				"annotations":{"package-operator.run/revision":"7"},
				"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"app","uid":"owner","controller":true}]},
				"data":{"a":"bmV3","b":"Yg==","c":""}}`,
		},
		{
			name: "a Secret of another group", reason: "only the core kind has stringData",
			key: objects.Key{Group: "example.com", Kind: "Secret", Namespace: "n", Name: "x"}, raw: `{"metadata":{"name":"x"},"stringData":{"a":"b"}}`,
			want: `{"metadata":{"name":"x","namespace":"n",
				"labels":{"package-operator.run/cache":"True","package-operator.run/package":"app","package-operator.run/version":"1.2.3"},
				"annotations":{"package-operator.run/revision":"7"},
				"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"app","uid":"owner","controller":true}]},
				"stringData":{"a":"b"}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := &objects.Desired{Key: tc.key, Version: "v1", Raw: []byte(tc.raw)}
			obj, err := d.Object(metadata())
			require.NoError(t, err)
			var want map[string]any
			require.NoError(t, json.Unmarshal([]byte(tc.want), &want))
			require.Equal(t, want, obj, tc.reason)
			if string(d.Raw) != tc.raw {
				t.Errorf("the template was changed: %s", d.Raw)
			}
		})
	}
}

func TestObjectKeepsIntegers(t *testing.T) {
	t.Parallel()
	d := &objects.Desired{
		Key: objects.Key{Kind: "Service", Namespace: "n", Name: "x"},
		Raw: []byte(`{"metadata":{"name":"x"},"spec":{"port":8080,"big":9007199254740993,"share":0.5}}`),
	}
	obj, err := d.Object(metadata())
	require.NoError(t, err)
	want := map[string]any{"port": int64(8080), "big": int64(9007199254740993), "share": 0.5}
	require.Equal(t, want, obj["spec"], "numbers changed")
}

func TestObjectsDoNotShare(t *testing.T) {
	t.Parallel()
	d := &objects.Desired{Key: objects.Key{Kind: "ConfigMap", Name: "x"}, Raw: []byte(`{"metadata":{"name":"x"}}`)}
	s := metadata()
	first, err := d.Object(s)
	require.NoError(t, err)
	first["metadata"].(map[string]any)["labels"].(map[string]any)["mine"] = "1"
	second, err := d.Object(s)
	require.NoError(t, err)
	if _, shared := second["metadata"].(map[string]any)["labels"].(map[string]any)["mine"]; shared || len(s.Labels) != 2 {
		t.Error("two objects of one template share their labels")
	}
}

func TestObjectRefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{`, `{}`, `{"metadata":"x"}`, `[]`} {
		d := &objects.Desired{Key: objects.Key{Kind: "ConfigMap", Name: "x"}, Raw: []byte(raw)}
		if _, err := d.Object(metadata()); err == nil || !strings.Contains(err.Error(), "ConfigMap x") {
			t.Errorf("%s: the error has to name the object: %v", raw, err)
		}
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	owner := metadata().Owner
	ref := func(apiVersion, kind, name, uid string) *objects.Reference {
		return &objects.Reference{OwnerReference: metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid)}}
	}

	for _, tc := range []struct {
		reason       string
		ref          *objects.Reference
		is, namesake bool
	}{
		{"no reference", nil, false, false},
		{"the owner", ref("package-operator.run/v1alpha1", "ObjectDeployment", "app", "owner"), true, true},
		{"restored with another UID", ref("package-operator.run/v1alpha1", "ObjectDeployment", "app", "former"), false, true},
		{"a later version of the API", ref("package-operator.run/v1", "ObjectDeployment", "app", "former"), false, true},
		{"the cluster form", ref("package-operator.run/v1alpha1", "ClusterObjectDeployment", "app", "x"), false, false},
		{"another name", ref("package-operator.run/v1alpha1", "ObjectDeployment", "other", "x"), false, false},
		{"a kind of that name in another group", ref("apps/v1", "ObjectDeployment", "app", "x"), false, false},
		{"no version at all", ref("a/b/c", "ObjectDeployment", "app", "x"), false, false},
	} {
		if owner.Is(tc.ref) != tc.is || owner.SameName(tc.ref) != tc.namesake {
			t.Errorf("%s: is %t, namesake %t", tc.reason, owner.Is(tc.ref), owner.SameName(tc.ref))
		}
	}

	meta := map[string]any{}
	owner.Put(meta)
	if _, blocks := meta["ownerReferences"].([]any)[0].(map[string]any)["blockOwnerDeletion"]; blocks {
		t.Error("teardown is ours: references must not set blockOwnerDeletion")
	}
}

func TestWellKnown(t *testing.T) {
	t.Parallel()
	given := map[string]string{
		"package-operator.run/package": "a", "package-operator.run/instance": "b", "package-operator.run/version": "c",
		"package-operator.run/provider": "d", "package-operator.run/object-deployment": "e", "app": "f",
	}
	want := map[string]string{
		"package-operator.run/package": "a", "package-operator.run/instance": "b", "package-operator.run/version": "c",
		"package-operator.run/provider": "d",
	}
	if diff := cmp.Diff(want, apinames.Default.Inherited(given)); diff != "" || len(given) != 6 {
		t.Errorf("objects carry the well-known labels only, and the set keeps its own (%d):\n%s", len(given), diff)
	}
}
