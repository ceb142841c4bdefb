package tenants_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// The largest objects that an API server accepts, two hundred of each kind that a tenant may write and the manager watches: the manager goes
// on within its memory, also once it starts with them, and another namespace installs meanwhile. How long that takes is logged: a plain client
// waits for the API server, too, while it stores and sends so much.
func TestLargestObjects(t *testing.T) {
	t.Parallel()
	if !harness.Deep() {
		t.Skip("takes half a GiB of etcd and minutes: a sweep of ./task test:deep")
	}
	const number, memory = 200, 512 << 20 // that of the container
	e := harness.Lend(t)
	u, other := newTenant(t, e, ""), newTenant(t, e, "-other")
	start := func() *harness.Manager { return e.StartManager(t, "--pace=0.1") }
	m := start()
	image := e.Push(t, "largest-objects:v1", bombOf(4, 100, "x"))
	installed := func(name string) time.Duration {
		t.Helper()
		began, pkg := time.Now(), harness.Package(other.namespace, name, image)
		other.create(t, pkg)
		e.WaitCondition(t, other.namespace, name, corev1alpha1.ConditionAvailable, "True")
		defer e.WaitGone(t, harness.Patience, pkg) // its objects have the names of the next one
		defer func() { require.NoError(t, e.Client.Delete(t.Context(), pkg)) }()
		return time.Since(began)
	}
	_ = installed("first") // lists what it needs
	quiet := installed("quiet")

	// A probe reads whole objects of a kind.
	probing := bombOf(4, 100, "x")
	probing["manifest.yaml"] += `  availabilityProbes:
  - probes: [{cel: {rule: "self != {}", message: never}}]
    selector: {kind: {kind: ConfigMap}}
`
	u.create(t, harness.Package(u.namespace, "probing", e.Push(t, "largest-objects-probing:v1", probing)))
	text := strings.Repeat("a", 1<<20)
	kinds := map[string]func(metav1.ObjectMeta) client.Object{
		"package": func(meta metav1.ObjectMeta) client.Object {
			meta.Annotations = map[string]string{"evil.example/a": text[:250<<10]}
			return &corev1alpha1.Package{ObjectMeta: meta, Spec: corev1alpha1.PackageSpec{
				Image: "registry.invalid/none:v1", Config: &runtime.RawExtension{Raw: []byte(`{"a":"` + text + `"}`)},
			}}
		},
		"configmap": func(meta metav1.ObjectMeta) client.Object {
			meta.Labels = map[string]string{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}
			return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": text[:1000<<10]}}
		},
	}
	for kind, largest := range kinds {
		for i := range number {
			u.create(t, largest(metav1.ObjectMeta{Namespace: u.namespace, Name: fmt.Sprintf("%s-%d", kind, i)}))
		}
		t.Logf("beside %d of the kind %s an install takes %s, alone %s", number, kind, installed("beside-"+kind), quiet)
	}
	for range 2 {
		if m.Exited() {
			t.Fatalf("the manager ended: %s", m.Log())
		}
		if peak := m.Peak(t); peak > memory {
			t.Errorf("the manager took %d MiB", peak>>20)
		}
		m.Stop()
		m = start()
		_ = installed(fmt.Sprintf("after-%d", m.PID()))
	}
}
