package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	fakecluster "lockstep.run/lockstep/test/memory"
)

// Actions of other clients on a Package and its deployment.
const (
	adminOrphans    = "an administrator deletes the Package with --cascade=orphan"
	adminDeletes    = "an administrator deletes the Package"
	userStrips      = "a user takes the owner reference off the deployment"
	collectorStrips = "the garbage collector takes the owner reference off the deployment"
	collectorEnds   = "the garbage collector takes its finalizer off the Package"
)

// orphaning are the steps of an orphaning deletion.
var orphaning = []string{adminOrphans, collectorStrips, collectorEnds}

// The manager can be stopped before each of its requests, and killed before or after each of its
// writes, while other clients take any number of steps. Its caches can show the Package and the
// deployment as of any earlier time. All of these orders are tried.
func TestOrphaningDeletionInEveryOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// left means that the deployment has no controller, and calm that the manager has seen that
		// before any other client acts.
		left, calm bool
		steps      []string
		leaves     bool
		// passes of the manager during which other clients can act, and how often it can be killed.
		// More take minutes.
		passes, kills int
	}{
		"a deployment of the Package":                     {steps: orphaning, leaves: true, passes: 2, kills: 1},
		"a deployment that was left by an earlier one":    {left: true, steps: orphaning, leaves: true, passes: 2},
		"a deployment that lost its reference before":     {steps: append([]string{userStrips}, orphaning...), leaves: true, passes: 2},
		"a deployment whose Package is deleted with it":   {steps: []string{adminDeletes}, passes: 3, kills: 1},
		"a deployment that was taken back a while before": {left: true, calm: true, steps: []string{adminDeletes}, passes: 2, kills: 1},
	} {
		if os.Getenv("LOCKSTEP_DEEP") != "" {
			tc.passes, tc.kills = 3, 1
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := explore(func(c *choices) string {
				w := newWorld(t, c, tc.left)
				if tc.calm {
					w.reconcile()
				}
				w.steps, w.kills = tc.steps, tc.kills
				for range tc.passes {
					w.reconcile()
				}
				return w.converge(tc.leaves)
			}, func(failure string) { t.Fatal(failure) })
			t.Logf("%d orders", runs)
		})
	}
}

// choices are the decisions of one run: those given, and then the first of each.
type choices struct{ given, taken, of []int }

// pick chooses one of n.
func (c *choices) pick(n int) int {
	if n < 2 {
		return 0
	}
	chosen := 0
	if at := len(c.taken); at < len(c.given) {
		chosen = c.given[at]
	}
	c.taken, c.of = append(c.taken, chosen), append(c.of, n)
	return chosen
}

// explore runs run with all choices there are, and returns how often that was.
func explore(run func(*choices) string, failed func(string)) int {
	c := &choices{}
	for runs := 1; ; runs++ {
		if failure := run(c); failure != "" {
			failed(failure)
			return runs
		}
		last := len(c.taken) - 1
		for last >= 0 && c.taken[last]+1 == c.of[last] {
			last--
		}
		if last < 0 {
			return runs
		}
		c = &choices{given: append(slices.Clone(c.taken[:last]), c.taken[last]+1)}
	}
}

var errKilled = errors.New("the manager was killed")

// world is an API server with a Package and its deployment, the manager, and others.
type world struct {
	t      *testing.T
	c      *choices
	server *fakecluster.Server
	// steps are the remaining steps of other clients, and kills the remaining kills of the manager.
	steps []string
	kills int
	// states are all states that the Package and the deployment have had, nil for none; shown is
	// the index of the state that the caches show.
	states map[objects.Key][]*unstructured.Unstructured
	shown  map[objects.Key]int

	manager *Reconciler
	log     []string
}

var (
	packageKey    = objects.Key{Group: corev1alpha1.GroupName, Kind: "Package", Namespace: "team", Name: "shop"}
	deploymentKey = objects.Key{Group: corev1alpha1.GroupName, Kind: "ObjectDeployment", Namespace: "team", Name: "shop"}
)

func newWorld(t *testing.T, c *choices, isLeft bool) *world {
	t.Helper()
	w := &world{
		t: t, c: c, states: map[objects.Key][]*unstructured.Unstructured{}, shown: map[objects.Key]int{},
		server: fakecluster.NewServer(apinames.Default, func() time.Time { return start },
			fakecluster.Kind{GroupVersionKind: corev1alpha1.GroupVersion.WithKind("Package"), Unmanaged: true},
			fakecluster.Kind{GroupVersionKind: corev1alpha1.GroupVersion.WithKind("ObjectDeployment"), Unmanaged: true}),
	}
	w.server.Stored = func(e fakecluster.Event) { w.states[e.Key] = append(w.states[e.Key], e.After) }
	pkg := &corev1alpha1.Package{}
	w.create(packageKey, unpackedPackage(func(pkg *corev1alpha1.Package) { pkg.Generation = 1 }), pkg)
	dep := newOwned(described)
	dep.Finalizers, dep.Labels = []string{corev1alpha1.CachedFinalizer}, deployment.Selection(pkg)
	if dep.OwnerReferences[0].UID = pkg.UID; isLeft {
		dep.OwnerReferences = nil
	}
	w.create(deploymentKey, dep, dep)
	w.start()
	return w
}

func (w *world) create(key objects.Key, obj, into any) {
	u, err := w.server.Create(key, w.encoded(obj), "")
	w.must(err)
	w.decode(u, into)
}

func (w *world) encoded(obj any) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	w.must(err)
	return &unstructured.Unstructured{Object: content}
}

func (w *world) decode(u *unstructured.Unstructured, into any) {
	w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.DeepCopy().Object, into))
}

