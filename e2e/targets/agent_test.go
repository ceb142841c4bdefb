package targets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// class is the class of the agent.
const class = "edge"

var agentUser = "system:serviceaccount:" + corev1alpha1.DefaultNamespace + ":lockstep-agent"

// agent installs the roles of an agent, and returns the flags of one. Its kubeconfig of the
// target names files.
func (f *fixture) agent(t *testing.T) []string {
	t.Helper()
	objects, err := config.Objects(config.FolderAgent, config.FolderAgentAllNamespaces)
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			require.NoError(t, f.Client.Create(t.Context(), object))
		}
	}
	token := harness.Token(t, f.Client, corev1alpha1.DefaultNamespace, "lockstep-agent")
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	there := f.target.kubeconfig(t, "agent")
	_, remote, _ := strings.Cut(there, "token: ")
	write("token", strings.TrimRight(remote, "}]\n"))
	return []string{
		"--kubeconfig", write("home", kubeconfigOf(f.Sandbox, "token: "+token)),
		"--class", class, "--target-kubeconfig", write("target", kubeconfigOf(f.target.Sandbox, "tokenFile: token")),
	}
}

// phase returns an ObjectSetPhase of the agent with ConfigMaps and a ClusterRole.
func phase(name string, revision int64, names ...string) *corev1alpha1.ObjectSetPhase {
	p := &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{
		Namespace: home, Name: name, Labels: map[string]string{corev1alpha1.PhaseClassLabel: class, corev1alpha1.ObjectDeploymentLabel: "agent"},
	}}
	p.Spec.Revision = revision
	objects := []string{`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"of-the-agent"}}`}
	for _, name := range names {
		objects = append(objects, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q},"data":{"value":"v1"}}`, there, name))
	}
	for _, object := range objects {
		var o corev1alpha1.ObjectSetObject
		o.Object.Raw = []byte(object)
		p.Spec.Objects = append(p.Spec.Objects, o)
	}
	return p
}

// has waits until an ObjectSetPhase has a condition.
func (f *fixture) has(t *testing.T, p *corev1alpha1.ObjectSetPhase, typ string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	harness.Await(t, f.Env, long, p, "to be "+reason, func(p *corev1alpha1.ObjectSetPhase) error {
		return harness.HasCondition(p, typ, status, reason, texts...)
	})
}

// available waits until all of an ObjectSetPhase is.
func (f *fixture) available(t *testing.T, p *corev1alpha1.ObjectSetPhase) {
	t.Helper()
	harness.Await(t, f.Env, long, p, "to be available", func(p *corev1alpha1.ObjectSetPhase) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, corev1alpha1.ReasonAvailable),
			harness.HasCondition(p, corev1alpha1.ConditionTargetConnected, metav1.ConditionTrue, corev1alpha1.ReasonTargetConnected))
	})
}

// ofAgent returns the requests of the agent in both clusters, from two positions on.
func (f *fixture) ofAgent(t *testing.T, from [2]sandbox.Position, filters ...sandbox.Filter) []sandbox.Entry {
	t.Helper()
	var all []sandbox.Entry
	for i, audit := range f.audits(t) {
		who := []string{agentUser, user("agent")}[i]
		entries, err := audit.Since(t.Context(), from[i], append([]sandbox.Filter{
			sandbox.ByUser(who), sandbox.Not(sandbox.ByVerb("watch")), sandbox.Not(sandbox.ByResource("leases.coordination.k8s.io")),
		}, filters...)...)
		require.NoError(t, err)
		all = append(all, entries...)
	}
	return all
}

func (f *fixture) audits(t *testing.T) [2]*sandbox.Audit {
	t.Helper()
	here, err := f.Audit()
	require.NoError(t, err)
	there, err := f.target.Audit()
	require.NoError(t, err)
	return [2]*sandbox.Audit{here, there}
}

func (f *fixture) mark(t *testing.T) (from [2]sandbox.Position) {
	t.Helper()
	for i, audit := range f.audits(t) {
		var err error
		from[i], err = audit.Mark(t.Context())
		require.NoError(t, err)
	}
	return from
}

// waitQuiescent waits until the agent has sent no request to either cluster for 2 s.
func (f *fixture) waitQuiescent(t *testing.T) {
	t.Helper()
	from := f.mark(t)
	for i, audit := range f.audits(t) {
		_, err := audit.Settled(t.Context(), from[i], 2*time.Second, sandbox.ByUser([]string{agentUser, user("agent")}[i]),
			sandbox.Not(sandbox.ByVerb("watch")), sandbox.Not(sandbox.ByResource("leases.coordination.k8s.io")))
		require.NoError(t, err)
	}
}

// phases is the life of ObjectSetPhases of an agent.
func (f *fixture) phases(t *testing.T) {
	t.Helper()
	flags := f.agent(t)
	agent := f.StartManager(t, append(flags, "--watch-all-namespaces")...)
	first := phase("agent.first", 1, "a-1", "a-2")
	f.Create(t, first)
	f.available(t, first)
	f.shows(t, "a-1")
	f.shows(t, "a-2")

	// A later revision takes over; objects that only the former one has are deleted with it.
	uid := func(name string) string {
		cm := configMap(name)
		require.NoError(t, f.target.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
		return string(cm.UID) + cm.Annotations[corev1alpha1.RevisionAnnotation]
	}
	before := uid("a-1")
	second := phase("agent.second", 2, "a-1", "a-3")
	f.Create(t, second)
	f.available(t, second)
	f.shows(t, "a-3")
	if now := uid("a-1"); now != strings.TrimSuffix(before, "1")+"2" {
		t.Errorf("a-1 was %s, and is %s", before, now)
	}
	require.NoError(t, f.Client.Delete(t.Context(), first))
	f.WaitGone(t, long, first)
	if err := f.target.Get(t.Context(), client.ObjectKeyFromObject(configMap("a-2")), configMap("a-2")); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a-2 is still there: %v", err)
	}
	f.repairs(t, "a-1")
	f.waitQuiescent(t)
	from := f.mark(t)
	f.waitQuiescent(t)
	if entries := f.ofAgent(t, from); len(entries) > 0 {
		t.Errorf("at rest:%s", harness.Lines(entries))
	}

	f.classes(t)

	// A restart makes no writes, even if the agent is limited to this namespace from then on.
	agent.Stop()
	from = f.mark(t)
	f.StartManager(t, append(flags, "--watch-namespace", home)...)
	harness.Eventually(t, long, "the agent to reach the target again", func(context.Context) error {
		if entries := f.ofAgent(t, from, sandbox.ByResource("namespaces")); len(entries) < 2 {
			return fmt.Errorf("it has sent%s", harness.Lines(entries))
		}
		return nil
	})
	f.waitQuiescent(t)
	if writes := f.ofAgent(t, from, sandbox.Writes()); len(writes) > 0 {
		t.Errorf("after a restart:%s", harness.Lines(writes))
	}

	// The target is away for a while, and the phase is deleted meanwhile.
	require.NoError(t, f.target.StopComponent(t.Context(), sandbox.APIServer))
	f.has(t, second, corev1alpha1.ConditionTargetConnected, metav1.ConditionFalse, corev1alpha1.ReasonTargetUnreachable, "It is tried again after")
	f.has(t, second, corev1alpha1.ConditionAvailable, metav1.ConditionUnknown, corev1alpha1.ReasonTargetUnreachable)
	require.NoError(t, f.target.StartComponent(t.Context(), sandbox.APIServer))
	f.available(t, second)
	f.repairs(t, "a-3")
	require.NoError(t, f.Client.Delete(t.Context(), second))
	f.WaitGone(t, long, second)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-the-agent"}}
	if err := f.target.Get(t.Context(), client.ObjectKeyFromObject(role), role); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the ClusterRole is still there: %v", err)
	}
}

// repairs changes a ConfigMap, and waits until that is put right.
func (f *fixture) repairs(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, f.target.Patch(t.Context(), configMap(name), client.RawPatch("application/merge-patch+json", []byte(`{"data": {"value": "drift"}}`))))
	f.shows(t, name)
}

// classes rolls a deployment out by the agent: its phases in order, and in reverse when it
// is deleted.
func (f *fixture) classes(t *testing.T) {
	t.Helper()
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "classes"}}
	dep.Spec.Selector.MatchLabels = map[string]string{"app": "classes"}
	dep.Spec.Template.Metadata.Labels = dep.Spec.Selector.MatchLabels
	for _, name := range []string{"c-1", "c-2", "c-3"} {
		objects := phase("", 1, name).Spec.Objects[1:]
		dep.Spec.Template.Spec.Phases = append(dep.Spec.Template.Spec.Phases, corev1alpha1.ObjectSetTemplatePhase{Name: name, Class: class, Objects: objects})
	}
	from := f.mark(t)
	f.Create(t, dep)
	harness.Await(t, f.Env, long, dep, "to be available", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, "")
	})
	f.shows(t, "c-3")
	f.repairs(t, "c-2")
	f.waitQuiescent(t)
	rest := f.mark(t)
	f.waitQuiescent(t)
	if entries := f.ofAgent(t, rest); len(entries) > 0 {
		t.Errorf("at rest:%s", harness.Lines(entries))
	}
	require.NoError(t, f.Client.Delete(t.Context(), dep))
	f.WaitGone(t, long, dep)
	order := func(verb string) string {
		var names []string
		for _, e := range f.ofAgent(t, from, sandbox.ByVerb(verb), sandbox.ByResource("configmaps")) {
			if strings.HasPrefix(e.Object.Name, "c-") && !slices.Contains(names, e.Object.Name) {
				names = append(names, e.Object.Name)
			}
		}
		return strings.Join(names, " ")
	}
	if made, deleted := order("create"), order("delete"); made != "c-1 c-2 c-3" || deleted != "c-3 c-2 c-1" {
		t.Errorf("made %s, deleted %s", made, deleted)
	}
}
