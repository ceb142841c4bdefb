package dryrun

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var obj map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &obj))
	return obj
}

// TestDifferences omits the fields that the API server and the engine maintain, and shows no value
// of a Secret.
func TestDifferences(t *testing.T) {
	t.Parallel()
	before := &unstructured.Unstructured{Object: decode(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","uid":"1","resourceVersion":"1","generation":1,
		"labels":{"package-operator.run/version":"1","package-operator.run/cache":"True"},"annotations":{"package-operator.run/revision":"1","kubectl.kubernetes.io/last-applied-configuration":"hunter2"}},
		"data":{"password":"aHVudGVyMg=="},"status":{"a":1}}`)}
	after := &unstructured.Unstructured{Object: decode(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","uid":"2","resourceVersion":"2","generation":2,
		"labels":{"package-operator.run/version":"2","team":"blue"},"annotations":{"package-operator.run/revision":"2"}},
		"data":{"password":"aHVudGVyMw=="}}`)}
	fields := Differences(before, after)
	var paths []string
	for _, f := range fields {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"data.password", "metadata.annotations", "metadata.labels"}, paths)
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	for _, secret := range []string{"hunter", "aHVudGVy"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s is shown: %s", secret, raw)
		}
	}
}

// TestDifferencesByKeysOfTheSchema reads the keys of a list, and the managers of its elements, from
// managedFields.
func TestDifferencesByKeysOfTheSchema(t *testing.T) {
	t.Parallel()
	before := &unstructured.Unstructured{Object: decode(t, `{"apiVersion":"example.com/v1","kind":"Router","spec":{"routes":[{"id":"x","port":80},{"id":"y","port":81}]}}`)}
	after := before.DeepCopy()
	after.Object["spec"] = decode(t, `{"routes":[{"id":"y","port":90},{"id":"z","port":80}]}`)
	before.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "editor", Operation: "Update", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:routes":{"k:{\"id\":\"y\"}":{".":{},"f:id":{},"f:port":{}}}}}`),
	}})
	want := []Field{
		{Change: objectdiff.Change{Path: "spec.routes[id=x]", Before: map[string]any{"id": "x", "port": 80.0}}},
		{Change: objectdiff.Change{Path: "spec.routes[id=y].port", Before: 81.0, After: 90.0}, Managers: []string{"editor"}},
		{Change: objectdiff.Change{Path: "spec.routes[id=z]", After: map[string]any{"id": "z", "port": 80.0}}},
	}
	require.Equal(t, want, Differences(before, after))
}

// TestOverlay merges a template over live values if no dry run is possible.
func TestOverlay(t *testing.T) {
	t.Parallel()
	live := decode(t, `{"spec":{"replicas":1,"containers":[{"name":"a","image":"1","pull":"Always"},{"name":"gone"}],"args":["x"],"ports":[{"port":80,"protocol":"TCP"}]}}`)
	overlay(live, decode(t, `{"spec":{"containers":[{"name":"a","image":"2"},{"name":"new"}],"args":["y"],"ports":[{"port":80,"targetPort":1}]}}`))
	want := decode(t, `{"spec":{"replicas":1,"containers":[{"name":"a","image":"2","pull":"Always"},{"name":"new"}],"args":["y"],"ports":[{"port":80,"protocol":"TCP","targetPort":1}]}}`)
	require.Equal(t, want, live)
}

// TestOverlayByName is about lists with some unidentified elements.
func TestOverlayByName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ reason, live, template, want string }{
		{
			"a name that is there twice", `[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"x"}}},{"name":"B","value":"1"},{"name":"B","value":"2"}]`,
			`[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"y"}}},{"name":"B","value":"1"},{"name":"B","value":"2"}]`,
			`[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"y"}}},{"name":"B","value":"1"},{"name":"B","value":"2"}]`,
		},
		{
			"one without a key", `[{"name":"a","port":1},{"name":"b","port":2},{"cel":"x","port":3}]`,
			`[{"name":"a"},{"name":"b"},{"cel":"c"}]`, `[{"name":"a","port":1},{"name":"b","port":2},{"cel":"c"}]`,
		},
		{"plain values among them", `["x",{"name":"a","port":1}]`, `["x",{"name":"a"}]`, `["x",{"name":"a","port":1}]`},
	} {
		live := decode(t, `{"list":`+tc.live+`}`)
		overlay(live, decode(t, `{"list":`+tc.template+`}`))
		require.Equal(t, decode(t, `{"list":`+tc.want+`}`), live, tc.reason)
	}
}

// Resources that the package deletes before their definition are not lost, and resources that its
// controller outlives do not hang.
func TestResourcesOfDefinition(t *testing.T) {
	t.Parallel()
	group := schema.GroupVersion{Group: "drain.example.com", Version: "v1"}
	definition := &crdType{}
	definition.Spec.Group, definition.Spec.Names.Kind, definition.Spec.Names.Plural = group.Group, "Tank", "tanks"
	for reason, tc := range map[string]struct{ phases, others, lost, held string }{
		"own ones go first": {phases: "controller own front"},
		"own ones go last":  {phases: "own controller", held: "own"},
		"another one":       {phases: "controller own", others: "a", lost: "the only other object of its kind is deleted with it", held: "a"},
		"others":            {phases: "controller own", others: "a b", lost: "all 2 other tanks are deleted with it", held: "a b"},
		"no own ones":       {phases: "controller", others: "a b", lost: "all 2 tanks are deleted with it", held: "a b"},
	} {
		scheme := metadatafake.NewTestScheme()
		require.NoError(t, metav1.AddMetaToScheme(scheme))
		c := metadatafake.NewSimpleMetadataClient(scheme)
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
		mapper.Add(group.WithKind("Tank"), meta.RESTScopeRoot)
		s := &simulation{simulatedCluster: &simulatedCluster{Cluster: &Cluster{Metadata: c, Mapper: mapper}, objects: map[objects.Key]*object{}}}
		rev, tanks := &engine.Revision{}, strings.Fields(tc.others)
		for _, name := range strings.Fields(tc.phases) {
			key := objects.Key{Group: "apps", Kind: "Deployment", Name: name}
			if name == "own" {
				key, tanks = objects.Key{Group: group.Group, Kind: "Tank", Name: name}, append(tanks, name)
			}
			s.objects[key] = &object{live: &unstructured.Unstructured{}}
			rev.Phases = append(rev.Phases, phases.Phase{Objects: []*objects.Desired{{Key: key}}})
		}
		for _, name := range tanks {
			m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"drain"}}}
			m.SetGroupVersionKind(group.WithKind("Tank"))
			require.NoError(t, c.Tracker().Add(m))
		}
		want := ""
		if tc.held != "" {
			want = "waits for Tank " + strings.ReplaceAll(tc.held, " ", " (finalizer drain), Tank ") + " (finalizer drain), whose controller"
		}
		held, err := s.held(t.Context(), rev, definition)
		require.NoError(t, err)
		if lost := s.resourcesGo(t.Context(), definition); lost != tc.lost || !strings.HasPrefix(held, want) || (held == "") != (want == "") {
			t.Errorf("%s: lost %q, held %q", reason, lost, held)
		}
	}
}

// Sets are written only in memory. If other objects are written, later reads only see deletions.
func TestWritesStayInMemory(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "live"}}
	live := fake.NewClientBuilder().WithObjects(secret.DeepCopy()).Build()
	in, err := newHome(live, nil)
	require.NoError(t, err)
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	if err := in.Create(ctx, set); err != nil || set.UID != newUID {
		t.Errorf("UID %q, %v", set.UID, err)
	}
	if err := in.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		t.Error(err)
	}
	if err := in.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"Yg=="}}`))); err != nil {
		t.Error(err)
	}
	read := &corev1.Secret{}
	if err := in.Get(ctx, client.ObjectKeyFromObject(secret), read); err != nil || len(read.Data) > 0 {
		t.Errorf("%v, %v", read.Data, err)
	}
	if err := in.Delete(ctx, secret.DeepCopy()); err != nil {
		t.Error(err)
	}
	if err := in.Get(ctx, client.ObjectKeyFromObject(secret), read); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted object is read: %v", err)
	}
	if err := live.Get(ctx, client.ObjectKeyFromObject(secret), read); err != nil {
		t.Errorf("it was deleted: %v", err)
	}
}

