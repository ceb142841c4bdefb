package deletion_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// orphans are packages that are deleted at a time.
const orphans = 20

// An orphaning deletion of Packages and deployments does not delete their objects, even if the
// manager is stopped at random between the steps of the garbage collector, or killed. With
// LOCKSTEP_DEEP there are 1,000 packages.
func TestOrphaningDeletionsDeleteNothing(t *testing.T) {
	t.Parallel()
	env := harness.New(t, sandbox.WithoutNodes())
	env.WaitCollector(t)
	rounds := 1
	if harness.Deep() {
		rounds = 50
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	u := &unrest{env: env, manager: env.StartManager(t), rand: rand.New(rand.NewPCG(seed, 0))}
	image := env.Push(t, "orphan:1", twoObjects())
	for round := range rounds {
		u.round(t, fmt.Sprintf("orphan-%d", round), image)
		if t.Failed() {
			return
		}
	}
}

// twoObjects returns a package with two ConfigMaps. Their names start with the Package's.
func twoObjects() harness.Files {
	files := harness.Files{"manifest.yaml": harness.Manifest("orphan", []string{"one", "two"}, "")}
	for _, phase := range []string{"one", "two"} {
		files[phase+".yaml.gotmpl"] = harness.ConfigMap("{{ .package.metadata.name }}-"+phase, phase, "v1")
	}
	return files
}

// unrest is a manager that is stopped and killed.
type unrest struct {
	env     *harness.Env
	manager *harness.Manager
	rand    *rand.Rand
}

// round deletes packages of a namespace: half of them with deletionPolicy Orphan. The others are
// recreated in between, and deleted with their deployments afterwards.
func (u *unrest) round(t *testing.T, ns, image string) {
	t.Helper()
	u.env.Namespace(t, ns)
	packages := make([]*corev1alpha1.Package, orphans)
	for i := range packages {
		packages[i] = harness.Package(ns, fmt.Sprintf("shop-%02d", i), image)
		if i%2 == 1 {
			packages[i].Spec.DeletionPolicy = corev1alpha1.DeletionPolicyOrphan
		}
		u.env.Create(t, packages[i])
	}
	for _, pkg := range packages {
		u.env.WaitAvailable(t, ns, pkg.Name)
	}
	before := u.objects(t, ns)
	if len(before) != 2*orphans {
		t.Fatalf("%d objects, want %d", len(before), 2*orphans)
	}

	left := slices.DeleteFunc(slices.Clone(packages), func(p *corev1alpha1.Package) bool { return p.Spec.DeletionPolicy != "" })
	u.during(t, func(ctx context.Context) error {
		return each(packages, func(pkg *corev1alpha1.Package) error {
			policy := metav1.DeletePropagationOrphan
			if pkg.Spec.DeletionPolicy != "" {
				policy = metav1.DeletePropagationBackground
			}
			return u.remove(ctx, pkg, policy)
		})
	})
	u.keeps(t, ns, before, len(left))

	u.during(t, func(ctx context.Context) error {
		return each(left, func(pkg *corev1alpha1.Package) error {
			again := harness.Package(ns, pkg.Name, image)
			if err := u.env.Client.Create(ctx, again); err != nil {
				return err
			}
			pause(t, time.Duration(rand.IntN(300))*time.Millisecond) // at any progress of the manager
			return u.remove(ctx, again, metav1.DeletePropagationOrphan)
		})
	})
	u.keeps(t, ns, before, len(left))

	u.during(t, func(ctx context.Context) error {
		return each(left, func(pkg *corev1alpha1.Package) error {
			dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pkg.Name}}
			return u.remove(ctx, dep, metav1.DeletePropagationOrphan)
		})
	})
	u.keeps(t, ns, before, 0)
	for name, cm := range u.objects(t, ns) {
		if why := marks(&cm); why != "" {
			t.Errorf("%s has %s", name, why)
		}
	}
}

func each[T any](all []T, do func(T) error) error {
	var group errgroup.Group
	for _, one := range all {
		group.Go(func() error { return do(one) })
	}
	return group.Wait()
}

// during stops and kills the manager until a deletion is over.
func (u *unrest) during(t *testing.T, deletion func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- deletion(ctx) }()
	kill := u.rand.IntN(3) == 0
	for {
		select {
		case err := <-over:
			require.NoError(t, err)
			return
		default:
		}
		pause(t, time.Duration(u.rand.IntN(30))*time.Millisecond)
		if kill && u.rand.IntN(10) == 0 {
			kill = false
			u.manager.Kill()
			u.env.ClearLease(t)
			u.manager = u.env.LaunchManager(t)
			continue
		}
		u.manager.Signal(syscall.SIGSTOP)
		pause(t, time.Duration(u.rand.IntN(60))*time.Millisecond)
		u.manager.Signal(syscall.SIGCONT)
	}
}

// remove deletes an object and waits until it no longer exists.
func (u *unrest) remove(ctx context.Context, obj client.Object, policy metav1.DeletionPropagation) error {
	if err := u.env.Client.Delete(ctx, obj, client.PropagationPolicy(policy)); err != nil {
		return err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := u.env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s still exists, with finalizers %v: %w", obj.GetName(), obj.GetFinalizers(), ctx.Err())
		}
	}
}

// keeps checks that all objects are unchanged, and that a number of deployments has no controller.
func (u *unrest) keeps(t *testing.T, ns string, before map[string]corev1.ConfigMap, deployments int) {
	t.Helper()
	after := u.objects(t, ns)
	for name, cm := range before {
		if now, there := after[name]; !there || now.UID != cm.UID || now.DeletionTimestamp != nil {
			t.Errorf("%s was deleted", name)
		}
	}
	list := &corev1alpha1.ObjectDeploymentList{}
	require.NoError(t, u.env.Client.List(t.Context(), list, client.InNamespace(ns)))
	if len(list.Items) != deployments {
		t.Errorf("%d deployments are left, want %d", len(list.Items), deployments)
	}
	for i := range list.Items {
		if dep := &list.Items[i]; dep.DeletionTimestamp != nil || len(dep.OwnerReferences) > 0 {
			t.Errorf("deployment %s is deleted, or will be: %+v", dep.Name, dep.ObjectMeta)
		}
	}
}

// objects returns the objects of all packages of a namespace.
func (u *unrest) objects(t *testing.T, ns string) map[string]corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMapList{}
	require.NoError(t, u.env.Client.List(t.Context(), list, client.InNamespace(ns)))
	found := map[string]corev1.ConfigMap{}
	for _, cm := range list.Items {
		if cm.Name != "kube-root-ca.crt" {
			found[cm.Name] = cm
		}
	}
	return found
}
