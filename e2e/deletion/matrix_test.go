package deletion_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

type ctxType = context.Context

// outcome is how a deletion ends.
type outcome int

const (
	// tornDown: no object is left.
	tornDown outcome = iota
	// refused: the API server refuses the request with a remedy; all stays.
	refused
	// orphaned: the object is deleted, with all objects between it and the managed ones. The
	// managed objects stay, without a controller and without labels of the engine.
	orphaned
	// keptRunning: a deleted Package leaves its deployment running.
	keptRunning
	// replaced: the deployment makes a new set, the objects stay.
	replaced
)

// matrix is the table of deletions in docs/administrate/delete.md.
var matrix = []struct {
	kind   string
	policy metav1.DeletionPropagation
	want   outcome
}{
	{"Package", metav1.DeletePropagationBackground, tornDown},
	{"Package", metav1.DeletePropagationForeground, tornDown},
	{"Package", metav1.DeletePropagationOrphan, keptRunning},
	{"ObjectDeployment", metav1.DeletePropagationBackground, tornDown},
	{"ObjectDeployment", metav1.DeletePropagationForeground, refused},
	{"ObjectDeployment", metav1.DeletePropagationOrphan, orphaned},
	{"ObjectSet", metav1.DeletePropagationBackground, replaced},
	{"ObjectSet", metav1.DeletePropagationForeground, refused},
	{"ObjectSet", metav1.DeletePropagationOrphan, replaced},
	{"lone ObjectSet", metav1.DeletePropagationBackground, tornDown},
	{"lone ObjectSet", metav1.DeletePropagationForeground, refused},
	{"lone ObjectSet", metav1.DeletePropagationOrphan, orphaned},
}

func TestDeletionMatrixWithTheManagerRunning(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.WaitCollector(t)
	for _, row := range matrix {
		t.Run(fmt.Sprintf("%s %s", row.kind, row.policy), func(t *testing.T) {
			t.Parallel()
			c := newCase(t, env, "run", row.kind, row.policy)
			c.remove(t)
			c.judge(t, row.want)
		})
	}
}

// The manager is away around the deletions: the garbage collector and the namespace
// controller had their turn before it comes back.
func TestDeletionMatrixWithTheManagerStopped(t *testing.T) {
	t.Parallel()
	env := harness.New(t, sandbox.WithoutNodes())
	env.WaitCollector(t)
	manager := env.StartManager(t)
	cases := make([]*deletion, len(matrix))
	for i, row := range matrix {
		cases[i] = newCase(t, env, "stop", row.kind, row.policy)
	}
	manager.Kill()
	pause(t, 2*time.Second)
	for _, c := range cases {
		c.remove(t)
	}
	env.WaitCollector(t) // it restarts, so that it starts with the deleted objects
	pause(t, 5*time.Second)
	env.ClearLease(t)
	env.StartManager(t)
	for i, row := range matrix {
		t.Run(fmt.Sprintf("%s %s", row.kind, row.policy), func(t *testing.T) { cases[i].judge(t, row.want) })
	}
}

// pause lets other controllers act while the manager is away: the issue of the
// test is that time passes.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// deletion is one installed package, or lone set, and the object to delete.
type deletion struct {
	env       *harness.Env
	namespace string
	policy    metav1.DeletionPropagation
	target    client.Object
	uid       types.UID
	refusal   error
}

func newCase(t *testing.T, env *harness.Env, prefix, kind string, policy metav1.DeletionPropagation) *deletion {
	t.Helper()
	ns := strings.ToLower(strings.ReplaceAll(fmt.Sprintf("%s-%s-%s", prefix, kind, policy), " ", "-"))
	env.Namespace(t, ns)
	c := &deletion{env: env, namespace: ns, policy: policy}
	if kind == "lone ObjectSet" {
		c.target = loneSet(ns)
		env.Create(t, c.target)
	} else {
		env.Create(t, harness.Package(ns, "shop", env.Push(t, "matrix:1", harness.Phased("shop", 3, 3))))
		env.WaitAvailable(t, ns, "shop")
		c.target = c.find(t, kind)
		if kind == "ObjectDeployment" {
			c.leaveAlone(t) // otherwise, the Package recreates it
		}
	}
	c.waitObjects(t, 9)
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(c.target), c.target))
	c.uid = c.target.GetUID()
	return c
}

// leaveAlone deletes the Package and keeps its deployment.
func (c *deletion) leaveAlone(t *testing.T) {
	t.Helper()
	pkg := harness.Package(c.namespace, "shop", "")
	require.NoError(t, c.env.Client.Delete(t.Context(), pkg, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	c.env.WaitGone(t, harness.Patience, pkg)
	harness.Eventually(t, harness.Patience, "the deployment to stand alone", func(ctx context.Context) error {
		if err := c.env.Client.Get(ctx, client.ObjectKeyFromObject(c.target), c.target); err != nil {
			return err
		}
		if metav1.GetControllerOf(c.target) != nil {
			return fmt.Errorf("it is controlled")
		}
		return nil
	})
}

func (c *deletion) find(t *testing.T, kind string) client.Object {
	t.Helper()
	switch kind {
	case "Package":
		return harness.Package(c.namespace, "shop", "")
	case "ObjectDeployment":
		return &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "shop"}}
	}
	sets := &corev1alpha1.ObjectSetList{}
	require.NoError(t, c.env.Client.List(t.Context(), sets, client.InNamespace(c.namespace)))
	if len(sets.Items) != 1 {
		t.Fatalf("%d sets", len(sets.Items))
	}
	return &sets.Items[0]
}

