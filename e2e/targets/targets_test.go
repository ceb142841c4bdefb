// Package targets_test installs packages in another cluster: two control planes, one
// manager.
package targets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

const (
	home  = "shop"   // the namespace of the Packages
	there = "stores" // the namespace of their objects in the target
	long  = harness.Patience
)

// target is the other cluster.
type target struct {
	*sandbox.Sandbox
	client.Client
}

func newTarget(t *testing.T) *target {
	t.Helper()
	sb := sandbox.Start(t, sandbox.WithComponents(sandbox.Etcd, sandbox.APIServer))
	c, err := client.New(sb.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	s := &target{sb, c}
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there}}))
	return s
}

// kubeconfig returns one of a new administrator of the target.
func (s *target) kubeconfig(t *testing.T, name string) string {
	t.Helper()
	return kubeconfigOf(s.Sandbox, "token: "+harness.Account(t, s, there, name, "cluster-admin"))
}

func kubeconfigOf(sb *sandbox.Sandbox, user string) string {
	return harness.Kubeconfig(sb.Server(), sb.Config().CAData, user)
}

func user(name string) string { return "system:serviceaccount:" + there + ":" + name }

// fixture is both clusters, and the manager.
type fixture struct {
	*harness.Env
	target *target
}

func (f *fixture) secret(t *testing.T, name, kubeconfig string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}}
	err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
	secret.Data = map[string][]byte{"value": []byte(kubeconfig)}
	if err == nil {
		require.NoError(t, f.Client.Update(t.Context(), secret))
		return
	}
	require.NoError(t, client.IgnoreNotFound(err))
	f.Create(t, secret)
}

func (f *fixture) install(t *testing.T, name, secret, image string) *corev1alpha1.Package {
	t.Helper()
	pkg := harness.Package(home, name, image)
	pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: secret}, Namespace: there}
	f.Create(t, pkg)
	return pkg
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: name}}
}

// shows waits until a ConfigMap of the target has its value.
func (f *fixture) shows(t *testing.T, name string) {
	t.Helper()
	harness.Eventually(t, long, name+" to be as it should", func(ctx context.Context) error {
		cm := configMap(name)
		if err := f.target.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
			return err
		}
		if cm.Data["value"] != "v1" || cm.Annotations[corev1alpha1.OwnersAnnotation] == "" || len(cm.OwnerReferences) > 0 {
			return fmt.Errorf("it is %v with %v", cm.Data, cm.ObjectMeta)
		}
		return nil
	})
}

// drift changes one ConfigMap and deletes another, and waits until both are put right.
func (f *fixture) drift(t *testing.T) {
	t.Helper()
	f.change(t)
	f.corrected(t)
}

func (f *fixture) change(t *testing.T) {
	t.Helper()
	cm := configMap("app-00-000")
	require.NoError(t, f.target.Patch(t.Context(), cm, client.RawPatch("application/merge-patch+json", []byte(`{"data": {"value": "drift"}}`))))
	require.NoError(t, f.target.Delete(t.Context(), configMap("app-01-001")))
}

func (f *fixture) corrected(t *testing.T) {
	t.Helper()
	f.shows(t, "app-00-000")
	f.shows(t, "app-01-001")
}

// connected waits for the condition TargetConnected, and returns its message.
func (f *fixture) connected(t *testing.T, name, status, reason string) string {
	t.Helper()
	var message string
	harness.Eventually(t, long, name+" to be "+reason, func(context.Context) error {
		c := f.WaitCondition(t, home, name, corev1alpha1.ConditionTargetConnected, status)
		if message = c.Message; c.Reason != reason {
			return fmt.Errorf("it is %s: %s", c.Reason, message)
		}
		return nil
	})
	return message
}

// rest expects no request in either cluster.
func (f *fixture) rest(t *testing.T, as string) {
	t.Helper()
	f.Journal(t).Rest(t, home)
	j := f.Journal(t)
	audit, err := f.target.Audit()
	require.NoError(t, err)
	from, err := audit.Mark(t.Context())
	require.NoError(t, err)
	if entries := j.Rest(t, home); len(entries) > 0 {
		t.Errorf("at rest at home:%s", harness.Lines(entries))
	}
	entries, err := audit.Since(t.Context(), from, sandbox.ByUser(user(as)), sandbox.Not(sandbox.ByVerb("watch")))
	require.NoError(t, err)
	if len(entries) > 0 {
		t.Errorf("at rest in the target:%s", harness.Lines(entries))
	}
}