// others take any number of their steps.
func (w *world) others() {
	for len(w.steps) > 0 && w.c.pick(2) == 1 {
		w.other()
	}
}

func (w *world) other() {
	step := w.steps[0]
	w.steps = w.steps[1:]
	w.log = append(w.log, step)
	edit := func(key objects.Key, change func(*unstructured.Unstructured)) {
		if _, err := w.server.Edit(key, "", change); !apierrors.IsNotFound(err) {
			w.must(err)
		}
	}
	pkg := w.server.Get(packageKey)
	if pkg == nil {
		return
	}
	switch step {
	case adminOrphans:
		edit(packageKey, func(u *unstructured.Unstructured) {
			u.SetFinalizers(append(u.GetFinalizers(), metav1.FinalizerOrphanDependents))
		})
		fallthrough
	case adminDeletes:
		_, err := w.server.Delete(packageKey, "", "")
		w.must(err)
	case userStrips:
		edit(deploymentKey, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
	case collectorStrips:
		edit(deploymentKey, func(u *unstructured.Unstructured) {
			u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == pkg.GetUID() }))
		})
	case collectorEnds:
		edit(packageKey, func(u *unstructured.Unstructured) {
			u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerOrphanDependents }))
		})
	}
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

// start starts a manager with an empty memory.
func (w *world) start() {
	r, _ := newReconciler(w.t)
	r.Client, r.Reader = &worldClient{world: w, cached: true}, &worldClient{world: w}
	w.manager = r
}

// worldClient is a client of the manager, which reads from the caches or from the API server.
type worldClient struct {
	client.Client
	*world
	cached bool
}

func worldKey(obj client.Object) objects.Key {
	if _, ok := obj.(*corev1alpha1.Package); ok {
		return packageKey
	}
	return deploymentKey
}

func (c *worldClient) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	key := worldKey(obj)
	var found *unstructured.Unstructured
	if c.cached {
		states := c.states[key]
		c.shown[key] += c.c.pick(len(states) - c.shown[key])
		found = states[c.shown[key]]
		c.log = append(c.log, fmt.Sprintf("manager sees state %d of %d of %s", c.shown[key]+1, len(states), key.Kind))
	} else {
		c.others()
		found = c.server.Get(key)
		c.log = append(c.log, "manager reads "+key.Kind)
	}
	if found == nil {
		return apierrors.NewNotFound(corev1alpha1.Resource(strings.ToLower(key.Kind)), key.Name)
	}
	c.decode(found, obj)
	return nil
}

func (*worldClient) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (c *worldClient) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	c.must(err)
	key := worldKey(obj)
	return c.write("patches "+key.Kind+" "+string(data), func() error {
		u, err := c.server.MergePatch(key, data, "")
		if err == nil {
			c.decode(u, obj)
		}
		return err
	})
}

func (c *worldClient) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	key := worldKey(obj)
	return c.write("deletes "+key.Kind, func() error {
		_, err := c.server.Delete(key, *o.Preconditions.UID, *o.Preconditions.ResourceVersion)
		return err
	})
}

// Status does not write, because this model makes no decisions from a status.
func (*worldClient) Status() client.SubResourceWriter { return noStatus{} }

type noStatus struct{ client.SubResourceWriter }

func (noStatus) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return nil
}

func (noStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

func (w *world) write(what string, do func() error) error {
	w.others()
	fate := 0
	if w.kills > 0 {
		fate = w.c.pick(3)
	}
	if fate == 1 {
		w.kills--
		return errKilled
	}
	err := do()
	w.log = append(w.log, fmt.Sprintf("manager %s: %v", what, err))
	if fate == 2 {
		w.kills--
		return errKilled
	}
	return err
}

// reconcile is one pass of the manager, limited to the deployment and its owner.
func (w *world) reconcile() {
	w.others()
	w.log = append(w.log, "manager reconciles")
	if err := w.pass(context.Background()); errors.Is(err, errKilled) {
		w.log = append(w.log, err.Error())
		w.start()
	}
}

func (w *world) pass(ctx context.Context) error {
	s, err := w.manager.gather(ctx, client.ObjectKey{Namespace: "team", Name: "shop"})
	if err != nil || s == nil {
		return err
	}
	if s.pkg.GetDeletionTimestamp() != nil {
		return s.tearDown(ctx)
	}
	s.choice, s.fingerprint = imageChoice, printOf(s.pkg)
	return errors.Join(s.next(s.decide)(ctx), s.deploy(ctx), s.writeErr)
}

// converge lets other clients take their last steps, and the manager see them, until the Package is
// removed. It returns the remaining problem.
func (w *world) converge(leaves bool) string {
	w.kills = 0
	for len(w.steps) > 0 {
		w.other()
	}
	for range 10 {
		for key, states := range w.states {
			w.shown[key] = len(states) - 1
		}
		w.reconcile()
		dep := w.server.Get(deploymentKey)
		if w.server.Get(packageKey) == nil && (dep == nil || dep.GetDeletionTimestamp() == nil) {
			break
		}
		if dep != nil && dep.GetDeletionTimestamp() != nil { // it is torn down
			_, err := w.server.Edit(deploymentKey, "", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
			w.must(err)
		}
	}
	dep, problem := w.server.Get(deploymentKey), ""
	switch {
	case w.server.Get(packageKey) != nil:
		problem = "the Package is not removed"
	case !leaves && dep != nil:
		problem = "the deployment is left"
	case leaves && dep == nil:
		problem = "the deployment was deleted"
	case leaves && len(dep.GetOwnerReferences()) > 0:
		problem = "the deployment names a deleted owner, and the garbage collector deletes it"
	}
	if problem == "" {
		return ""
	}
	return problem + ":\n" + strings.Join(w.log, "\n")
}
