package objecttemplates

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/render"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

func TestReadable(t *testing.T) {
	t.Parallel()
	state := func(optional bool, s sources.State) sourceState {
		return sourceState{plannedSource: &plannedSource{ref: sources.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "x"}, optional: optional, field: "spec.sources[0]"}, State: s}
	}
	there, gone := sources.State{Known: true, Version: "1"}, sources.State{Known: true}
	unserved := sources.State{Unserved: true, Err: errors.New("no match")}
	for _, tc := range []struct {
		reason string
		view   view
		ready  bool
		// problem is a part of the message; empty if there is none.
		problem         string
		invalid, passes bool
	}{
		{reason: "all are there", view: view{sources: []sourceState{state(false, there), state(true, there)}}, ready: true},
		{reason: "an optional one does not exist", view: view{sources: []sourceState{state(true, gone)}}, ready: true},
		{reason: "the kind of an optional one is not served", view: view{sources: []sourceState{state(true, unserved)}}, ready: true},
		{reason: "a watch has broken since", view: view{sources: []sourceState{state(false, sources.State{Known: true, Version: "1", Err: errors.New("gone")})}}, ready: true},
		{reason: "no sources", ready: true},
		{reason: "missing", view: view{sources: []sourceState{state(false, gone)}}, problem: "spec.sources[0]: ConfigMap team/x does not exist", invalid: true, passes: true},
		{reason: "the kind is not served", view: view{sources: []sourceState{state(false, unserved)}}, problem: "the API server does not serve v1/ConfigMap", invalid: true, passes: true},
		{reason: "not listed yet, which precedes missing ones", view: view{sources: []sourceState{state(false, gone), state(true, sources.State{})}}},
		{reason: "discovery is not known yet", view: view{sources: []sourceState{state(false, sources.State{Err: livestate.ErrNotReady})}}},
		{reason: "cannot be watched", view: view{sources: []sourceState{state(true, sources.State{Err: errors.New("forbidden")})}}, problem: "cannot be watched: forbidden", passes: true},
		{reason: "the environment is not known", view: view{waiting: true}},
		{reason: "the environment cannot be read", view: view{inputErr: "Waiting"}, problem: "Waiting", passes: true},
		{reason: "the spec is wrong, with any other problem", view: view{specErr: errors.New("bad key"), waiting: true}, problem: "bad key", invalid: true},
		{reason: "an account of all", view: view{forbidden: (&Options{AccountRequiredOfAll: true}).refusal("")}, problem: "a ClusterObjectTemplate has none"},
		{reason: "the default is not for the cluster", view: view{forbidden: (&Options{Account: "common", AccountRequiredOfAll: true}).refusal("")}, problem: "a ClusterObjectTemplate has none"},
		{reason: "no account in a namespace", view: view{forbidden: (&Options{AccountRequired: true}).refusal("team")}, problem: "--default-service-account"},
		{reason: "no account", view: view{forbidden: accountRequired}, problem: "--default-service-account"},
	} {
		ready, p := readable(tc.view)
		switch {
		case ready != tc.ready, (p != nil) != (tc.problem != ""):
			t.Errorf("%s: ready %t, problem %+v", tc.reason, ready, p)
		case p != nil && (!strings.Contains(p.message, tc.problem) || p.invalid != tc.invalid || p.passes != tc.passes):
			t.Errorf("%s: problem %+v", tc.reason, p)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	source := func(apiVersion, kind, namespace, name string) corev1alpha1.ObjectTemplateSource {
		return corev1alpha1.ObjectTemplateSource{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	}
	served := func(gk schema.GroupKind) (namespaced, known bool) { return gk.Kind != "Node", gk.Kind != "Gauge" }
	cluster := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectTemplate", Name: "t"}}
	for _, tc := range []struct {
		reason string
		owner  objects.Owner
		source corev1alpha1.ObjectTemplateSource
		want   string
		err    string
	}{
		{"its own namespace by default", owner, source("v1", "ConfigMap", "", "x"), "ConfigMap team/x", ""},
		{"its own namespace by name", owner, source("v1", "ConfigMap", "team", "x"), "ConfigMap team/x", ""},
		{"another namespace", owner, source("v1", "ConfigMap", "other", "x"), "", "reads its own namespace only"},
		{"a cluster-scoped kind", owner, source("v1", "Node", "", "x"), "", "is cluster-scoped"},
		{"a kind that is not served", owner, source("example.com/v1", "Gauge", "", "x"), "Gauge.example.com team/x", ""},
		{"itself", owner, source("package-operator.run/v1alpha1", "ObjectTemplate", "", "t"), "", "cannot be a source"},
		{"from the cluster", cluster, source("v1", "ConfigMap", "other", "x"), "ConfigMap other/x", ""},
		{"from the cluster, without a namespace", cluster, source("v1", "ConfigMap", "", "x"), "", "namespace: it is required"},
		{"a cluster-scoped kind with a namespace", cluster, source("v1", "Node", "other", "x"), "Node x", ""},
		{"a path as name", owner, source("v1", "ConfigMap", "", "a/b"), "", "not a valid name"},
		{"a path as namespace", cluster, source("v1", "ConfigMap", "../a", "b"), "", "not a valid namespace"},
		{"no version", owner, source("a/b/c", "ConfigMap", "", "b"), "", "apiVersion"},
		{"no kind", owner, source("v1", "", "", "b"), "", "not a valid kind"},
	} {
		p := planOf(&corev1alpha1.ObjectTemplateSpec{Sources: []corev1alpha1.ObjectTemplateSource{tc.source}}, tc.owner)
		refs, err := p.scopes(tc.owner, served)
		if err = errors.Join(p.err, err); tc.err != "" {
			require.ErrorContains(t, err, tc.err, tc.reason)
			continue
		}
		if err != nil || len(refs) != 1 || refs[0].String() != tc.want {
			t.Errorf("%s: %v, %v", tc.reason, refs, err)
		}
	}
	moves := planOf(&corev1alpha1.ObjectTemplateSpec{Sources: []corev1alpha1.ObjectTemplateSource{source("v1", "Gauge", "other", "x")}}, cluster)
	for _, in := range []bool{true, false, true} {
		refs, err := moves.scopes(cluster, func(schema.GroupKind) (namespaced, known bool) { return in, true })
		if want := map[bool]string{true: "Gauge other/x", false: "Gauge x"}[in]; err != nil || len(refs) != 1 || refs[0].String() != want {
			t.Errorf("a kind that is served in another scope: %v, %v", refs, err)
		}
	}
	var m memory
	st := &state{}
	m.states = map[types.NamespacedName]*state{{Name: "t"}: st}
	for _, in := range []bool{false, true} {
		st.plan = planOf(&corev1alpha1.ObjectTemplateSpec{Sources: []corev1alpha1.ObjectTemplateSource{source("v1", "Gauge", "", "x")}}, owner)
		_, err := m.sourcesOf(st, owner, func(gk schema.GroupKind) (namespaced, known bool) {
			if got := m.awaiting(gk); len(got) != 1 {
				t.Errorf("a template whose source changes its scope while it is looked up is not enqueued: %v", got)
			}
			return in, true
		})
		if got := m.awaiting(schema.GroupKind{Kind: "Gauge"}); (err == nil) != in || len(got) != map[bool]int{false: 1}[in] {
			t.Errorf("a template whose source fits its scope (%t), or does not: enqueued are %v, %v", in, got, err)
		}
	}
	many := &corev1alpha1.ObjectTemplateSpec{}
	for range limits.ObjectTemplateSources + 1 {
		many.Sources = append(many.Sources, source("v1", "ConfigMap", "", "x"))
	}
	if p := planOf(many, owner); p.err == nil || !strings.Contains(p.err.Error(), "the limit is 100") {
		t.Errorf("too many sources: %v", p.err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const valid = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	for _, tc := range []struct{ reason, text, err string }{
		{"YAML", valid, ""},
		{"JSON", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`, ""},
		{"with markers around it", "---\n" + valid + "---\n# nothing\n", ""},
		{"nothing", "\n", "has 0 objects"},
		{"two", valid + "---\n" + valid, "has 2 objects"},
		{"no object", "[1]", "has to be an object"},
		{"no YAML", "a: b: hunter2", "not valid YAML or JSON: line 1"},
		{"no name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", "are required"},
		{"no metadata", "apiVersion: v1\nkind: ConfigMap\n", "are required"},
		{"metadata of another type", "apiVersion: v1\nkind: ConfigMap\nmetadata: hunter2\n", "are required"},
		{"no kind", "apiVersion: v1\nmetadata: {name: x}\n", "are required"},
		{"no version", "kind: ConfigMap\nmetadata: {name: x}\n", "are required"},
		{"a path as name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hunter2/x}\n", "not a valid name"},
	} {
		content, p := parse([]byte(tc.text), false)
		switch {
		case tc.err == "" && (p != nil || content == nil):
			t.Errorf("%s: %+v", tc.reason, p)
		case tc.err != "" && (p == nil || !strings.Contains(p.message, tc.err) || p.reason != corev1alpha1.ReasonTemplateError):
			t.Errorf("%s: %+v", tc.reason, p)
		}
		if _, p := parse([]byte(tc.text), true); (p != nil) != (tc.err != "") || p != nil && strings.Contains(p.message, "hunter2") {
			t.Errorf("%s, with values of a Secret: %+v", tc.reason, p)
		}
	}
}

func TestPlaced(t *testing.T) {
	t.Parallel()
	object := func(kind, namespace string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "x", "namespace": namespace}}
	}
	cluster := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectTemplate", Name: "t"}}
	owned := object("ConfigMap", "")
	owned["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"name": "y"}}
	namespaced, clusterScoped := livestate.KindState{Served: true, Namespaced: true}, livestate.KindState{Served: true}
	for _, tc := range []struct {
		reason  string
		owner   objects.Owner
		content map[string]any
		in      livestate.KindState
		want    string
		err     string
	}{
		{"into its own namespace", owner, object("ConfigMap", ""), namespaced, "ConfigMap team/x", ""},
		{"its own namespace by name", owner, object("ConfigMap", "team"), namespaced, "ConfigMap team/x", ""},
		{"another namespace", owner, object("ConfigMap", "other"), namespaced, "", "is in another namespace"},
		{"a cluster-scoped kind", owner, object("Node", ""), clusterScoped, "", "is cluster-scoped"},
		{"a cluster-scoped kind that names its namespace", owner, object("Node", "team"), clusterScoped, "", "is cluster-scoped"},
		{"any namespace from the cluster", cluster, object("ConfigMap", "other"), namespaced, "ConfigMap other/x", ""},
		{"no namespace from the cluster", cluster, object("ConfigMap", ""), namespaced, "", "metadata.namespace is missing"},
		{"a cluster-scoped kind from the cluster", cluster, object("Node", "other"), clusterScoped, "Node x", ""},
		{"a kind that is not served", owner, object("Gauge", ""), livestate.KindState{}, "", "does not serve Gauge"},
		{"owners", owner, owned, namespaced, "", "ownerReferences"},
		{"a generated package", owner, map[string]any{
			"apiVersion": "package-operator.run/v1alpha1", "kind": "Package",
			"metadata": map[string]any{"name": "x", "labels": map[string]any{corev1alpha1.GeneratedLabel: "true"}},
		}, namespaced, "", "remove it"},
		{"the template itself", owner, map[string]any{
			"apiVersion": "package-operator.run/v1alpha1", "kind": "ObjectTemplate", "metadata": map[string]any{"name": "t"},
		}, namespaced, "", "is the template itself"},
	} {
		key, p := placed(tc.content, tc.owner, tc.in)
		switch {
		case tc.err == "" && (p != nil || key.String() != tc.want):
			t.Errorf("%s: %s, %+v", tc.reason, key, p)
		case tc.err != "" && (p == nil || !strings.Contains(p.message, tc.err)):
			t.Errorf("%s: %+v", tc.reason, p)
		}
	}
}

func TestConfined(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, annotation string
		key                objects.Key
		refused            bool
	}{
		{"a Secret", "", objects.Key{Kind: "Secret"}, false},
		{"a ConfigMap", "", objects.Key{Kind: "ConfigMap"}, true},
		{"a kind of the name in another group", "", objects.Key{Group: "example.com", Kind: "Secret"}, true},
		{"annotated", "true", objects.Key{Kind: "ConfigMap"}, false},
		{"annotated otherwise", "yes", objects.Key{Kind: "ConfigMap"}, true},
	} {
		content := map[string]any{"metadata": map[string]any{"annotations": map[string]any{corev1alpha1.ExposeSecretValuesAnnotation: tc.annotation}}}
		if p := confined(content, tc.key); (p != nil) != tc.refused {
			t.Errorf("%s: %+v", tc.reason, p)
		}
	}
}

// TestDiscreet refuses outputs that are named by values of Secrets.
func TestDiscreet(t *testing.T) {
	t.Parallel()
	const template = "kind: Secret, name: connection"
	secrets := &collector{}
	secrets.addSecrets(map[string]any{"password": "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5", "short": "aHVudGVyMg==", "user": "Y29ubmVjdGlvbg=="})
	object := func(apiVersion, kind, namespace, name, annotation string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
			"namespace": namespace, "name": name, "annotations": map[string]any{corev1alpha1.ExposeSecretValuesAnnotation: annotation},
		}}
	}
	for _, tc := range []struct {
		reason  string
		content map[string]any
		// field of the problem; empty if there is none.
		field string
	}{
		{"another name", object("v1", "Secret", "team", "web", ""), ""},
		{"a name in the template that is also a value", object("v1", "Secret", "team", "connection", ""), ""},
		{"decoded", object("v1", "Secret", "team", "correct-horse-battery", ""), "metadata.name"},
		{"a part of it", object("v1", "Secret", "team", "x-horse-bat-x", ""), "metadata.name"},
		{"in hex", object("v1", "Secret", "team", "636f72726563742d686f7273652d62617474657279", ""), "metadata.name"},
		{"a short one", object("v1", "Secret", "team", "db-hunter2", ""), "metadata.name"},
		{"as the namespace", object("v1", "Secret", "hunter2", "web", ""), "metadata.namespace"},
		{"as the kind, as it is encoded", object("v1", "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5", "team", "web", ""), "kind"},
		{"as the group", object("correct-horse-battery/v1", "Secret", "team", "web", ""), "apiVersion"},
		{"annotated", object("v1", "Secret", "team", "correct-horse-battery", "true"), ""},
	} {
		p := discreet(tc.content, template, secrets.secrets)
		if (p != nil) != (tc.field != "") || p != nil && (!p.invalid || !strings.HasPrefix(p.message, "spec.template: "+tc.field+" of the output")) {
			t.Errorf("%s: %+v", tc.reason, p)
		}
		if p != nil && (strings.Contains(p.message, "horse") || strings.Contains(p.message, "hunter2")) {
			t.Errorf("%s: the message quotes it: %s", tc.reason, p.message)
		}
	}
}

// TestExplain: the text of a template function's error is left out if it could quote a Secret.
func TestExplain(t *testing.T) {
	t.Parallel()
	err := &render.ObjectError{Line: 3, Details: `at <atoi .config.x>: error calling atoi: strconv.Atoi: parsing "hunter2": invalid syntax`}
	require.Contains(t, explain(err, false), "hunter2", "without a Secret")
	got := explain(err, true)
	if !strings.HasPrefix(got, "line 3: at <atoi .config.x>: it failed") || strings.Contains(got, "hunter2") {
		t.Errorf("with a Secret: %s", got)
	}
	if got := explain(&render.ObjectError{Details: "hunter2"}, true); strings.Contains(got, "hunter2") {
		t.Errorf("without an expression: %s", got)
	}
	require.Equal(t, "other", explain(fmt.Errorf("other"), false), "another error")
}
