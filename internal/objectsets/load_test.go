package objectsets_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// loaded loads a set with one object. Only Nodes and ClusterRoles are cluster-scoped in its
// cluster.
func loaded(t *testing.T, namespace, apiVersion, kind string, metadata map[string]any) *engine.Revision {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
	require.NoError(t, err)
	set := corev1alpha1.ScopeOf(namespace).NewObjectSet()
	set.SetNamespace(namespace)
	set.ObjectSetSpec().Phases = []corev1alpha1.ObjectSetTemplatePhase{{
		Name: "one", Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: text}}},
	}}
	return objectsets.Load(set, objectsets.Stored{}, objects.Owner{Names: apinames.Default}, func(gk schema.GroupKind, _ string) (namespaced, known bool) {
		return gk.Kind != "ClusterRole", gk.Kind != "Unknown"
	})
}

// TestLoadLeavesOutWhatHasNoPath: an object with an invalid key is a problem of its
// revision, and is neither looked up nor waited for.
func TestLoadLeavesOutWhatHasNoPath(t *testing.T) {
	t.Parallel()
	named := func(name string) map[string]any { return map[string]any{"name": name} }
	placed := func(name, namespace string) map[string]any {
		return map[string]any{"name": name, "namespace": namespace}
	}
	for name, tc := range map[string]struct {
		namespace, apiVersion, kind string
		metadata                    map[string]any
		says                        string
	}{
		"fine":                     {"shop", "v1", "ConfigMap", named("a"), ""},
		"of RBAC":                  {"shop", "rbac.authorization.k8s.io/v1", "Role", named("system:a%20"), "is not a valid name"},
		"with a colon":             {"shop", "rbac.authorization.k8s.io/v1", "Role", named("system:a"), ""},
		"unknown":                  {"shop", "example.com/v1", "Unknown", named("a"), ""},
		"path as name":             {"shop", "v1", "ConfigMap", named("../../x"), "is not a valid name"},
		"dots as name":             {"shop", "v1", "ConfigMap", named(".."), "is not a valid name"},
		"long name":                {"shop", "v1", "ConfigMap", named(strings.Repeat("a", 254)), "the limit is 253"},
		"made-up name":             {"shop", "v1", "ConfigMap", map[string]any{"generateName": "a-"}, "metadata.name are required"},
		"path as group":            {"shop", "../v1", "ConfigMap", named("a"), "is not a valid API group"},
		"slashes":                  {"shop", "a/b/c", "ConfigMap", named("a"), "apiVersion, kind"},
		"path as version":          {"shop", "apps/..", "ConfigMap", named("a"), "is not a valid API version"},
		"path as kind":             {"shop", "v1", "Config/Map", named("a"), "is not a valid kind"},
		"no kind":                  {"shop", "v1", "", named("a"), "apiVersion, kind"},
		"path as namespace":        {"", "v1", "ConfigMap", placed("a", "a/b"), "is not a valid namespace"},
		"no namespace":             {"", "v1", "ConfigMap", named("a"), "metadata.namespace is required"},
		"other namespace":          {"shop", "v1", "ConfigMap", placed("a", "b"), "same namespace"},
		"cluster-scoped":           {"shop", "rbac.authorization.k8s.io/v1", "ClusterRole", placed("a", "shop"), "namespace scoped"},
		"cluster-scoped, nowhere":  {"shop", "rbac.authorization.k8s.io/v1", "ClusterRole", named("a"), "namespace scoped"},
		"needless namespace":       {"", "rbac.authorization.k8s.io/v1", "ClusterRole", placed("a", "b"), ""},
		"metadata that are a list": {"shop", "v1", "ConfigMap", nil, "metadata.name are required"},
	} {
		rev := loaded(t, tc.namespace, tc.apiVersion, tc.kind, tc.metadata)
		if !strings.Contains(rev.Blocked(), tc.says) || (rev.Blocked() == "") != (tc.says == "") {
			t.Errorf("%s: it has %q, want %q", name, rev.Blocked(), tc.says)
		}
		if got := len(rev.Keys()); got != 0 && tc.says != "" || got != 1 && tc.says == "" {
			t.Errorf("%s: the revision has %v", name, rev.Keys())
		}
	}
}

