package hostedclusterpackages

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// server is an API server with one HostedClusterPackage, which logs the writes.
type server struct {
	client.Client
	owner    *corev1alpha1.HostedClusterPackage
	packages map[string]*corev1alpha1.Package
	log      []string
	// refuse has the errors that writes of Packages in a namespace return.
	refuse map[string]error
	// unread is the error that lists of Packages return.
	unread  error
	version int
	// mu is held by writes, because several are sent at a time.
	mu sync.Mutex
}

func (s *server) next() string { s.version++; return fmt.Sprint(s.version) }

func (s *server) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch obj := obj.(type) {
	case *corev1alpha1.HostedClusterPackage:
		if key.Name == s.owner.Name {
			s.owner.DeepCopyInto(obj)
			return nil
		}
	case *corev1alpha1.Package:
		if pkg := s.packages[key.Namespace]; pkg != nil {
			pkg.DeepCopyInto(obj)
			return nil
		}
	}
	return apierrors.NewNotFound(corev1alpha1.Resource("x"), key.Name)
}

func (s *server) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if s.unread != nil {
		return s.unread
	}
	for _, pkg := range s.packages {
		if metav1.IsControlledBy(pkg, s.owner) {
			list.(*corev1alpha1.PackageList).Items = append(list.(*corev1alpha1.PackageList).Items, *pkg.DeepCopy())
		}
	}
	return nil
}

func (s *server) Apply(_ context.Context, body runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	sent := body.(interface{ UnstructuredContent() map[string]any })
	s.mu.Lock()
	defer s.mu.Unlock()
	pkg := &corev1alpha1.Package{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.UnstructuredContent(), pkg); err != nil {
		return err
	}
	s.log = append(s.log, "apply "+pkg.Namespace)
	if err := s.refuse[pkg.Namespace]; err != nil {
		return err
	}
	old := s.packages[pkg.Namespace]
	pkg.UID, pkg.Generation, pkg.ResourceVersion = types.UID("uid of "+pkg.Namespace), 1, s.next()
	if old != nil {
		pkg.Status, pkg.Generation = old.Status, old.Generation+1
	}
	s.packages[pkg.Namespace] = pkg
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pkg)
	for key, value := range content {
		sent.UnstructuredContent()[key] = value
	}
	return err
}

func (s *server) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) error {
	s.log = append(s.log, "delete "+obj.GetNamespace())
	if err := s.refuse[obj.GetNamespace()]; err != nil {
		return err
	}
	delete(s.packages, obj.GetNamespace())
	return nil
}

func (s *server) Status() client.SubResourceWriter { return statusServer{s} }

type statusServer struct{ *server }

func (s statusServer) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	status := obj.(*corev1alpha1.HostedClusterPackage).Status
	var queue []string
	for _, ref := range status.Processing {
		queue = append(queue, ref.Namespace)
	}
	s.log = append(s.log, fmt.Sprint("status ", queue))
	s.owner.Status, s.owner.ResourceVersion = status, s.next()
	s.owner.DeepCopyInto(obj.(*corev1alpha1.HostedClusterPackage))
	return nil
}

func (s statusServer) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errors.ErrUnsupported
}

func (s statusServer) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errors.ErrUnsupported
}

func (s statusServer) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errors.ErrUnsupported
}

// rig is a reconciler of a server, with hosted clusters ns-a and so on.
type rig struct {
	*server
	*Reconciler
	t        *testing.T
	now      time.Time
	clusters []environment.HostedCluster
}

func newRig(t *testing.T, names ...string) *rig {
	t.Helper()
	h := owner()
	h.ResourceVersion = "1"
	h.Spec.Strategy.RollingUpgrade = &corev1alpha1.HostedClusterPackageStrategyRollingUpgrade{MaxUnavailable: 1}
	r := &rig{server: &server{owner: h, packages: map[string]*corev1alpha1.Package{}, refuse: map[string]error{}}, t: t, now: time.Unix(1000, 0)}
	r.restart(names...)
	return r
}

// restart clears the manager's memory.
func (r *rig) restart(names ...string) {
	for _, name := range names {
		r.clusters = append(r.clusters, environment.HostedCluster{
			Key: types.NamespacedName{Namespace: "ns", Name: name}, Namespace: "ns-" + name, Available: true,
		})
	}
	r.Reconciler = &Reconciler{
		Options: Options{
			Fresh: mutationcache.NewStore(), HostedClusters: func() ([]environment.HostedCluster, error) { return r.clusters, nil },
		}, Client: r.server, Reader: r.server, Events: events.NewFakeRecorder(100),
		Now: func() time.Time { return r.now },
	}
}

// reconcile returns the writes until no step is due at once, and when the next one is due.
func (r *rig) reconcile() (string, time.Duration) {
	r.t.Helper()
	r.log = nil
	for range 10 {
		result, err := r.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: r.owner.Name}})
		if err != nil {
			return strings.Join(r.log, ", ") + ": " + err.Error(), 0
		}
		if result.RequeueAfter != time.Millisecond {
			return strings.Join(r.log, ", "), result.RequeueAfter
		}
	}
	r.t.Fatal("it is due again and again:", r.log)
	return "", 0
}

