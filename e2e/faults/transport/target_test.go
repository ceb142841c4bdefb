package transport_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/faults/gateway"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// target is another cluster behind the gateway, which has the objects of packages. It is nil
// if the objects are in the manager's own cluster.
type target struct {
	*sandbox.Sandbox
	client.Client
	audit      *sandbox.Audit
	kubeconfig string
}

const (
	// targetName is the name of the account in the target, and of the Secrets with its kubeconfig.
	targetName = "target"
	targetUser = "system:serviceaccount:default:" + targetName
)

func newTarget(t *testing.T, g *gateway.Gateway) *target {
	t.Helper()
	sb := sandbox.Start(t, sandbox.WithComponents(sandbox.Etcd, sandbox.APIServer))
	c, err := client.New(sb.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	audit, err := sb.Audit()
	require.NoError(t, err)
	token := harness.Account(t, c, "default", targetName, "cluster-admin")
	server, authority := g.Other(t, sb)
	return &target{Sandbox: sb, Client: c, audit: audit, kubeconfig: harness.Kubeconfig(server, authority, "token: "+token)}
}

// namespace creates the namespace for the objects of a package.
func (c *target) namespace(t *testing.T, name string) {
	t.Helper()
	if c != nil {
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
}

// use installs a package there.
func (c *target) use(ctx context.Context, home client.Client, pkg *corev1alpha1.Package) error {
	if c == nil {
		return nil
	}
	pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: targetName}}
	return home.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: pkg.Namespace, Name: targetName}, Data: map[string][]byte{"value": []byte(c.kubeconfig)},
	})
}

// version returns the present resource version.
func (c *target) version(ctx context.Context, namespace string) (string, error) {
	if c == nil {
		return "", nil
	}
	list := &corev1.ConfigMapList{}
	err := c.List(ctx, list, client.InNamespace(namespace))
	return list.ResourceVersion, err
}

// mark returns the end of the audit log.
func (c *target) mark(t *testing.T) (end sandbox.Position) {
	t.Helper()
	if c == nil {
		return end
	}
	end, err := c.audit.Mark(t.Context())
	require.NoError(t, err)
	return end
}

// since returns the requests from a place in the audit log on.
func (c *target) since(t *testing.T, from sandbox.Position, of ...sandbox.Filter) []sandbox.Entry {
	t.Helper()
	if c == nil {
		return nil
	}
	entries, err := c.audit.Since(t.Context(), from, of...)
	require.NoError(t, err)
	return entries
}

// watches waits until a manager watches the objects of a number of packages.
func (c *target) watches(t *testing.T, from sandbox.Position, packages int) {
	t.Helper()
	if c == nil {
		return
	}
	harness.Eventually(t, harness.Patience, "the manager to come back to the target", func(context.Context) error {
		if len(c.since(t, from, sandbox.ByUser(targetUser), sandbox.ByVerb("watch"), sandbox.ByResource("configmaps"))) < packages {
			return errors.New("it watches too little")
		}
		return nil
	})
}

// user returns the user that writes the objects.
func (s *suite) user() string {
	if s.there != nil {
		return targetUser
	}
	return harness.ManagerUser()
}
