package dryrun

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"lockstep.run/lockstep/internal/objects"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func rule(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","), ResourceNames: names,
	}
}

// TestOrderOfRemovals is about steps that are performed at the same time.
func TestOrderOfRemovals(t *testing.T) {
	t.Parallel()
	c := &simulatedCluster{reached: true, objects: map[objects.Key]*object{}}
	mapping := &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
	at := map[objects.Key]int{}
	var want []objects.Key
	for batch := range 2 {
		for i := range 50 {
			key := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: fmt.Sprint(batch, "-", i)}
			at[key], want = i-100*batch, append(want, key)
		}
		c.Run(t.Context(), objects.OwnerKey{}, false, 50, func(i int) {
			_, _, _ = c.As(objects.Account{}).Delete(t.Context(), mapping, "n", fmt.Sprint(batch, "-", i), "", "", "")
		})
	}
	if diff := cmp.Diff(want, c.removals(at)); diff != "" {
		t.Fatal(diff)
	}
}

// TestUncovered is about which rights are new.
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
			"paths, by their beginning", []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/*"}}},
			[]rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/a", "/healthz"}}},
			[]rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}},
		},
		{"one more name", []rbacv1.PolicyRule{rule("", "secrets", "get", "web")}, []rbacv1.PolicyRule{rule("", "secrets", "get", "web", "db")}, []rbacv1.PolicyRule{rule("", "secrets", "get", "db")}},
		{"one more group", []rbacv1.PolicyRule{rule("apps", "*", "get")}, []rbacv1.PolicyRule{rule("apps,batch", "*", "get")}, []rbacv1.PolicyRule{rule("batch", "*", "get")}},
	} {
		if diff := cmp.Diff(tc.want, uncovered(tc.held, tc.wanted)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

func crd(t *testing.T, scope, versions string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: decode(t, `{"spec":{"scope":"`+scope+`","names":{"kind":"Widget","plural":"widgets"},"versions":[`+versions+`]}}`)}
}

// TestDefinitionLosses is about what a changed definition takes away.
func TestDefinitionLosses(t *testing.T) {
	t.Parallel()
	version := func(name, flags, properties string) string {
		return `{"name":"` + name + `",` + flags + `,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{` + properties + `}}}}}}`
	}
	const stored, served = `"served":true,"storage":true`, `"served":true,"storage":false`
	size := `"size":{"type":"integer"}`
	nested := `"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}`
	for _, tc := range []struct {
		reason        string
		before, after *unstructured.Unstructured
		want          []string
	}{
		{"the same", crd(t, "Cluster", version("v1", stored, size)), crd(t, "Cluster", version("v1", stored, size)), nil},
		{"a new version and field", crd(t, "Cluster", version("v1", stored, size)), crd(t, "Cluster", version("v1", stored, size+`,"unit":{}`)+","+version("v2", served, size)), nil},
		{"a version less", crd(t, "Cluster", version("v1", stored, size)+","+version("v0", served, size)), crd(t, "Cluster", version("v1", stored, size)), []string{"version v0 is dropped"}},
		{"not served any more", crd(t, "Cluster", version("v1", stored, size)), crd(t, "Cluster", version("v1", `"served":false,"storage":true`, size)), []string{"version v1 is not served any more"}},
		{
			"stored in another version", crd(t, "Cluster", version("v1", stored, size)+","+version("v2", served, size)),
			crd(t, "Cluster", version("v1", served, size)+","+version("v2", stored, size)), []string{"stored in version v2 instead of v1"},
		},
		{"a field less, in a list", crd(t, "Cluster", version("v1", stored, nested)), crd(t, "Cluster", version("v1", stored, strings.Replace(nested, `,"b":{"type":"string"}`, "", 1))), []string{"field .spec.list[].b leaves the schema of v1"}},
		{
			"a field less that is still kept", crd(t, "Cluster", version("v1", stored, `"any":{"type":"object","properties":{"a":{}}}`)),
			crd(t, "Cluster", version("v1", stored, `"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)), nil,
		},
		{
			"fields that were kept without being named", crd(t, "Cluster", version("v1", stored, `"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{}}}`)),
			crd(t, "Cluster", version("v1", stored, `"any":{"type":"object","properties":{"a":{}}}`)), []string{"what .spec.any has that the schema of v1 does not name is kept no more"},
		},
		{"another scope", crd(t, "Cluster", version("v1", stored, size)), crd(t, "Namespaced", version("v1", stored, size)), []string{"spec.scope changes from Cluster to Namespaced"}},
	} {
		got := definitionLosses(definitionOf(tc.before), definitionOf(tc.after))
		if len(got) != len(tc.want) {
			t.Errorf("%s: %v", tc.reason, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], tc.want[i]) {
				t.Errorf("%s: %s", tc.reason, got[i])
			}
		}
	}
}

// TestManagers is about who has a field.
func TestManagers(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	status := entry("controller", `{"f:spec":{"f:replicas":{}}}`)
	status.Subresource = "scale"
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("package-operator", `{"f:spec":{"f:replicas":{}}}`), status,
		entry("autoscaler", `{"f:spec":{"f:replicas":{}}}`),
		entry("editor", `{"f:metadata":{"f:labels":{"f:example.com/team":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}},"f:selector":{},"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{}}},"f:tls":{"k:{\"host\":\"a.example.com,b.example.com\"}":{"f:secret":{}}},"f:env":{"k:{\"name\":\"A,B\"}":{"f:value":{}}}},"f:rules":{}}`),
	})
	m := managersOf(u)
	for path, want := range map[string][]string{
		"spec.replicas": {"autoscaler"},
		"spec.template.spec.containers[name=web].image":     {"editor"},
		"spec.template.spec.containers[name=web]":           {"editor"},
		"spec.template.spec.containers[name=db].image":      nil,
		"spec.ports[port=53,protocol=UDP]":                  {"editor"},
		"spec.ports[port=53,protocol=TCP]":                  nil,
		"spec.ports[protocol=UDP,port=53]":                  {"editor"},
		"spec.ports[port=53]":                               {"editor"},
		"spec.tls[host=a.example.com,b.example.com].secret": {"editor"},
		"spec.tls[host=a.example.com].secret":               nil,
		"spec.env[name=A,B].value":                          {"editor"},
		"spec.env[name=A,B,C].value":                        nil,
		"spec.env[name=A].value":                            nil,
		"spec.selector.matchLabels.app":                     {"editor"},
		`metadata.labels["example.com/team"]`:               {"editor"},
		"metadata.labels":                                   {"editor"},
		"rules[0].verbs":                                    {"editor"},
		"spec.paused":                                       nil,
		"spec[":                                             nil,
		`spec["["]`:                                         nil,
	} {
		if diff := cmp.Diff(want, m.of(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// TestDifferences leaves out what the API server and the engine keep for themselves,
// and shows no value of a Secret.
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
	if diff := cmp.Diff([]string{"data.password", "metadata.annotations", "metadata.labels"}, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter", "aHVudGVy"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s is shown: %s", secret, raw)
		}
	}
}

// TestDifferencesByKeysOfTheSchema has the keys of a list, and who has its elements, from managedFields.
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
		{Path: "spec.routes[id=x]", Before: map[string]any{"id": "x", "port": 80.0}},
		{Path: "spec.routes[id=y].port", Before: 81.0, After: 90.0, Managers: []string{"editor"}},
		{Path: "spec.routes[id=z]", After: map[string]any{"id": "z", "port": 80.0}},
	}
	if diff := cmp.Diff(want, Differences(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOverlay lays a template over live values where no dry run is possible.
func TestOverlay(t *testing.T) {
	t.Parallel()
	live := decode(t, `{"spec":{"replicas":1,"containers":[{"name":"a","image":"1","pull":"Always"},{"name":"gone"}],"args":["x"],"ports":[{"port":80,"protocol":"TCP"}]}}`)
	overlay(live, decode(t, `{"spec":{"containers":[{"name":"a","image":"2"},{"name":"new"}],"args":["y"],"ports":[{"port":80,"targetPort":1}]}}`))
	want := decode(t, `{"spec":{"replicas":1,"containers":[{"name":"a","image":"2","pull":"Always"},{"name":"new"}],"args":["y"],"ports":[{"port":80,"protocol":"TCP","targetPort":1}]}}`)
	if diff := cmp.Diff(want, live); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOverlayByName is about lists whose elements are not all identified.
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
		if diff := cmp.Diff(decode(t, `{"list":`+tc.want+`}`), live); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestAggregate adds what a cluster role takes over from others of the package.
func TestAggregate(t *testing.T) {
	t.Parallel()
	g := newGrants()
	for name, text := range map[string]string{
		"whole": `{"kind":"ClusterRole","aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"part":"yes"}}]},"rules":[]}`,
		"part":  `{"kind":"ClusterRole","metadata":{"labels":{"part":"yes"}},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
		"other": `{"kind":"ClusterRole","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
	} {
		g.add(objects.Key{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, &unstructured.Unstructured{Object: decode(t, text)})
	}
	g.aggregate()
	want := []rbacv1.PolicyRule{rule("", "secrets", "get")}
	want[0].ResourceNames = nil
	if diff := cmp.Diff(want, g.roles[objects.Key{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: "whole"}].rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestScaledDown is about the claims of a StatefulSet.
func TestScaledDown(t *testing.T) {
	t.Parallel()
	set := func(replicas, policy string) map[string]any {
		return decodeNumbers(t, `{"spec":{"replicas":`+replicas+`,"volumeClaimTemplates":[{}],"persistentVolumeClaimRetentionPolicy":{"whenScaled":"`+policy+`"}}}`)
	}
	for _, tc := range []struct {
		reason        string
		before, after map[string]any
		want          string
	}{
		{"fewer", set("3", "Delete"), set("1", "Delete"), "the claims of the replicas beyond 1 go"},
		{"fewer, and they are kept", set("3", "Retain"), set("1", "Retain"), ""},
		{"kept from now on", set("3", "Delete"), set("1", "Retain"), ""},
		{"more", set("1", "Delete"), set("3", "Delete"), ""},
	} {
		if got := scaledDown(tc.before, tc.after); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", tc.reason, got)
		}
	}
}

// TestUsage counts as the API server does.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		gr     schema.GroupResource
		object string
		want   map[corev1.ResourceName]string
	}{
		{schema.GroupResource{Group: "apps", Resource: "deployments"}, `{}`, map[corev1.ResourceName]string{"count/deployments.apps": "1"}},
		{schema.GroupResource{Resource: "configmaps"}, `{}`, map[corev1.ResourceName]string{"count/configmaps": "1", "configmaps": "1"}},
		{
			schema.GroupResource{Resource: "services"}, `{"spec":{"type":"LoadBalancer","ports":[{"port":1},{"port":2}]}}`,
			map[corev1.ResourceName]string{"count/services": "1", "services": "1", "services.loadbalancers": "1", "services.nodeports": "2"},
		},
		{
			schema.GroupResource{Resource: "persistentvolumeclaims"}, `{"spec":{"storageClassName":"fast","resources":{"requests":{"storage":"5Gi"}}}}`,
			map[corev1.ResourceName]string{
				"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "5Gi",
				"fast.storageclass.storage.k8s.io/requests.storage": "5Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
			},
		},
	} {
		got := map[corev1.ResourceName]string{}
		for name, q := range usage(tc.gr, &unstructured.Unstructured{Object: decodeNumbers(t, tc.object)}) {
			got[name] = q.String()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.gr, diff)
		}
	}
}

// TestDefinitions is about resources whose definition comes or changes.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	const version = `{"name":"%s","served":%s,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}}`
	crd := func(versions ...string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: decodeNumbers(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"dials.example.com"},
			"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Dial","plural":"dials"},"versions":[`+strings.Join(versions, ",")+`]}}`)}
	}
	size, unit := `"size":{"type":"integer"}`, `"size":{"type":"integer"},"unit":{"type":"string"}`
	for _, tc := range []struct {
		reason      string
		before, now *unstructured.Unstructured
		resource    string
		why, wrong  string
	}{
		{"another kind", nil, crd(fmt.Sprintf(version, "v1", "true", size)), `{"apiVersion":"example.com/v1","kind":"Other"}`, "", ""},
		{"a new kind", nil, crd(fmt.Sprintf(version, "v1", "true", size)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"size":1}}`, "comes or changes", ""},
		{"a new kind, a wrong field", nil, crd(fmt.Sprintf(version, "v1", "true", size)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"unit":"x"}}`, "comes or changes", "spec.unit: unknown field"},
		{"as it was", crd(fmt.Sprintf(version, "v1", "true", size)), crd(fmt.Sprintf(version, "v1", "true", size)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"unit":"x"}}`, "", ""},
		{"a new field", crd(fmt.Sprintf(version, "v1", "true", size)), crd(fmt.Sprintf(version, "v1", "true", unit)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"unit":"x"}}`, "comes or changes", ""},
		{"another version changes", crd(fmt.Sprintf(version, "v1", "true", size)), crd(fmt.Sprintf(version, "v1", "true", size), fmt.Sprintf(version, "v2", "true", unit)), `{"apiVersion":"example.com/v1","kind":"Dial","spec":{"size":1}}`, "", ""},
		{"a version that is not served", nil, crd(fmt.Sprintf(version, "v1", "false", size), fmt.Sprintf(version, "v2", "true", size)), `{"apiVersion":"example.com/v1","kind":"Dial"}`, "", "does not serve version v1 but v2"},
	} {
		d := newDefinitions()
		d.learn(objects.Key{Group: crdKind.Group, Kind: crdKind.Kind, Name: "dials.example.com"}, tc.before, tc.now)
		u := &unstructured.Unstructured{Object: decodeNumbers(t, tc.resource)}
		why, err := d.validate(t.Context(), u.GroupVersionKind(), u.Object)
		if (why == "") != (tc.why == "") || !strings.Contains(why, tc.why) {
			t.Errorf("%s: %q", tc.reason, why)
		}
		if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// decodeNumbers reads whole numbers as clients of Kubernetes do.
func decodeNumbers(t *testing.T, text string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := utiljson.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}