// rollOut reports Packages as rolled out, all of them by default.
func (r *rig) rollOut(namespaces ...string) {
	for namespace, pkg := range r.packages {
		if len(namespaces) > 0 && !slices.Contains(namespaces, namespace) {
			continue
		}
		conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionAvailable, true, "x", "")
		conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionUnpacked, true, "x", "")
		conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionProgressing, false, "x", "")
		conditions.Kstatus(&pkg.Status.Conditions, pkg.Generation, conditions.State{Ready: true, Reason: "x"})
		pkg.ResourceVersion = r.next()
	}
}

func (r *rig) expect(what, writes string, after time.Duration) {
	r.t.Helper()
	got, due := r.reconcile()
	if diff := cmp.Diff(writes, got); diff != "" || due != after {
		r.t.Errorf("%s: %s due after %s, want %s", what, diff, due, after)
	}
}

func (r *rig) upgrade(image string) {
	r.owner.Spec.Template.Spec.Image = image
	r.owner.Generation++
	r.owner.ResourceVersion = r.next()
}

func (r *rig) ready() string {
	c := meta.FindStatusCondition(r.owner.Status.Conditions, corev1alpha1.ConditionReady)
	return c.Reason + ": " + c.Message
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "b")
	if writes, _ := r.reconcile(); writes != "status [], apply ns-a, apply ns-b" && writes != "status [], apply ns-b, apply ns-a" {
		t.Error("created at once:", writes)
	}
	r.rollOut()
	r.now = r.now.Add(time.Minute)
	r.expect("rolled out", "status []", 0)
	r.expect("at rest", "", 0)
	r.restart()
	r.expect("at rest after a restart", "", 0)
	r.upgrade("shop:v2")
	r.expect("recorded before it is sent", "status [ns-a], apply ns-a", 0)
	r.now = r.now.Add(time.Minute)
	r.expect("under way", "status [ns-a]", 0)
	r.restart()
	r.expect("under way, after a restart", "", 0)
	r.rollOut()
	r.expect("the next", "status [ns-b], apply ns-b", 0)
	r.rollOut()
	r.now = r.now.Add(time.Minute)
	r.expect("rolled out", "status []", 0)
	r.packages["ns-a"].Spec.Image = "other"
	r.packages["ns-a"].Generation++
	r.rollOut()
	r.expect("drift is corrected within the budget", "status [ns-a], apply ns-a", 0)
	r.owner.DeletionTimestamp = &metav1.Time{Time: r.now}
	r.expect("being deleted", "", 0)
}

func conflict(fields string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonConflict, Code: http.StatusConflict, Message: "conflict with " + fields,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}},
	}}
}

// A write that the API server refuses gives up its place; a write that might have been performed
// keeps it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "b")
	r.reconcile()
	r.rollOut()
	r.refuse["ns-a"] = conflict(".spec.image")
	r.upgrade("shop:v2")
	r.expect("the next takes its place", "status [ns-a], apply ns-a, status [ns-b], apply ns-b", time.Second)
	require.Equal(t, "ApplyError: Package ns-a/shop: update Package ns-a/shop: conflict with .spec.image", r.ready())
	r.rollOut()
	r.now = r.now.Add(time.Second)
	r.expect("sent again after a pause", "status [ns-a], apply ns-a", limits.PackageStatusInterval)
	r.now = r.now.Add(limits.PackageStatusInterval)
	r.expect("reported", "status []", 2*time.Second-limits.PackageStatusInterval)
	r.now = r.now.Add(time.Hour)
	r.expect("a longer pause", "status [ns-a], apply ns-a", limits.PackageStatusInterval)
	r.now = r.now.Add(2 * limits.PackageStatusInterval)
	r.expect("reported", "status []", 4*time.Second-2*limits.PackageStatusInterval)
	r.packages["ns-a"].Labels["x"] = "y"
	r.expect("sent at once when the Package changed", "status [ns-a], apply ns-a, status []", time.Second)
	delete(r.refuse, "ns-a")
	r.now = r.now.Add(time.Hour)
	r.expect("accepted", "status [ns-a], apply ns-a", 0)

	r.rollOut()
	r.refuse["ns-a"] = apierrors.NewInternalError(errors.New("etcd is away"))
	r.upgrade("shop:v3")
	r.expect("it can have been written", "status [ns-a], apply ns-a", time.Second)
	r.now = r.now.Add(time.Second)
	r.expect("sent again", "status [ns-a], apply ns-a", 2*time.Second)
	if !strings.Contains(r.ready(), "etcd is away") || meta.IsStatusConditionTrue(r.owner.Status.Conditions, corev1alpha1.ConditionStalled) {
		t.Error(r.ready())
	}
	r.now = r.now.Add(time.Hour)
	r.refuse["ns-a"] = leadership.ErrNotLeading
	r.expect("not leading", "apply ns-a", limits.LeaseRetry)
	r.refuse["ns-a"] = apierrors.NewConflict(corev1alpha1.Resource("packages"), "shop", errors.New("the UID differs"))
	r.expect("the cache is behind", "apply ns-a", limits.ConflictRetry)
}

