package packages_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// odd returns a package with empty fields, as tools write them. The API server does not store some
// of them.
func odd() harness.Files {
	files := harness.Phased("odd", 1, 1)
	files["odd.yaml"] = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: nothing
  labels: {}
  finalizers: []
  creationTimestamp: null
  annotations: {package-operator.run/phase: phase-00}
spec:
  replicas: 0
  selector: {matchLabels: {app: nothing}}
  template:
    metadata: {labels: {app: nothing}, creationTimestamp: null, annotations: {}}
    spec:
      affinity: null
      nodeSelector: {}
      containers: [{name: nothing, image: registry.example.com/nothing, env: [], resources: {limits: {cpu: 1.0}}}]
`
	return files
}

// A restart with everything in place asks no registry and writes nothing; a
// package that is wrong is looked at again, which changes nothing.
func TestRestart(t *testing.T) {
	ns := env.TestNamespace(t)
	image := counting().host + "/shop:v1"
	require.NoError(t, retag(t, image, harness.Phased("shop", 2, 3)))
	install(t, ns, image)
	broken := harness.Phased("shop", 1, 1)
	broken["manifest.yaml"] += "wrong\n"
	wrong := harness.Package(ns, "wrong", env.Push(t, "restart:wrong", broken))
	env.Create(t, wrong)
	await(t, wrong, "to be refused", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, "")
	})
	// A Package with values from a ConfigMap and a Secret is not rendered again either.
	env.Create(t, newConfigMap(ns, "values", map[string]string{"values": "size: 2"}))
	env.Create(t, newSecret(ns, "login", map[string]string{"values": "password: correct horse battery"}))
	valued := harness.Package(ns, "valued", env.Push(t, "restart:valued", configured()))
	valued.Spec.ConfigFrom = []corev1alpha1.ValueSource{source("ConfigMap", "values", "values"), source("Secret", "login", "values")}
	env.Create(t, valued)
	env.WaitAvailable(t, ns, "valued")
	env.Create(t, harness.Package(ns, "odd", env.Push(t, "restart:odd", odd())))
	env.WaitAvailable(t, ns, "odd")
	env.Settle(t, ns)

	manager.Stop()
	before, asked := shop(t, ns), counting().requests.Load()
	from := env.Journal(t)
	manager = env.StartManager(suite, extraFlags()...)
	audit, err := env.Audit()
	require.NoError(t, err)
	byManager := sandbox.ByUser(harness.ManagerUser())
	_, err = audit.Settled(t.Context(), from.From, 5*time.Second, byManager, sandbox.Not(sandbox.ByResource("leases.coordination.k8s.io")))
	require.NoError(t, err)
	writes, err := audit.Since(t.Context(), from.From, byManager, sandbox.Writes(), sandbox.Not(sandbox.ByResource("leases.coordination.k8s.io")))
	require.NoError(t, err)
	if len(writes) > 0 {
		t.Errorf("written:%s", harness.Lines(writes))
	}
	if n := counting().requests.Load() - asked; n > 0 {
		t.Errorf("the registry was asked %d times", n)
	}
	if after := shop(t, ns); after.ResourceVersion != before.ResourceVersion {
		t.Error("the Package was written")
	}
	// It works.
	env.SetImage(t, ns, "shop", env.Push(t, "restart:v2", harness.Phased("shop", 2, 4)))
	env.WaitAvailable(t, ns, "shop")
}

// A manager that stops in an orderly way hands over at once: the next one does
// not wait for the Lease to run out.
func TestTakeOver(t *testing.T) {
	ns := env.TestNamespace(t)
	image := push(t, 1, 1, "v1")
	next := env.StartManager(suite, extraFlags()...)
	manager.Stop()
	stopped := time.Now()
	manager = next
	install(t, ns, image)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease))
	if took := lease.Spec.AcquireTime.Sub(stopped); took >= limits.LeaseDuration/2 {
		t.Errorf("it took %s", took)
	}
}
