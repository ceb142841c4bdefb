package tenants_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// agentTarget is a cluster that an agent writes to.
type agentTarget struct {
	*sandbox.Sandbox
	client.Client
}

func newAgentTarget(t *testing.T) *agentTarget {
	t.Helper()
	sb := sandbox.Start(t, sandbox.WithComponents(sandbox.Etcd, sandbox.APIServer))
	c, err := client.New(sb.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	return &agentTarget{sb, c}
}

// startAgent starts an agent with the roles of config/agent in a namespace, and with an
// administrator's kubeconfig of a target.
func startAgent(t *testing.T, ns string, target *agentTarget) {
	t.Helper()
	objects, err := config.Objects(config.FolderAgent)
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			continue
		}
		if object.GetNamespace() != "" {
			object.SetNamespace(ns)
		}
		if object.GetKind() == "ClusterRole" || object.GetKind() == "ClusterRoleBinding" {
			object.SetName(object.GetName() + "-" + ns)
		}
		if subjects, found, _ := unstructured.NestedSlice(object.Object, "subjects"); found {
			subjects[0].(map[string]any)["namespace"] = ns
			require.NoError(t, unstructured.SetNestedSlice(object.Object, subjects, "subjects"))
			if object.GetKind() == "ClusterRoleBinding" {
				require.NoError(t, unstructured.SetNestedField(object.Object, object.GetName(), "roleRef", "name"))
			}
		}
		env.Create(t, object)
	}
	require.NoError(t, target.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	dir := t.TempDir()
	write := func(name string, sb *sandbox.Sandbox, token string) string {
		path := filepath.Join(dir, name)
		text := harness.Kubeconfig(sb.Server(), sb.Config().CAData, "token: "+token)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	env.StartManager(t, "--namespace", ns, "--kubeconfig", write("home", env.Sandbox, harness.Token(t, env.Client, ns, "lockstep-agent")),
		"--target-kubeconfig", write("target", target.Sandbox, harness.Account(t, target.Client, ns, "admin", "cluster-admin")))
}

// handed returns an ObjectSetPhase of the default class of agents with a ClusterRoleBinding.
func handed(ns, name string) *corev1alpha1.ObjectSetPhase {
	p := &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: name, Labels: map[string]string{corev1alpha1.PhaseClassLabel: corev1alpha1.PhaseClassHostedCluster},
	}}
	p.Spec.Revision = 1
	p.Spec.Objects = []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":%q},`+
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[]}`, name)}}}
	return p
}

// bindings returns the names of the bindings that exist in a target.
func (a *agentTarget) bindings(t *testing.T, names ...string) (found []string) {
	t.Helper()
	for _, name := range names {
		err := a.Get(t.Context(), client.ObjectKey{Name: name}, &rbacv1.ClusterRoleBinding{})
		require.NoError(t, client.IgnoreNotFound(err))
		if err == nil {
			found = append(found, name)
		}
	}
	return found
}

// An agent from config/agent only serves the ObjectSetPhases of its own namespace: a tenant of
// another namespace cannot reach its target. Two agents of one class each write into their own
// target, even if the other one is away.
func TestAgents(t *testing.T) {
	t.Parallel()
	a, b := newAgentTarget(t), newAgentTarget(t)
	evil := newTenant(t, env, "-evil", "lockstep-author")
	evil.create(t, handed(evil.namespace, "agents-evil"))
	for _, ns := range []string{"agents-a", "agents-b"} {
		env.Namespace(t, ns)
		env.Create(t, handed(ns, ns))
	}
	available := func(ns string) {
		t.Helper()
		harness.Await(t, env, harness.Patience, handed(ns, ns), "to be available", func(p *corev1alpha1.ObjectSetPhase) error {
			return harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, "")
		})
	}
	startAgent(t, "agents-b", b) // the only agent so far
	available("agents-b")
	startAgent(t, "agents-a", a)
	available("agents-a")
	for name, target := range map[string]*agentTarget{"agents-a": a, "agents-b": b} {
		if found := target.bindings(t, "agents-a", "agents-b", "agents-evil"); len(found) != 1 || found[0] != name {
			t.Errorf("the target of %s has %v", name, found)
		}
	}
	attack := handed(evil.namespace, "agents-evil")
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(attack), attack))
	if len(attack.Finalizers) > 0 || len(attack.Status.Conditions) > 0 {
		t.Errorf("an agent has taken it: %v, %+v", attack.Finalizers, attack.Status.Conditions)
	}
}