// A failure before anything is decided is on the status once it lasts.
func TestFailureIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a")
	r.reconcile()
	r.rollOut()
	r.now = r.now.Add(time.Minute)
	r.reconcile()
	r.unread = errors.New("the cache has stopped")
	r.expect("it can end soon", ": the cache has stopped", 0)
	r.now = r.now.Add(limits.ErrorsUnreported)
	r.expect("it lasts", "status []: the cache has stopped", 0)
	require.Equal(t, "ApplyError: the cache has stopped", r.ready())
	r.unread = nil
	r.expect("it has ended", "status []", 0)
	if !strings.HasPrefix(r.ready(), corev1alpha1.ReasonAllPackagesProgressed) {
		t.Error(r.ready())
	}
}

func TestRemovalRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "b")
	r.reconcile()
	r.rollOut()
	r.now = r.now.Add(time.Minute)
	r.reconcile()
	r.clusters = r.clusters[1:]
	r.refuse["ns-a"] = apierrors.NewForbidden(corev1alpha1.Resource("packages"), "shop", errors.New("no"))
	r.now = r.now.Add(time.Minute)
	r.expect("reported", "status [], delete ns-a, status []", time.Second)
	if !strings.HasPrefix(r.ready(), "ApplyError: Package ns-a/shop: delete Package ns-a/shop:") {
		t.Error(r.ready())
	}
	delete(r.refuse, "ns-a")
	r.now = r.now.Add(time.Minute)
	r.expect("deleted later", "delete ns-a", 0)
}

// What the API server makes of an apply is not applied again, and a later change of it is.
func TestNormalizedValues(t *testing.T) {
	t.Parallel()
	h := owner()
	tmpl, err := templateOf(h)
	s := &reconciliation{Reconciler: &Reconciler{Options: Options{Fresh: mutationcache.NewStore()}}, template: must(t, tmpl, err)}
	s.state, s.owner = s.memory.of(h), h
	pkg := made(t, s.template)
	expect := func(what string, generation int64, image string, want bool) {
		t.Helper()
		pkg.Generation, pkg.Spec.Image = generation, image
		if updated, err := s.isUpdated(pkg); err != nil || updated != want {
			t.Errorf("%s: %t %v", what, updated, err)
		}
	}
	expect("as the template says", 1, "shop:v1", true)
	expect("normalized, before it was applied", 2, "docker.io/shop:v1", false)
	s.wrote(pkg)
	expect("normalized", 2, "docker.io/shop:v1", true)
	expect("changed", 3, "other", false)
	expect("changed back", 4, "docker.io/shop:v1", true)
}

// live is the owner as the API server has it; the cache might be behind.
type live struct {
	client.Reader
	owner *corev1alpha1.HostedClusterPackage
}

func (l live) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if l.owner == nil {
		return apierrors.NewNotFound(corev1alpha1.Resource("hostedclusterpackages"), key.Name)
	}
	l.owner.DeepCopyInto(obj.(*corev1alpha1.HostedClusterPackage))
	return nil
}

// The deletion of this very owner might have left a Package without owner, and the cache might not
// show it. If the Package got an owner reference again, the garbage collector would delete it.
func TestOrphanedPackagesAreNotTakenBack(t *testing.T) {
	t.Parallel()
	deleted := func(h *corev1alpha1.HostedClusterPackage) *corev1alpha1.HostedClusterPackage {
		h = h.DeepCopy()
		h.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		return h
	}
	another := func(h *corev1alpha1.HostedClusterPackage) *corev1alpha1.HostedClusterPackage {
		h = h.DeepCopy()
		h.UID = "another"
		return h
	}
	for name, tc := range map[string]struct {
		live  func(*corev1alpha1.HostedClusterPackage) *corev1alpha1.HostedClusterPackage
		takes bool
	}{
		"its owner stays":          {live: (*corev1alpha1.HostedClusterPackage).DeepCopy, takes: true},
		"its owner is deleted":     {live: deleted},
		"its owner does not exist": {live: func(*corev1alpha1.HostedClusterPackage) *corev1alpha1.HostedClusterPackage { return nil }},
		"its owner is another one": {live: another},
	} {
		for _, image := range []string{"", "shop:v2"} { // empty means the image that it already has
			t.Run(name+image, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "a")
				_, _ = r.reconcile()
				r.rollOut()
				r.packages["ns-a"].OwnerReferences = nil
				if image != "" {
					r.upgrade(image)
				}
				r.restart()
				r.Reader = live{owner: tc.live(r.owner)}
				writes, _ := r.reconcile()
				if takes := strings.Contains(writes, "apply ns-a"); takes != tc.takes {
					t.Error("the Package is taken back:", takes, writes)
				}
			})
		}
	}
}