// loneSet is an ObjectSet as a user of Package Operator writes it by hand.
func loneSet(namespace string) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alone"}}
	set.Spec.Revision = 1
	for p := range 3 {
		phase := corev1alpha1.ObjectSetTemplatePhase{Name: fmt.Sprintf("phase-%d", p)}
		for i := range 3 {
			var obj corev1alpha1.ObjectSetObject
			obj.Object.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"alone-%02d-%d"},"data":{"k":"v"}}`, p, i)
			phase.Objects = append(phase.Objects, obj)
		}
		set.Spec.Phases = append(set.Spec.Phases, phase)
	}
	return set
}

func (c *deletion) objects(ctx context.Context) ([]corev1.ConfigMap, error) {
	list := &corev1.ConfigMapList{}
	err := c.env.Client.List(ctx, list, client.InNamespace(c.namespace), client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue})
	return list.Items, err
}

func (c *deletion) waitObjects(t *testing.T, n int) {
	t.Helper()
	harness.Eventually(t, harness.Patience, fmt.Sprintf("%d objects in %s", n, c.namespace), func(ctx context.Context) error {
		objs, err := c.objects(ctx)
		if err == nil && len(objs) != n {
			err = fmt.Errorf("there are %d", len(objs))
		}
		return err
	})
}

func (c *deletion) remove(t *testing.T) {
	t.Helper()
	c.refusal = c.env.Client.Delete(t.Context(), c.target, client.PropagationPolicy(c.policy), client.Preconditions{UID: ptr.To(c.uid)})
}

func (c *deletion) judge(t *testing.T, want outcome) {
	t.Helper()
	if want == refused {
		c.judgeRefused(t)
		return
	}
	require.NoError(t, c.refusal)
	c.waitReplaced(t)
	switch want {
	case tornDown:
		nothingLeft(t, c.env, c.namespace)
	case orphaned:
		c.judgeUncontrolled(t)
	case keptRunning:
		c.judgeKept(t)
	case replaced:
		c.env.WaitAvailable(t, c.namespace, "shop")
		c.waitObjects(t, 9)
		for _, cm := range mustObjects(t, c) {
			if cm.DeletionTimestamp != nil || !controlled(&cm) {
				t.Errorf("%s is not controlled any more", cm.Name)
			}
		}
	}
}

// waitReplaced waits until the deleted object no longer exists. A new one can have its name.
func (c *deletion) waitReplaced(t *testing.T) {
	t.Helper()
	harness.Eventually(t, harness.Patience, c.target.GetName()+" to be gone", func(ctx context.Context) error {
		err := c.env.Client.Get(ctx, client.ObjectKeyFromObject(c.target), c.target)
		if apierrors.IsNotFound(err) || err == nil && c.target.GetUID() != c.uid {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is there with finalizers %v", c.target.GetFinalizers())
		}
		return err
	})
}

func (c *deletion) judgeRefused(t *testing.T) {
	t.Helper()
	if c.refusal == nil {
		t.Fatal("the deletion was not refused")
	}
	for _, remedy := range []string{"--cascade=background", "PrunePropagationPolicy=background"} {
		if !strings.Contains(c.refusal.Error(), remedy) {
			t.Errorf("the refusal does not name %s: %v", remedy, c.refusal)
		}
	}
	require.NoError(t, c.env.Client.Get(t.Context(), client.ObjectKeyFromObject(c.target), c.target))
	if c.target.GetDeletionTimestamp() != nil {
		t.Error("the object is being deleted all the same")
	}
	c.waitObjects(t, 9)
}

func (c *deletion) judgeUncontrolled(t *testing.T) {
	t.Helper()
	harness.Eventually(t, harness.Patience, "objects without an owner", func(ctx context.Context) error {
		list := &corev1.ConfigMapList{}
		if err := c.env.Client.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		left := slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool { return cm.Name == "kube-root-ca.crt" })
		if len(left) != 9 {
			return fmt.Errorf("%d of 9 objects are left", len(left))
		}
		for _, cm := range left {
			if why := marks(&cm); why != "" {
				return fmt.Errorf("%s has %s", cm.Name, why)
			}
		}
		return nil
	})
}

// marks returns an owner reference, or a label or an annotation of the engine, that an object still
// has.
func marks(obj client.Object) string {
	if len(obj.GetOwnerReferences()) > 0 {
		return "an owner"
	}
	for _, keys := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for key := range keys {
			if strings.Contains(key, corev1alpha1.GroupName) {
				return key
			}
		}
	}
	return ""
}

// judgeKept checks that the deployment runs on, and that a new Package of the
// name takes it back without touching an object.
func (c *deletion) judgeKept(t *testing.T) {
	t.Helper()
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "shop"}}
	require.NoError(t, c.env.Client.Get(t.Context(), client.ObjectKeyFromObject(dep), dep))
	uid, before := dep.UID, mustObjects(t, c)
	c.env.Create(t, harness.Package(c.namespace, "shop", c.env.Registry()+"/matrix:1"))
	c.env.WaitAvailable(t, c.namespace, "shop")
	require.NoError(t, c.env.Client.Get(t.Context(), client.ObjectKeyFromObject(dep), dep))
	if dep.UID != uid || metav1.GetControllerOf(dep) == nil {
		t.Errorf("the deployment was not taken back: UID %s, was %s", dep.UID, uid)
	}
	versions := map[string]string{}
	for _, cm := range before {
		versions[cm.Name] = cm.ResourceVersion
	}
	for _, cm := range mustObjects(t, c) {
		if versions[cm.Name] != cm.ResourceVersion {
			t.Errorf("%s was written", cm.Name)
		}
	}
}

func mustObjects(t *testing.T, c *deletion) []corev1.ConfigMap {
	t.Helper()
	objs, err := c.objects(t.Context())
	require.NoError(t, err)
	return objs
}
