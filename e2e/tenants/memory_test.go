package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// bombOf returns a package with a number of ConfigMaps, each with a text of some size.
func bombOf(number, size int, text string) harness.Files {
	files := harness.Files{"manifest.yaml": harness.Manifest("bomb", []string{"p"}, "")}
	for i := range number {
		files[fmt.Sprintf("object-%d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb-%d, annotations: {package-operator.run/phase: p}}\ndata: {text: %s}\n",
			i, strings.Repeat(text, size/len(text)))
	}
	return files
}

// A package can be large. If it is too large for the manager's memory, it is refused with a
// remedy.
func TestPackageMemory(t *testing.T) {
	t.Parallel()
	u, other := newTenant(t, env, ""), newTenant(t, env, "-other")
	large := env.Push(t, "package-memory-large:v1", bombOf(12, 900<<10, "x"))
	bomb := bombOf(1, 10, "x")
	for i := range 3 {
		bomb[fmt.Sprintf("notes-%d.txt", i)] = strings.Repeat("x", 12<<20)
	}
	tooLarge := env.Push(t, "package-memory-bomb:v1", bomb)
	for i := range 4 {
		u.create(t, harness.Package(u.namespace, fmt.Sprintf("bomb-%d", i), tooLarge))
	}
	u.create(t, harness.Package(u.namespace, "large", large))
	other.create(t, harness.Package(other.namespace, "bomb", env.Push(t, "package-memory-small:v1", bombOf(1, 10, "x"))))
	env.WaitCondition(t, other.namespace, "bomb", corev1alpha1.ConditionAvailable, "True")
	if c := env.WaitCondition(t, u.namespace, "bomb-3", corev1alpha1.ConditionUnpacked, "False"); !strings.Contains(c.Message, "raise GOMEMLIMIT and the memory limit of the manager") {
		t.Errorf("it is refused with %s: %s", c.Reason, c.Message)
	}
	env.WaitCondition(t, u.namespace, "large", corev1alpha1.ConditionAvailable, "True")
}

// If loading a large package ends the manager, the next one delays that package, longer each time,
// and reconciles all other packages first.
func TestBombLoop(t *testing.T) {
	t.Parallel()
	e, deaths := harness.Lend(t), 2
	if harness.Deep() {
		deaths = 5
	}
	u, other := newTenant(t, e, ""), newTenant(t, e, "-other")
	small := e.Push(t, "bomb-loop-small:v1", bombOf(1, 10, "x"))
	events := e.Watch(t, &corev1alpha1.PackageList{}, client.InNamespace(u.namespace))
	awaitRecord := func(what string, holds func(*corev1alpha1.LoadRecord) bool) *corev1alpha1.LoadRecord {
		t.Helper()
		timeout := time.After(harness.Patience)
		for {
			select {
			case event := <-events:
				if pkg, ok := event.Object.(*corev1alpha1.Package); ok && pkg.Status.Load != nil && holds(pkg.Status.Load) {
					return pkg.Status.Load
				}
			case <-timeout:
				t.Fatalf("no record of %s", what)
			}
		}
	}
	// No package is deployed, so a load is always in progress when the manager ends.
	full := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "full"}}
	full.Spec.Hard = corev1.ResourceList{"count/objectdeployments.package-operator.run": resource.MustParse("0")}
	e.Create(t, full)
	harness.Eventually(t, harness.Patience, "the quota", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(full), full); err != nil || len(full.Status.Hard) > 0 {
			return err
		}
		return errors.New("it is not in force")
	})
	m := e.StartManager(t, "--pace=0.1")
	u.create(t, harness.Package(u.namespace, "bomb", e.Push(t, "bomb-loop:v1", bombOf(12, 900<<10, "x"))))
	for i := range deaths {
		before := awaitRecord("the load", func(l *corev1alpha1.LoadRecord) bool { return l.Holder != "" })
		m.Kill()
		killed := time.Now()
		if before.Interruptions != int32(i) {
			t.Errorf("before the end number %d the record is %+v", i+1, before)
		}
		name := fmt.Sprintf("small-%d", i)
		other.create(t, harness.Package(other.namespace, name, small))
		e.ClearLease(t)
		m = e.StartManager(t, "--pace=0.1")
		after := awaitRecord("the interruption", func(l *corev1alpha1.LoadRecord) bool { return l.Holder == "" && l.Interruptions > before.Interruptions })
		if wait := after.NotBefore.Sub(killed); after.Interruptions != int32(i+1) || wait < time.Second<<i-time.Second {
			t.Errorf("it waits for %s after the end number %d: %+v", wait, i+1, after)
		}
		c := e.WaitCondition(t, u.namespace, "bomb", corev1alpha1.ConditionUnpacked, "False")
		if c.Reason != corev1alpha1.ReasonLoadBackOff || !strings.Contains(c.Message, "raise GOMEMLIMIT (400 MiB)") {
			t.Errorf("it says %s: %s", c.Reason, c.Message)
		}
		e.WaitCondition(t, other.namespace, name, corev1alpha1.ConditionUnpacked, "True")
	}
	require.NoError(t, e.Client.Delete(t.Context(), full))
	e.WaitAvailable(t, u.namespace, "bomb")
	if left := e.Package(t, u.namespace, "bomb").PackageStatus().Load; left != nil {
		t.Errorf("the record stays: %+v", left)
	}
}