// TestTarget is the life of a package in another cluster.
func TestTarget(t *testing.T) {
	f := &fixture{Env: harness.New(t, sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer)), target: newTarget(t)}
	manager := f.StartManager(t, "--allow-local-targets")
	f.Namespace(t, home)
	image := f.Push(t, "targets/app:v1", harness.Phased("app", 2, 2))
	first := f.target.kubeconfig(t, "first")

	// Refused, and followed once it is right.
	f.secret(t, "edge", kubeconfigOf(f.target.Sandbox, "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}"))
	app := f.install(t, "app", "edge", image)
	if message := f.connected(t, "app", "False", corev1alpha1.ReasonKubeconfigRefused); !strings.Contains(message, "user.exec would run a program") {
		t.Errorf("refused with %q", message)
	}
	f.secret(t, "edge", first)
	f.WaitAvailable(t, home, "app")
	for _, name := range []string{"app-00-000", "app-00-001", "app-01-000", "app-01-001"} {
		f.shows(t, name)
	}
	var here corev1.ConfigMapList
	require.NoError(t, f.Client.List(t.Context(), &here, client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}))
	if len(here.Items) > 0 {
		t.Errorf("%d objects are at home", len(here.Items))
	}
	f.drift(t)
	f.rest(t, "first")
	f.plan(t, image)
	f.inspect(t)

	// The next manager only writes objects that changed while no manager ran.
	audit, err := f.target.Audit()
	require.NoError(t, err)
	from, err := audit.Mark(t.Context())
	require.NoError(t, err)
	manager.Stop()
	f.change(t)
	f.StartManager(t, "--allow-local-targets")
	f.corrected(t)
	var writes []sandbox.Entry
	harness.Eventually(t, long, "the last write to be logged", func(ctx context.Context) (err error) {
		if writes, err = audit.Since(ctx, from, sandbox.ByUser(user("first")), sandbox.Writes()); err == nil && len(writes) < 3 {
			err = fmt.Errorf("there are %d", len(writes))
		}
		return err
	})
	if len(writes) != 3 { // one of them migrates managed fields from the creation to an apply
		t.Errorf("after two drifts and a restart:%s", harness.Lines(writes))
	}

	f.rotate(t)
	f.unreachable(t, image)
	f.unusable(t)
	f.scopes(t)
	f.remove(t, app)
	f.guide(t)
	f.phases(t)
}

// rotate changes the Secret. From then on, the manager writes as its user.
func (f *fixture) rotate(t *testing.T) {
	t.Helper()
	f.secret(t, "edge", f.target.kubeconfig(t, "second"))
	audit, err := f.target.Audit()
	require.NoError(t, err)
	harness.Eventually(t, long, "the second account to write", func(ctx context.Context) error {
		from, err := audit.Mark(ctx)
		if err != nil {
			return err
		}
		f.drift(t)
		writes, err := audit.Since(ctx, from, sandbox.ByUser(user("second")), sandbox.Writes())
		if err == nil && len(writes) == 0 {
			err = errors.New("it does not")
		}
		return err
	})
}

// unreachable stops the target for a while: that is reported, and delays no other package.
func (f *fixture) unreachable(t *testing.T, image string) {
	t.Helper()
	require.NoError(t, f.target.StopComponent(t.Context(), sandbox.APIServer))
	if message := f.connected(t, "app", "False", corev1alpha1.ReasonTargetUnreachable); !strings.Contains(message, "It is tried again after") {
		t.Errorf("away: %q", message)
	}
	f.WaitCondition(t, home, "app", corev1alpha1.ConditionAvailable, "Unknown")
	f.Create(t, harness.Package(home, "local", image))
	f.WaitAvailable(t, home, "local")
	f.secret(t, "self", kubeconfigOf(f.Sandbox, "token: unused"))
	f.install(t, "self", "self", image)
	f.connected(t, "self", "False", corev1alpha1.ReasonTargetUnauthorized)
	admin, err := os.ReadFile(f.ManagerKubeconfig)
	require.NoError(t, err)
	f.secret(t, "self", string(admin))
	if message := f.connected(t, "self", "False", corev1alpha1.ReasonKubeconfigRefused); !strings.Contains(message, "leads to the manager's own cluster") {
		t.Errorf("refused with %q", message)
	}
	require.NoError(t, f.target.StartComponent(t.Context(), sandbox.APIServer))
	f.connected(t, "app", "True", corev1alpha1.ReasonTargetConnected)
	f.WaitAvailable(t, home, "app")
	f.drift(t)
}

// remove deletes a package, in reverse.
func (f *fixture) remove(t *testing.T, pkg *corev1alpha1.Package) {
	t.Helper()
	audit, err := f.target.Audit()
	require.NoError(t, err)
	from, err := audit.Mark(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Client.Delete(t.Context(), pkg))
	f.WaitGone(t, long, pkg)
	deletes, err := audit.Since(t.Context(), from, sandbox.ByUser(user("second")), sandbox.ByVerb("delete"))
	require.NoError(t, err)
	var names []string
	for _, e := range deletes {
		names = append(names, e.Object.Name[:len("app-00")])
	}
	if got := strings.Join(names, " "); got != "app-01 app-01 app-00 app-00" {
		t.Errorf("deleted: %s", got)
	}
}
