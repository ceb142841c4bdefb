package objects_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/limits"
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
	stamps := strings.NewReplacer(
		"%STAMPS%", `"labels":{%LABELS%},"annotations":{"package-operator.run/revision":"7"},%OWNER%`,
		"%LABELS%", `"package-operator.run/cache":"True","package-operator.run/package":"app","package-operator.run/version":"1.2.3"`,
		"%OWNER%", `"ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","name":"app","uid":"owner","controller":true}]`,
	)
	for _, tc := range []struct {
		name, reason string
		key          objects.Key
		raw, want    string
	}{
		{"plain", "labels, revision and controller are stamped on",
			config, `{"metadata":{"name":"x"},"data":{"a":"b"}}`, `{"metadata":{"name":"x","namespace":"n",%STAMPS%},"data":{"a":"b"}}`},
		{"labelled", "the author's labels and annotations stay, ours win",
			config, `{"metadata":{"name":"x","labels":{"app":"web","package-operator.run/package":"other","package-operator.run/cache":"False"},
				"annotations":{"note":"hi","package-operator.run/revision":"999"}}}`,
			`{"metadata":{"name":"x","namespace":"n","labels":{"app":"web",%LABELS%},
				"annotations":{"note":"hi","package-operator.run/revision":"7"},%OWNER%}}`},
		{"left by a generator", "status and creation time are not applied, null maps are not maps",
			config, `{"metadata":{"name":"x","namespace":"n","creationTimestamp":null,"labels":null,"annotations":null},"status":{}}`,
			`{"metadata":{"name":"x","namespace":"n",%STAMPS%}}`},
		{"cluster-scoped", "a namespace is taken off",
			objects.Key{Kind: "Namespace", Name: "x"}, `{"metadata":{"name":"x","namespace":"n"}}`, `{"metadata":{"name":"x",%STAMPS%}}`},
		{"secret", "stringData is never returned, so drift could not be seen in it; it wins over data",
			secret, `{"metadata":{"name":"x"},"data":{"a":"b2xk","b":"Yg=="},"stringData":{"a":"new","c":""}}`,
			`{"metadata":{"name":"x","namespace":"n",%STAMPS%},"data":{"a":"bmV3","b":"Yg==","c":""}}`},
		{"other values in a secret", "the API server has to refuse it without quoting a value; as it does, null is an empty text",
			secret, `{"metadata":{"name":"x"},"data":{"d":1234},"stringData":{"a":["b"],"b":true,"c":null}}`,
			`{"metadata":{"name":"x","namespace":"n",%STAMPS%},"data":{"a":{},"b":{},"c":"","d":{}}}`},
		{"data of a secret alone", "it is refused in the same way",
			secret, `{"metadata":{"name":"x"},"data":{"a":1234,"b":"Yg=="}}`, `{"metadata":{"name":"x","namespace":"n",%STAMPS%},"data":{"a":{},"b":"Yg=="}}`},
		{"data that is no mapping", "the API server has to refuse it",
			secret, `{"metadata":{"name":"x"},"data":"text","stringData":{"a":"b"}}`,
			`{"metadata":{"name":"x","namespace":"n",%STAMPS%},"data":"text","stringData":{"a":"b"}}`},
		{"a Secret of another group", "only the core kind has stringData",
			objects.Key{Group: "example.com", Kind: "Secret", Namespace: "n", Name: "x"}, `{"metadata":{"name":"x"},"stringData":{"a":"b"}}`,
			`{"metadata":{"name":"x","namespace":"n",%STAMPS%},"stringData":{"a":"b"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := &objects.Desired{Key: tc.key, Version: "v1", Raw: []byte(tc.raw)}
			obj, err := d.Object(metadata())
			require.NoError(t, err)
			var want map[string]any
			require.NoError(t, json.Unmarshal([]byte(stamps.Replace(stamps.Replace(tc.want))), &want))
			require.Equal(t, want, obj, tc.reason)
			require.Equal(t, tc.raw, string(d.Raw), fmt.Sprintf("the template was changed: %s", d.Raw))
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

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	condition := func(typ, status string) map[string]any { return map[string]any{"type": typ, "status": status} }
	for name, tc := range map[string]struct {
		conditions any
		want       objects.Outcome
	}{
		"no status":           {},
		"suspended":           {conditions: []any{condition("Suspended", "True")}},
		"complete":            {conditions: []any{condition("Suspended", "False"), condition("Complete", "True")}, want: objects.Succeeded},
		"criteria met":        {conditions: []any{condition("SuccessCriteriaMet", "True")}, want: objects.Succeeded},
		"not complete":        {conditions: []any{condition("Complete", "False")}},
		"about to fail":       {conditions: []any{condition("FailureTarget", "True")}},
		"failed":              {conditions: []any{condition("FailureTarget", "True"), condition("Failed", "True")}, want: objects.Failed},
		"not as it has to be": {conditions: []any{"Complete", nil, 7}},
		"no list":             {conditions: "Complete"},
	} {
		job := map[string]any{}
		if tc.conditions != nil {
			job["status"] = map[string]any{"conditions": tc.conditions}
		}
		require.Equal(t, tc.want, objects.OutcomeOf(job), name)
	}
}

// TestHeldBy checks that the reason quotes the finalizers and only conditions about the deletion.
func TestHeldBy(t *testing.T) {
	t.Parallel()
	condition := func(typ, status, message string) any {
		return map[string]any{"type": typ, "status": status, "message": message}
	}

	for _, tc := range []struct {
		reason     string
		finalizers []string
		conditions []any
		want       string
	}{
		{"no finalizer holds it", nil, nil, ""},
		{"the garbage collector ends the pods", []string{"a", "foregroundDeletion"}, nil, "held by finalizer a; waits for its pods and other dependents to end"},
		{"finalizers", []string{"a", "b"}, nil, "held by finalizer a, b"},
		{
			"a namespace", nil, []any{
				condition("NamespaceDeletionDiscoveryFailure", "True", "Discovery failed for some groups, 1 failing"),
				condition("NamespaceDeletionContentFailure", "False", "All content successfully deleted"),
				condition("NamespaceContentRemaining", "True", "Some resources are remaining: gauges.example.com has 1 resource instances"),
			}, "NamespaceDeletionDiscoveryFailure: Discovery failed for some groups, 1 failing; NamespaceContentRemaining: Some resources are remaining: gauges.example.com has 1 resource instances",
		},
		{
			"a definition", []string{"customresourcecleanup.apiextensions.k8s.io"}, []any{
				condition("Established", "True", "the initial names have been accepted"), condition("Terminating", "True", "CustomResource deletion is in progress"), "garbage",
			}, "held by finalizer customresourcecleanup.apiextensions.k8s.io; Terminating: CustomResource deletion is in progress",
		},
	} {
		require.Equal(t, tc.want, objects.HeldBy(tc.finalizers, tc.conditions), tc.reason)
	}

	long := strings.Repeat("ä", limits.HeldBytes)
	if got := objects.HeldBy([]string{long}, []any{condition("Terminating", "True", long)}); len(got) > limits.HeldBytes+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}

// TestCollectedSince checks that the time is set only for objects that own no pods and that only
// the garbage collector holds.
func TestCollectedSince(t *testing.T) {
	t.Parallel()
	deleted := metav1.Unix(1_700_000_000, 0)
	database, deployment := schema.GroupKind{Group: "example.com", Kind: "Database"}, schema.GroupKind{Group: "apps", Kind: "Deployment"}
	collector := metav1.FinalizerDeleteDependents
	for _, tc := range []struct {
		reason     string
		kind       schema.GroupKind
		deleted    *metav1.Time
		finalizers []string
		want       int64
	}{
		{reason: "not deleted", kind: database, finalizers: []string{collector}},
		{reason: "in the background", kind: database, deleted: &deleted},
		{reason: "in the foreground", kind: database, deleted: &deleted, finalizers: []string{collector}, want: 1_700_000_000},
		{reason: "a controller holds it, too", kind: database, deleted: &deleted, finalizers: []string{"a/b", collector}},
		{reason: "its pods are awaited however long they take", kind: deployment, deleted: &deleted, finalizers: []string{collector}},
	} {
		require.Equal(t, tc.want, objects.CollectedSince(tc.kind, tc.deleted, tc.finalizers), tc.reason)
	}
}