// TestLoadRefusesGeneratedPackages: the mark of packages that the engine installs for others blocks
// a revision.
func TestLoadRefusesGeneratedPackages(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		namespace, kind, value string
		refused                bool
	}{
		{"shop", "Package", "true", true},
		{"", "ClusterPackage", "true", true},
		{"shop", "Package", "false", false},
		{"shop", "ConfigMap", "true", false},
	} {
		apiVersion := corev1alpha1.GroupVersion.String()
		if tc.kind == "ConfigMap" {
			apiVersion = "v1"
		}
		rev := loaded(t, tc.namespace, apiVersion, tc.kind, map[string]any{
			"name": "a", "namespace": tc.namespace, "labels": map[string]any{corev1alpha1.GeneratedLabel: tc.value},
		})
		if got := strings.Contains(rev.Blocked(), "metadata.labels["+corev1alpha1.GeneratedLabel+"] must not be set"); got != tc.refused || !got && rev.Blocked() != "" {
			t.Errorf("%s %s: it says %q", tc.kind, tc.value, rev.Blocked())
		}
	}
}

// TestOfEngine: every object that config installs is reserved for the engine's own
// package, and others are not.
func TestOfEngine(t *testing.T) {
	t.Parallel()
	const ns = corev1alpha1.DefaultNamespace
	shop, own := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Namespace: "shop", Name: corev1alpha1.EnginePackage}}, objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Name: corev1alpha1.EnginePackage}}
	installed, err := config.Objects(config.FolderNamespace, config.FolderCRDs, config.FolderRBAC, config.FolderAdmission, config.FolderFlowControl, config.FolderManager,
		config.FolderTenancy, config.FolderAgent, config.FolderAgentAllNamespaces)
	require.NoError(t, err)
	keys := []objects.Key{
		{Group: "coordination.k8s.io", Kind: "Lease", Namespace: ns, Name: corev1alpha1.LeaderElectionLease},
		{Group: "coordination.k8s.io", Kind: "Lease", Namespace: ns, Name: corev1alpha1.AgentLeaderElectionLease},
		{Kind: "Secret", Namespace: ns, Name: "lockstep-agent-target"},
	}
	for _, o := range installed {
		keys = append(keys, objects.Key{Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	for _, key := range keys {
		if objectsets.OfEngine(shop, ns)(key) == "" {
			t.Errorf("a package can have %s", key)
		}
		require.Equal(t, "", objectsets.OfEngine(own, ns)(key), fmt.Sprintf("the package of the engine cannot have %s", key))
	}
	for _, key := range []objects.Key{
		{Kind: "Namespace", Name: "shop"},
		{Kind: "ConfigMap", Namespace: ns, Name: "settings"},
		{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "lockstep-manager"},
		{Group: "apps", Kind: "Deployment", Namespace: "hcp-a", Name: "lockstep-agent"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "things.example.com"},
		{Group: corev1alpha1.GroupVersion.Group, Kind: "Package", Namespace: ns, Name: "shop"},
	} {
		require.Equal(t, "", objectsets.OfEngine(shop, ns)(key), key)
	}
}

// TestRejectReserved: reserved objects block their revision, once, and are never deleted.
func TestRejectReserved(t *testing.T) {
	t.Parallel()
	rev := loaded(t, "shop", "v1", "ConfigMap", map[string]any{"name": "a"})
	objectsets.RejectReserved(rev, func(objects.Key) string { return "" })
	if rev.Blocked() != "" {
		t.Fatalf("it is blocked: %s", rev.Blocked())
	}
	for range 2 {
		objectsets.RejectReserved(rev, func(key objects.Key) string { return fmt.Sprintf("%s is not yours", key.Name) })
	}
	d := rev.Phases[0].Objects[0]
	if rev.Blocked() != "ConfigMap shop/a: a is not yours" || !d.Keep || !d.Reserved {
		t.Errorf("it is blocked by %q, keep: %t, reserved: %t", rev.Blocked(), d.Keep, d.Reserved)
	}
}

func TestRecordsOfJobs(t *testing.T) {
	t.Parallel()
	a, b := objects.Key{Group: "batch", Kind: "Job", Namespace: "n", Name: "a"}, objects.Key{Group: "batch", Kind: "Job", Namespace: "n", Name: "b"}
	runs := map[objects.Key]phases.Run{
		b: {Content: objects.Digest{1, 2}, Outcome: objects.Failed}, a: {Content: objects.Digest{3}, Outcome: objects.Succeeded},
	}
	records := objectsets.Records(runs)
	want := []corev1alpha1.JobRecord{
		{Group: "batch", Kind: "Job", Namespace: "n", Name: "a", ContentHash: "03" + strings.Repeat("0", 30), Result: "Succeeded"},
		{Group: "batch", Kind: "Job", Namespace: "n", Name: "b", ContentHash: "0102" + strings.Repeat("0", 28), Result: "Failed"},
	}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Fatalf("the Jobs on the status:\n%s", diff)
	}
	byHand := []corev1alpha1.JobRecord{
		{Kind: "Job", Name: "short", ContentHash: "03", Result: "Succeeded"},
		{Kind: "Job", Name: "no hash", ContentHash: strings.Repeat("z", 32), Result: "Succeeded"},
		{Kind: "Job", Name: "no result", ContentHash: strings.Repeat("0", 32), Result: "Perhaps"},
	}
	got := objectsets.Recorded(&corev1alpha1.ObjectDeploymentStatus{Jobs: append(byHand, records...)})
	require.Equal(t, runs, got, "the Jobs that are read back")
}

// observed is a cluster with these observed objects.
type observed struct {
	cluster.Cluster
	objects map[objects.Key]*objects.Observed
}

func (o observed) Observed(key objects.Key) (*objects.Observed, bool) {
	obs, ok := o.objects[key]
	return obs, ok
}

func (observed) State(schema.GroupKind) livestate.KindState {
	return livestate.KindState{Served: true, Synced: true}
}

func (observed) Passed(schema.GroupKind, string) bool { return true }

// TestMapped: conditions are mapped by object, not by its name alone. Conditions of an older
// generation or of an invalid form are ignored.
func TestMapped(t *testing.T) {
	t.Parallel()
	web, other := objects.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, objects.Key{Kind: "Service", Namespace: "shop", Name: "web"}
	maps := func(pairs ...string) (all []objects.ConditionMapping) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, objects.ConditionMapping{SourceType: pairs[i], DestinationType: pairs[i+1]})
		}
		return all
	}
	rev := &engine.Revision{Revision: phases.Revision{Phases: []phases.Phase{{Name: "one", Objects: []*objects.Desired{
		{Key: web, Mappings: maps("Ready", "example.com/Web", "Old", "example.com/Old")}, {Key: other, Mappings: maps("Ready", "example.com/Service")},
	}}}}}
	seen := observed{objects: map[objects.Key]*objects.Observed{
		web: {Generation: 2, Trimmed: []byte(`{"status":{"conditions":[
			{"type":"Ready","status":"True","reason":"Yes","observedGeneration":2},{"type":"Old","status":"True","reason":"Was","observedGeneration":1},
			{"status":"True"},"text",null,7]}}`)},
		other: {Generation: 1, Trimmed: []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"No"}]}}`)},
	}}
	mapped, left := objectsets.Mapped(rev, seen, []objects.Key{web, other})
	want := []metav1.Condition{
		{Type: "example.com/Web", Status: "True", Reason: "Yes"}, {Type: "example.com/Service", Status: "False", Reason: "No"},
	}
	if diff := cmp.Diff(want, mapped); diff != "" || left != 0 {
		t.Errorf("%d are left out; %s", left, diff)
	}
}
