package livestate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

var (
	configMaps      = mapping("", "v1", "ConfigMap", "configmaps", true)
	secrets         = mapping("", "v1", "Secret", "secrets", true)
	services        = mapping("", "v1", "Service", "services", true)
	serviceAccounts = mapping("", "v1", "ServiceAccount", "serviceaccounts", true)
	namespaces      = mapping("", "v1", "Namespace", "namespaces", false)
	deployments     = mapping("apps", "v1", "Deployment", "deployments", true)
	clusterRoles    = mapping("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false)
	roleBindings    = mapping("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true)
	crds            = mapping("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false)
)

func newWriter(t *testing.T, config *rest.Config) *apply.Writer {
	t.Helper()
	w, err := apply.NewWriter(config, apinames.Default.FieldManager)
	require.NoError(t, err)
	return w
}

// request returns an apply of the object with the given fields; guards are
// metadata fields.
func request(t *testing.T, m *meta.RESTMapping, namespace, name string, guards, fields obj) apply.ApplyRequest {
	t.Helper()
	apiVersion, kind := m.GroupVersionKind.ToAPIVersionAndKind()
	metadata := obj{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	body := obj{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for k, v := range guards {
		metadata[k] = v
	}
	for k, v := range fields {
		body[k] = v
	}
	return apply.ApplyRequest{Mapping: m, Namespace: namespace, Name: name, Body: toJSON(t, body)}
}

func absent() obj { return obj{"resourceVersion": apply.AbsentVersion} }

func guard(live *unstructured.Unstructured) obj {
	return obj{"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion()}
}

func wantClass(t *testing.T, err error, want apply.Class, reason string) {
	t.Helper()
	if got := apply.Classify(err); got != want {
		t.Errorf("class %v, want %v: %s\nerror: %v", got, want, reason, err)
	}
}

func deploymentFields(app string) obj {
	return obj{"spec": obj{
		"selector": obj{"matchLabels": obj{"app": app}},
		"template": obj{
			"metadata": obj{"labels": obj{"app": app}},
			"spec":     obj{"containers": []any{obj{"name": "a", "image": "a"}}},
		},
	}}
}

// TestGuardedApplyCreatesOnly is the answer that creating rests on.
func TestGuardedApplyCreatesOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := newWriter(t, e.config)
	thing := crd(unique("created")+".example.com", "Thing", apiextensionsv1.NamespaceScoped, "v1")
	e.installCRD(t, thing)
	name := unique("guarded")

	for _, tc := range []struct {
		mapping   *meta.RESTMapping
		namespace string
		name      string
		fields    obj
	}{
		{configMaps, e.namespace, name, obj{"data": obj{"a": "b"}}},
		{secrets, e.namespace, name, obj{"data": obj{"a": "Yg=="}}},
		{services, e.namespace, name, obj{"spec": obj{"ports": []any{obj{"port": 80}}}}},
		{deployments, e.namespace, name, deploymentFields("a")},
		{namespaces, "", name, nil},
		{clusterRoles, "", name, obj{"rules": []any{}}},
		{crds, "", "others." + name + ".example.com", obj{"spec": crd(name+".example.com", "Other", apiextensionsv1.ClusterScoped, "v1").Spec}},
		{mapping(thing.Spec.Group, "v1", "Thing", "things", true), e.namespace, name, obj{"spec": obj{"a": "b"}}},
	} {
		t.Run(tc.mapping.GroupVersionKind.Kind, func(t *testing.T) {
			t.Parallel()
			guards := absent()
			// Without any applied field there would be no entry in managedFields.
			guards["labels"] = obj{"a": "b"}
			req := request(t, tc.mapping, tc.namespace, tc.name, guards, tc.fields)
			req.DryRun = true
			_, err := w.Apply(t.Context(), req)
			require.NoError(t, err)
			_, err = w.Get(t.Context(), tc.mapping, tc.namespace, tc.name)
			wantClass(t, err, apply.Absent, "a dry run does not store the object")

			req.DryRun = false
			live, err := w.Apply(t.Context(), req)
			require.NoError(t, err)
			ours := slices.DeleteFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
				return f.Manager != "package-operator"
			})
			if len(ours) != 1 || ours[0].Operation != metav1.ManagedFieldsOperationApply {
				t.Errorf("managedFields of a created object must hold one Apply entry of ours: %v", ours)
			}
			for _, force := range []bool{false, true} {
				req.Force = force
				_, err = w.Apply(t.Context(), req)
				wantClass(t, err, apply.Conflict, "the object is present")
			}
			after, err := w.Get(t.Context(), tc.mapping, tc.namespace, tc.name)
			require.NoError(t, err)
			if after.GetUID() != live.GetUID() || after.GetGeneration() != live.GetGeneration() {
				t.Errorf("a refused apply changed the object: %v", after)
			}
		})
	}
}

// TestApplyAnswers checks further behaviour of applies that the engine relies on;
// TestMemoryAnswersAsAnAPIServer covers their guards.
func TestApplyAnswers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := newWriter(t, e.config)
	ctx := t.Context()
	create := func(t *testing.T, m *meta.RESTMapping, fields obj) *unstructured.Unstructured {
		t.Helper()
		live, err := w.Apply(ctx, request(t, m, e.namespace, unique("answers"), absent(), fields))
		require.NoError(t, err)
		return live
	}
	again := func(t *testing.T, m *meta.RESTMapping, live *unstructured.Unstructured, guards, fields obj) error {
		t.Helper()
		req := request(t, m, live.GetNamespace(), live.GetName(), guards, fields)
		req.Force = true
		_, err := w.Apply(ctx, req)
		return err
	}
	data := obj{"data": obj{"a": "1"}}

	t.Run("an unknown field and a wrong type", func(t *testing.T) {
		t.Parallel()
		for _, fields := range []obj{{"unknown": "x"}, {"data": obj{"a": obj{"b": 1}}}} {
			_, err := w.Apply(ctx, request(t, configMaps, e.namespace, unique("typed"), absent(), fields))
			wantClass(t, err, apply.Blocked, "the author has to change the object")
		}
	})
	t.Run("two controllers", func(t *testing.T) {
		t.Parallel()
		owner := func(name string) obj {
			return obj{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "11111111-1111-1111-1111-11111111111" + name, "controller": true}
		}
		live := create(t, configMaps, data)
		guards := guard(live)
		guards["ownerReferences"] = []any{owner("1"), owner("2")}
		wantClass(t, again(t, configMaps, live, guards, data), apply.Blocked, "an object has one controller")
	})
	t.Run("fields of another manager", func(t *testing.T) {
		t.Parallel()
		name := unique("shared")
		require.NoError(t, e.admin.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}, Data: map[string]string{"a": "theirs"},
		}))
		live, err := w.Get(ctx, configMaps, e.namespace, name)
		require.NoError(t, err)
		_, err = w.Apply(ctx, request(t, configMaps, e.namespace, name, guard(live), data))
		wantClass(t, err, apply.FieldConflict, "without force their field is not taken over")
		require.NoError(t, again(t, configMaps, live, guard(live), data))
	})
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		for _, size := range []int{1100 << 10, 4 << 20} {
			fields := obj{"data": obj{"a": strings.Repeat("x", size)}}
			_, err := w.Apply(ctx, request(t, configMaps, e.namespace, unique("large"), absent(), fields))
			wantClass(t, err, apply.Blocked, "the object is larger than the API server's limit")
		}
	})
	t.Run("a missing namespace", func(t *testing.T) {
		t.Parallel()
		_, err := w.Apply(ctx, request(t, configMaps, "nowhere", "a", absent(), data))
		wantClass(t, err, apply.NamespaceTerminating, "the namespace has to be created first")
		_, err = w.Get(ctx, configMaps, "nowhere", "a")
		wantClass(t, err, apply.Absent, "the object is absent like its namespace")
	})
	t.Run("an unknown resource", func(t *testing.T) {
		t.Parallel()
		for _, m := range []*meta.RESTMapping{
			mapping("nothing.example.com", "v1", "Thing", "things", true),
			mapping("apps", "v1", "Thing", "things", true),
			mapping("apps", "v9", "Deployment", "deployments", true),
		} {
			_, err := w.Apply(ctx, request(t, m, e.namespace, "a", absent(), nil))
			wantClass(t, err, apply.NotServed, m.Resource.String())
			_, err = w.Get(ctx, m, e.namespace, "a")
			wantClass(t, err, apply.NotServed, m.Resource.String())
			_, _, err = w.Delete(ctx, m, e.namespace, "a", "u", "1", metav1.DeletePropagationBackground)
			wantClass(t, err, apply.NotServed, m.Resource.String())
		}
	})
	t.Run("immutable fields", func(t *testing.T) {
		t.Parallel()
		role := func(name string) obj {
			return obj{"roleRef": obj{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}}
		}
		for _, tc := range []struct {
			mapping      *meta.RESTMapping
			fields, then obj
			want         string
		}{
			{deployments, deploymentFields("a"), deploymentFields("b"), "spec.selector"},
			{roleBindings, role("a"), role("b"), "roleRef"},
			{configMaps, obj{"data": obj{"a": "1"}, "immutable": true}, obj{"data": obj{"a": "2"}, "immutable": true}, "data"},
			{secrets, obj{"type": "a/b"}, obj{"type": "c/d"}, "type"},
			{services, obj{"spec": obj{"ports": []any{obj{"port": 80}}}}, obj{"spec": obj{"ports": []any{obj{"port": 80}}, "clusterIP": "10.0.0.77"}}, "spec.clusterIPs[0]"},
		} {
			live := create(t, tc.mapping, tc.fields)
			err := again(t, tc.mapping, live, guard(live), tc.then)
			wantClass(t, err, apply.Blocked, "an immutable field")
			if got := apply.CausesOf(err); !slices.Contains(got, tc.want) {
				t.Errorf("causes %v, want %s\nerror: %v", got, tc.want, err)
			}
			if brief := apply.Brief(err); !strings.Contains(brief, tc.want) || strings.Contains(brief, "10.0.0.77") {
				t.Errorf("brief text must name the field and no value: %s", brief)
			}
		}
	})
}

func TestStaleManagedFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := newWriter(t, e.config)
	ctx := t.Context()
	thing := crd(unique("stale")+".example.com", "Thing", apiextensionsv1.NamespaceScoped, "v2", "v1")
	e.installCRD(t, thing)
	v1 := mapping(thing.Spec.Group, "v1", "Thing", "things", true)
	v2 := mapping(thing.Spec.Group, "v2", "Thing", "things", true)
	live, err := w.Apply(ctx, request(t, v1, e.namespace, "a", absent(), obj{"spec": obj{"a": "1"}}))
	require.NoError(t, err)

	require.NoError(t, e.admin.Get(ctx, client.ObjectKeyFromObject(thing), thing))
	thing.Spec.Versions = thing.Spec.Versions[:1]
	require.NoError(t, e.admin.Update(ctx, thing))
	req := request(t, v2, e.namespace, "a", guard(live), obj{"spec": obj{"a": "2"}})
	req.Force = true
	eventually(t, "v2 is served by a server that no longer knows v1", func() bool {
		dry := req
		dry.DryRun = true
		_, err := w.Apply(ctx, dry) // the API server refuses v1 earlier than that
		return apply.Classify(err) == apply.StaleFields
	})
	_, err = w.Apply(ctx, req)
	wantClass(t, err, apply.StaleFields, "an entry of managedFields names v1")

	fields := live.GetManagedFields()
	fields[0].APIVersion = v2.GroupVersionKind.GroupVersion().String()
	_, err = w.Patch(ctx, v2, e.namespace, "a", toJSON(t, []obj{
		{"op": "test", "path": "/metadata/uid", "value": live.GetUID()},
		{"op": "test", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/managedFields", "value": fields},
	}), false)
	require.NoError(t, err)
	migrated, err := w.Get(ctx, v2, e.namespace, "a")
	require.NoError(t, err)
	req = request(t, v2, e.namespace, "a", guard(migrated), obj{"spec": obj{"b": "2"}})
	req.Force = true
	after, err := w.Apply(ctx, req)
	require.NoError(t, err)
	if _, found, _ := unstructured.NestedString(after.Object, "spec", "a"); found {
		t.Error("a field that the template no longer has must be removed after the migration")
	}
}