func rule(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","), ResourceNames: names,
	}
}

// TestUncovered finds the new rights.
func TestUncovered(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason       string
		held, wanted []rbacv1.PolicyRule
		want         []rbacv1.PolicyRule
	}{
		{"the same", []rbacv1.PolicyRule{rule("", "pods", "get,list")}, []rbacv1.PolicyRule{rule("", "pods", "list,get")}, nil},
		{"another verb", []rbacv1.PolicyRule{rule("", "pods", "get")}, []rbacv1.PolicyRule{rule("", "pods", "get,delete")}, []rbacv1.PolicyRule{rule("", "pods", "delete")}},
		{"another resource", []rbacv1.PolicyRule{rule("", "pods", "get")}, []rbacv1.PolicyRule{rule("", "pods,secrets", "get")}, []rbacv1.PolicyRule{rule("", "secrets", "get")}},
		{"covered by two rules together", []rbacv1.PolicyRule{rule("", "pods", "get"), rule("apps", "deployments", "get")}, []rbacv1.PolicyRule{rule("", "pods", "get"), rule("apps", "deployments", "get")}, nil},
		{"all verbs instead of one", []rbacv1.PolicyRule{rule("", "pods", "get")}, []rbacv1.PolicyRule{rule("", "pods", "*")}, []rbacv1.PolicyRule{rule("", "pods", "*")}},
		{"one verb of all", []rbacv1.PolicyRule{rule("*", "*", "*")}, []rbacv1.PolicyRule{rule("apps", "deployments", "get")}, nil},
		{"all names instead of one", []rbacv1.PolicyRule{rule("", "secrets", "get", "web")}, []rbacv1.PolicyRule{rule("", "secrets", "get")}, []rbacv1.PolicyRule{rule("", "secrets", "get")}},
		{"one name of all", []rbacv1.PolicyRule{rule("", "secrets", "get")}, []rbacv1.PolicyRule{rule("", "secrets", "get", "web")}, nil},
		{"another group of that resource", []rbacv1.PolicyRule{rule("apps", "deployments", "get")}, []rbacv1.PolicyRule{rule("extensions", "deployments", "get")}, []rbacv1.PolicyRule{rule("extensions", "deployments", "get")}},
		{"a subresource is another resource", []rbacv1.PolicyRule{rule("", "pods", "create")}, []rbacv1.PolicyRule{rule("", "pods/exec", "create")}, []rbacv1.PolicyRule{rule("", "pods/exec", "create")}},
		{"a subresource of everything", []rbacv1.PolicyRule{rule("apps", "*/scale", "update")}, []rbacv1.PolicyRule{rule("apps", "deployments/scale", "update")}, nil},
		{
			"paths, by their prefix", []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/*"}}},
			[]rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/a", "/healthz"}}},
			[]rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}},
		},
		{"one more name", []rbacv1.PolicyRule{rule("", "secrets", "get", "web")}, []rbacv1.PolicyRule{rule("", "secrets", "get", "web", "db")}, []rbacv1.PolicyRule{rule("", "secrets", "get", "db")}},
		{"one more group", []rbacv1.PolicyRule{rule("apps", "*", "get")}, []rbacv1.PolicyRule{rule("apps,batch", "*", "get")}, []rbacv1.PolicyRule{rule("batch", "*", "get")}},
	} {
		require.Equal(t, tc.want, uncovered(tc.held, tc.wanted), tc.reason)
	}
}

// TestAggregate adds the rules that a cluster role takes over from other roles of the package.
func TestAggregate(t *testing.T) {
	t.Parallel()
	g := newGrants()
	for name, text := range map[string]string{
		"whole": `{"kind":"ClusterRole","aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"part":"yes"}}]},"rules":[]}`,
		"part":  `{"kind":"ClusterRole","metadata":{"labels":{"part":"yes"}},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
		"other": `{"kind":"ClusterRole","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
	} {
		g.add(objects.Key{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, yamltest.Object(t, text))
	}
	g.aggregate()
	want := []rbacv1.PolicyRule{rule("", "secrets", "get")}
	want[0].ResourceNames = nil
	require.Equal(t, want, g.roles[objects.Key{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: "whole"}].Rules)
}

// A template has the objects of slices in their phases. An absent slice is an error.
func TestTemplateOfSlices(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	slice := &corev1alpha1.ObjectSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
		Objects:    []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(`{"kind":"ConfigMap"}`)}}},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(slice).Build()
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "deploy", Slices: []string{slice.Name}}}
	got, err := TemplateOf(t.Context(), reader, corev1alpha1.ScopeNamespaced, set)
	if err != nil || len(got.Phases[0].Objects) != 1 || len(got.Phases[0].Slices) != 0 || len(set.Spec.Phases[0].Slices) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	set.Spec.Phases[0].Slices[0] = "web-2"
	if _, err := TemplateOf(t.Context(), reader, corev1alpha1.ScopeNamespaced, set); err == nil || !strings.Contains(err.Error(), "read slice web-2 of web") {
		t.Error(err)
	}
}