func TestNamespaceTerminating(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := newWriter(t, e.config)
	gone, live, err := w.Delete(t.Context(), namespaces, "", e.namespace, "", "", metav1.DeletePropagationBackground)
	require.NoError(t, err)
	if gone || live == nil || live.GetDeletionTimestamp() == nil {
		t.Fatalf("a namespace is terminating first: gone=%v live=%v", gone, live)
	}
	eventually(t, "the namespace is known to terminate", func() bool {
		_, err := w.Apply(t.Context(), request(t, configMaps, e.namespace, unique("late"), absent(), nil))
		return apply.Classify(err) == apply.NamespaceTerminating
	})
}

func TestCRDTerminating(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := newWriter(t, e.config)
	ctx := t.Context()
	thing := crd(unique("ending")+".example.com", "Thing", apiextensionsv1.NamespaceScoped, "v1")
	e.installCRD(t, thing)
	things := mapping(thing.Spec.Group, "v1", "Thing", "things", true)
	guards := absent()
	guards["finalizers"] = []string{"example.com/hold"}
	_, err := w.Apply(ctx, request(t, things, e.namespace, "held", guards, nil))
	require.NoError(t, err)
	gone, _, err := w.Delete(ctx, crds, "", thing.Name, "", "", metav1.DeletePropagationBackground)
	require.NoError(t, err)
	if gone {
		t.Fatal("a CRD with an instance that is held must be terminating")
	}
	eventually(t, "creating instances is refused", func() bool {
		_, err := w.Apply(ctx, request(t, things, e.namespace, unique("late"), absent(), nil))
		return apply.Classify(err) == apply.NotServed
	})
	_, err = w.Patch(ctx, things, e.namespace, "held", toJSON(t, []obj{{"op": "remove", "path": "/metadata/finalizers"}}), false)
	require.NoError(t, err)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := newWriter(t, e.config)
	ctx := t.Context()
	create := func(t *testing.T, m *meta.RESTMapping, guards, fields obj) *unstructured.Unstructured {
		t.Helper()
		live, err := w.Apply(ctx, request(t, m, e.namespace, unique("delete"), guards, fields))
		require.NoError(t, err)
		return live
	}
	remove := func(m *meta.RESTMapping, live *unstructured.Unstructured, uid types.UID, rv string) (bool, *unstructured.Unstructured, error) {
		return w.Delete(ctx, m, e.namespace, live.GetName(), uid, rv, metav1.DeletePropagationBackground)
	}

	for _, m := range []*meta.RESTMapping{configMaps, serviceAccounts, services} {
		t.Run("removed at once: "+m.GroupVersionKind.Kind, func(t *testing.T) {
			t.Parallel()
			var fields obj
			if m == services {
				fields = obj{"spec": obj{"ports": []any{obj{"port": 80}}}}
			}
			live := create(t, m, absent(), fields)
			gone, rest, err := remove(m, live, live.GetUID(), live.GetResourceVersion())
			if err != nil || !gone || rest != nil {
				t.Errorf("gone=%v live=%v err=%v", gone, rest, err)
			}
			_, err = w.Get(ctx, m, e.namespace, live.GetName())
			wantClass(t, err, apply.Absent, "it was reported as removed")
			gone, _, err = remove(m, live, live.GetUID(), live.GetResourceVersion())
			if err != nil || !gone {
				t.Errorf("an absent object has to be reported: gone=%v err=%v", gone, err)
			}
		})
	}
	for _, m := range []*meta.RESTMapping{configMaps, serviceAccounts} {
		t.Run("held by a finalizer: "+m.GroupVersionKind.Kind, func(t *testing.T) {
			t.Parallel()
			guards := absent()
			guards["finalizers"] = []string{"example.com/hold"}
			live := create(t, m, guards, nil)
			gone, rest, err := remove(m, live, live.GetUID(), live.GetResourceVersion())
			require.NoError(t, err)
			if gone || rest == nil || rest.GetDeletionTimestamp() == nil || rest.GetUID() != live.GetUID() {
				t.Errorf("want the terminating object: gone=%v live=%v", gone, rest)
			}
		})
	}
	t.Run("another uid", func(t *testing.T) {
		t.Parallel()
		live := create(t, configMaps, absent(), nil)
		_, _, err := remove(configMaps, live, "11111111-1111-1111-1111-111111111111", live.GetResourceVersion())
		wantClass(t, err, apply.Conflict, "the object was replaced")
	})
	t.Run("a stale resource version", func(t *testing.T) {
		t.Parallel()
		live := create(t, configMaps, absent(), nil)
		_, err := w.Apply(ctx, request(t, configMaps, e.namespace, live.GetName(), guard(live), obj{"data": obj{"a": "b"}}))
		require.NoError(t, err)
		_, _, err = remove(configMaps, live, live.GetUID(), live.GetResourceVersion())
		wantClass(t, err, apply.Conflict, "the object was changed")
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ctx := t.Context()
	create := func(config *rest.Config, name string) error {
		_, err := newWriter(t, config).Apply(ctx, request(t, configMaps, e.namespace, name, absent(), nil))
		return err
	}
	t.Run("by RBAC", func(t *testing.T) {
		t.Parallel()
		config := rest.CopyConfig(e.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
		wantClass(t, create(config, "rbac"), apply.Blocked, "the right has to be granted")
	})
	t.Run("by an admission policy", func(t *testing.T) {
		t.Parallel()
		e.denyNamed(t, "denied")
		eventually(t, "the policy is in force", func() bool {
			return create(e.config, unique("denied")) != nil
		})
		wantClass(t, create(e.config, unique("denied")), apply.Blocked, "the policy decides")
	})
	t.Run("for a webhook that cannot be called", func(t *testing.T) {
		t.Parallel()
		other := newEnv(t)
		other.webhook(t, "https://127.0.0.1:1/")
		eventually(t, "the webhook is called", func() bool {
			_, err := newWriter(t, e.config).Apply(ctx, request(t, configMaps, other.namespace, unique("webhook"), absent(), nil))
			return err != nil && strings.Contains(err.Error(), "failed calling webhook") && apply.Classify(err) == apply.Retry
		})
	})
	t.Run("without leading", func(t *testing.T) {
		t.Parallel()
		config := rest.CopyConfig(e.config)
		config.Wrap(leadership.NewGuard(clock.RealClock{}).WrapTransport)
		wantClass(t, create(config, "standby"), apply.NotLeading, "the guard refuses it")
		_, err := newWriter(t, config).Get(ctx, configMaps, e.namespace, "standby")
		wantClass(t, err, apply.Absent, "reading is allowed")
	})
	t.Run("of a server that is away", func(t *testing.T) {
		t.Parallel()
		wantClass(t, create(&rest.Config{Host: "https://127.0.0.1:1"}, "away"), apply.Retry, "it can come back")
	})
	t.Run("after the context ended", func(t *testing.T) {
		t.Parallel()
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err := newWriter(t, e.config).Get(over, configMaps, e.namespace, "a")
		wantClass(t, err, apply.Retry, "nothing is known")
	})
}

// denyNamed makes an admission policy deny ConfigMaps whose name has the prefix.
func (e *env) denyNamed(t *testing.T, prefix string) {
	t.Helper()
	policy := unique("deny")
	rules := []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}}
	require.NoError(t, e.admin.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: rules},
			Validations:      []admissionregistrationv1.Validation{{Expression: "!object.metadata.name.startsWith('" + prefix + "')"}},
		},
	}))
	require.NoError(t, e.admin.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: e.namespaceSelector()},
		},
	}))
}

// webhook makes every write of ConfigMaps in the namespace ask the URL.
func (e *env) webhook(t *testing.T, url string) {
	t.Helper()
	require.NoError(t, e.admin.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: unique("webhook")},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "a.example.com", AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &url},
			SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:     ptr.To(admissionregistrationv1.Fail),
			NamespaceSelector: e.namespaceSelector(),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}))
}

func (e *env) namespaceSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": e.namespace}}
}
