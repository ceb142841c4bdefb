package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// requiresShops returns a loaded Package that requires an API whose schema is read.
func requiresShops(c *cluster) *reconciliation {
	entry := corev1alpha1.DependencyStatus{}
	entry.Name, entry.API = "shops", &corev1alpha1.DependencyAPI{APIVersion: "example.com/v1", Kind: "Shop", FieldPaths: []string{"spec.a"}}
	s := c.of(newPackage(recording(entry)))
	s.step = stepSync
	return s
}

// No request waits while the API server is read, not even deletions in the same namespace.
func TestNothingWaitsForAResolution(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.generate("shop-db", "shop")
	reads := 0
	c.ServedAPI = resolver.Served(func(*corev1alpha1.DependencyAPI) (bool, []string) {
		reads++
		held := c.deployed("shop-db")
		if c.must(held.hold(t.Context())); len(held.heldBy) != 1 {
			t.Errorf("held by %v", held.heldBy)
		}
		c.surveyOf("")
		return true, nil
	})
	s := requiresShops(c)
	c.must(s.next(s.depend)(t.Context()))
	if s.required == nil || !s.required.Result.Ready || reads != 1 {
		t.Errorf("%+v after %d reads", s.required, reads)
	}
}

// A panic over an API server's answer leaves no lock behind, and does not cost another Package its
// turn.
func TestPanicInAResolution(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.ServedAPI = resolver.Served(func(*corev1alpha1.DependencyAPI) (bool, []string) { panic("malformed") })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _, _ = requiresShops(c).depend(t.Context())
	}()
	c.ServedAPI = resolver.Served(func(*corev1alpha1.DependencyAPI) (bool, []string) { return true, nil })
	s := requiresShops(c)
	if c.must(s.next(s.depend)(t.Context())); s.required == nil || !s.required.Result.Ready {
		t.Errorf("%+v", s.required)
	}
}

// While the Packages cannot be listed, no decision is made: it might delete a package under its
// dependents, or change it for only one of them.
func TestUnreadPackages(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.generate("shop-db", "shop")
	db := c.deployed("shop-db")
	stopped := errors.New("the cache has stopped")
	working := c.Client
	c.Client = interceptor.NewClient(c.server.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, packages := list.(*corev1alpha1.PackageList); packages {
				return stopped
			}
			return c.List(ctx, list, opts...)
		},
	})
	if err := db.hold(t.Context()); !errors.Is(err, stopped) {
		t.Errorf("held by %v: %v", db.heldBy, err)
	}
	if _, err := c.of(c.get("shop")).resolveDependencies(t.Context(), nil); !errors.Is(err, stopped) {
		t.Error("resolved:", err)
	}
	if _, err := c.ledger.Release(t.Context(), c.get("shop"), "db", in("shop-db"), false); !errors.Is(err, stopped) {
		t.Error("released:", err)
	}
	c.Client = working
	if c.must(db.hold(t.Context())); len(db.heldBy) != 1 {
		t.Errorf("held by %v", db.heldBy)
	}
}

// A decision that is about to be recorded holds the packages that it uses, and does not use a
// package that is about to be deleted.
func TestDecisionsCount(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.generate("shop-db", "shop")
	db, blog := in("shop-db"), newPackage()
	blog.Name, blog.UID, blog.ResourceVersion = "blog", "", ""
	c.must(c.server.Create(t.Context(), blog))
	held := func() []resolver.Instance {
		s := c.deployed("shop-db")
		c.must(s.hold(t.Context()))
		return s.heldBy
	}
	own := snapshot.InstanceOf(blog)
	d := &dependencies.Plan{Entries: []corev1alpha1.DependencyStatus{entry("db", "shop-db", corev1alpha1.ReasonAlreadyInstalled)}}
	d.Result.Outcomes = []resolver.Outcome{outcomeOf("db", "shop-db", corev1alpha1.ReasonAlreadyInstalled)}
	was := c.surveyOf("team")
	blogs, err := c.ledger.Commit(t.Context(), own, d, was, false)
	if err != nil || blogs.Outdated || fmt.Sprint(held()) != "[Package team/blog Package team/shop]" {
		t.Errorf("committed %v, held by %v", err, held())
	}
	if blogs.Done(); fmt.Sprint(held()) != "[Package team/shop]" {
		t.Errorf("held by %v", held())
	}
	// Others see a decided deletion at once.
	shop := c.get("shop")
	shop.Spec.Dependencies = &corev1alpha1.PackageDependencies{DeletionPolicy: corev1alpha1.DeletionPolicyDelete}
	shops, err := c.ledger.Release(t.Context(), shop, "db", db, false)
	if err != nil || shops.Package == nil || len(shops.Others) > 0 || shops.Done == nil {
		t.Fatalf("%+v, %v", shops, err)
	}
	for _, last := range []bool{false, true} {
		if blogs, err := c.ledger.Commit(t.Context(), own, d, was, last); err != nil || blogs.Done != nil {
			t.Errorf("a package that is being deleted is used (last attempt: %t)", last)
		}
	}
	shops.Done()
	if blogs, err = c.ledger.Commit(t.Context(), own, d, was, false); err != nil || blogs.Done == nil {
		t.Fatal("it stays, and is used")
	}
	// And the other way round: a used package stays.
	if shops, _ = c.ledger.Release(t.Context(), shop, "db", db, false); shops.Done != nil || fmt.Sprint(shops.Others) != "[Package team/blog]" {
		t.Errorf("deleted beside %v", shops.Others)
	}
	blogs.Done()
}

// An overtaken resolution is repeated. Its last attempt is given up only if a package that it uses
// is being removed.
func TestOvertakenResolution(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	other := newPackage()
	other.Name, other.UID, other.ResourceVersion = "other", "", ""
	c.must(c.server.Create(t.Context(), other))
	reads := 0
	c.ServedAPI = resolver.Served(func(*corev1alpha1.DependencyAPI) (bool, []string) {
		reads++
		other.Spec.Image = fmt.Sprintf("image:%d", reads)
		other.Status.Resolved = &corev1alpha1.ResolvedPackage{PackageName: "other", Version: fmt.Sprintf("%d.0.0", reads)}
		c.must(c.server.Update(t.Context(), other))
		return true, nil
	})
	entry := corev1alpha1.DependencyStatus{}
	entry.Name, entry.API = "shops", &corev1alpha1.DependencyAPI{APIVersion: "example.com/v1", Kind: "Shop"}
	s := c.of(newPackage(recording(entry)))
	s.step = stepSync
	if c.must(s.next(s.depend)(t.Context())); s.required == nil || !s.required.Result.Ready || reads < limits.ConflictAttempts {
		t.Errorf("%+v after %d reads", s.required, reads)
	}
}

// Packages of one namespace are resolved one at a time; across namespaces, several run in parallel,
// and ClusterPackages do not wait for them. A waiting Package does not occupy a worker. Its load
// stays known, also after it is deployed, because the status records its requirements first.
func TestAdmission(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	enqueued := make(chan types.NamespacedName, 100)
	c.enqueue = func(key types.NamespacedName) { enqueued <- key }
	of := func(namespace, name string) *reconciliation {
		pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
		pkg.SetNamespace(namespace)
		pkg.SetName(name)
		pkg.PackageStatus().Dependencies = []corev1alpha1.DependencyStatus{{Dependency: dependencyOn("db", "")}}
		s := c.of(pkg)
		s.step, s.attempt = stepDeploy, &load.Attempt{Out: load.Out{Content: &load.Content{Dependencies: []corev1alpha1.Dependency{dependencyOn("db", "")}}}}
		return s
	}
	var ends []func()
	for k := range limits.ResolutionsAtOnce {
		end, admitted := of(fmt.Sprintf("ns-%d", k), "x").admit(c.resolutions)
		if !admitted {
			t.Fatalf("namespace %d waits", k)
		}
		ends = append(ends, end)
	}
	deployed := of("ns-new", "x")
	deployed.attempt.Out.Deployed = start
	for _, s := range []*reconciliation{of("ns-0", "second"), deployed} {
		if err := s.next(s.depend)(t.Context()); err != nil || s.step != stepGather || s.required != nil || s.waits != c.resolutions {
			t.Errorf("%s continues: step %d, %v", s.pkg.GetName(), s.step, err)
		}
	}
	if end, admitted := of("", "platform").admit(c.resolutions); !admitted {
		t.Error("a ClusterPackage waits for namespaces")
	} else {
		end()
	}
	ends[0]()
	if next := <-enqueued; next.Name != "second" {
		t.Errorf("%s is next", next)
	}
	// A Package that no longer needs its turn lets the next one in.
	c.leave(requestFor(of("ns-0", "second").pkg), nil)
	if next := <-enqueued; next.Namespace != "ns-new" {
		t.Errorf("%s is next", next)
	}
}

// While a webhook delays the writes for a Package of one namespace, Packages of other namespaces
// and ClusterPackages are resolved, and all are torn down.
func TestSlowWritesDelayNoOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.generate("shop-db", "shop", "blog")
	c.unmark("shop-db", "blog")
	entered, leaves := make(chan struct{}), make(chan struct{})
	c.Client = interceptor.NewClient(c.server.(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			close(entered)
			<-leaves
			return apierrors.NewConflict(corev1alpha1.GroupVersion.WithResource("packages").GroupResource(), "shop-db", nil)
		},
	})
	c.ServedAPI = resolver.Served(func(*corev1alpha1.DependencyAPI) (bool, []string) { return true, nil })
	slow := make(chan error)
	go func() {
		at := in("shop-db")
		s := c.of(c.get("blog"))
		end, _ := s.admit(s.resolutions)
		defer end()
		d := &dependencies.Plan{Result: resolver.Result{Ready: true, Outcomes: []resolver.Outcome{{Dependency: dependencyOn("db", ">=9"), Satisfied: true, Satisfier: &at}}}}
		committed, _ := c.ledger.Commit(t.Context(), snapshot.InstanceOf(s.pkg), d, c.surveyOf("team"), true)
		defer committed.Done()
		slow <- s.perform(t.Context(), d, committed.Now)
	}()
	<-entered
	other := requiresShops(c)
	other.pkg.SetNamespace("other")
	if c.must(other.next(other.depend)(t.Context())); other.required == nil {
		t.Error("another namespace waits")
	}
	pkg := c.get("shop")
	pkg.DeletionTimestamp = &metav1.Time{Time: start}
	s := c.of(pkg)
	if c.must(s.hold(t.Context())); len(s.heldBy) > 0 {
		t.Errorf("held by %v", s.heldBy)
	}
	close(leaves)
	if err := <-slow; err != nil && !queueing.Raced(err) {
		t.Error(err)
	}
}

// deployed returns a reconciliation of a Package with a deployment, one of whose revisions has
// claimed its objects.
func (c *cluster) deployed(name string, change ...func(*corev1alpha1.ObjectDeployment, *corev1alpha1.ObjectSet)) *reconciliation {
	c.t.Helper()
	s, dep, set := c.of(c.get(name)), newOwned(), &corev1alpha1.ObjectSet{}
	dep.Name, dep.OwnerReferences = name, []metav1.OwnerReference{*metav1.NewControllerRef(s.pkg, corev1alpha1.GroupVersion.WithKind("Package"))}
	set.Namespace, set.Name, set.OwnerReferences = "team", name+"-1", []metav1.OwnerReference{*metav1.NewControllerRef(dep, corev1alpha1.GroupVersion.WithKind("ObjectDeployment"))}
	set.Status.Conditions = []metav1.Condition{conditionOf(corev1alpha1.ConditionClaimed, "True", "Test")}
	for _, c := range change {
		c(dep, set)
	}
	c.must(client.IgnoreAlreadyExists(c.server.Create(c.t.Context(), set)))
	s.dep = dep
	return s
}

// Dependents do not hold a Package that wrote no objects: its deletion removes none.
func TestNothingWrittenIsNotHeld(t *testing.T) {
	t.Parallel()
	claimed := func(status string) []metav1.Condition {
		return []metav1.Condition{conditionOf(corev1alpha1.ConditionClaimed, status, "Test")}
	}
	for reason, tc := range map[string]struct {
		absent bool
		change func(*corev1alpha1.ObjectDeployment, *corev1alpha1.ObjectSet)
		held   bool
	}{
		"it has no deployment, or the deployment was torn down": {absent: true},
		"a deployment of another owner": {change: func(d *corev1alpha1.ObjectDeployment, s *corev1alpha1.ObjectSet) {
			controlledBy("Package", "other", "")(d)
			s.Status.Conditions = claimed("True")
		}},
		"a former deployment that is being deleted": {change: func(d *corev1alpha1.ObjectDeployment, s *corev1alpha1.ObjectSet) {
			controlledBy("Package", "shop-db", "")(d)
			d.DeletionTimestamp = &metav1.Time{Time: start}
			s.Status.Conditions = claimed("True")
		}},
		"an unknown revision": {},
		"a revision that is refused": {change: func(_ *corev1alpha1.ObjectDeployment, s *corev1alpha1.ObjectSet) {
			s.Status.Conditions = claimed("False")
		}},
		"one that was made with its claim, and refused since": {change: func(_ *corev1alpha1.ObjectDeployment, s *corev1alpha1.ObjectSet) {
			s.Annotations = map[string]string{corev1alpha1.ClaimedAnnotation: "true"}
			s.Status.Conditions, s.Status.Phases = claimed("False"), []corev1alpha1.PhaseStatus{{State: corev1alpha1.PhaseStateWaiting}}
		}},
		"one that had objects before it lost its claim": {change: func(_ *corev1alpha1.ObjectDeployment, s *corev1alpha1.ObjectSet) {
			s.Status.Conditions, s.Status.Phases = claimed("False"), []corev1alpha1.PhaseStatus{{State: corev1alpha1.PhaseStateApplying}}
		}, held: true},
		"one with its objects": {change: func(_ *corev1alpha1.ObjectDeployment, s *corev1alpha1.ObjectSet) {
			s.Status.ControllerOf = make([]corev1alpha1.ControlledObjectReference, 1)
		}, held: true},
		"one that claimed its own": {change: func(_ *corev1alpha1.ObjectDeployment, s *corev1alpha1.ObjectSet) {
			s.Status.Conditions = claimed("True")
		}, held: true},
		"one that was made with them": {change: func(_ *corev1alpha1.ObjectDeployment, s *corev1alpha1.ObjectSet) {
			s.Annotations = map[string]string{corev1alpha1.ClaimedAnnotation: "true"}
		}, held: true},
	} {
		c := newCluster(t)
		c.generate("shop-db", "shop")
		s := c.deployed("shop-db", func(d *corev1alpha1.ObjectDeployment, set *corev1alpha1.ObjectSet) {
			if set.Status.Conditions = nil; tc.change != nil {
				tc.change(d, set)
			}
		})
		if tc.absent {
			s.dep = nil
		}
		if c.must(s.hold(t.Context())); (len(s.heldBy) > 0) != tc.held {
			t.Errorf("%s: held by %v", reason, s.heldBy)
		}
	}
}

// What changes in a namespace enqueues Packages there alone, unless it depends on a ClusterPackage
// that heeds all its dependents.
func TestWakesStayInTheNamespace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var enqueued []string
	c.enqueue = func(key types.NamespacedName) { enqueued = append(enqueued, key.Namespace) }
	note := func() {
		for _, namespace := range []string{"evil", "victim", "other", ""} {
			key := types.NamespacedName{Namespace: namespace, Name: "app"}
			c.ledger.Open(key)
			c.ledger.Note(key, []string{"db"})
			c.ledger.Open(key)
		}
	}
	packageIn := func(namespace, name string, paused bool) corev1alpha1.GenericPackage {
		pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
		pkg.SetNamespace(namespace)
		pkg.SetName("x")
		pkg.PackageSpec().Paused = paused
		pkg.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: name}
		conditions.Set(pkg.StatusConditions(), 0, corev1alpha1.ConditionDependenciesReady, false, corev1alpha1.ReasonDependenciesUnsatisfied, "")
		return pkg
	}
	offerIn := func(namespace string) corev1alpha1.GenericAvailablePackage {
		offer := corev1alpha1.ScopeOf(namespace).NewAvailablePackage()
		offer.SetNamespace(namespace)
		*offer.AvailableSpec() = corev1alpha1.AvailablePackageSpec{PackageName: "db", Versions: []corev1alpha1.AvailableVersion{{Version: "1.0.0"}}}
		return offer
	}
	heeding := corev1alpha1.ScopeCluster.NewPackage()
	heeding.SetName("heeds")
	heeding.PackageSpec().UpgradePolicy = &corev1alpha1.UpgradePolicy{Dependents: corev1alpha1.DependentsAll}
	c.must(c.server.Create(t.Context(), heeding))
	dependent := func(paused bool) corev1alpha1.GenericPackage {
		pkg := packageIn("evil", "app", paused)
		pkg.PackageStatus().Dependencies = []corev1alpha1.DependencyStatus{{PackageRef: &corev1alpha1.DependencyReference{Kind: "ClusterPackage", Name: "heeds"}}}
		return pkg
	}
	for _, tc := range []struct {
		reason string
		change func() error
		want   []string
	}{
		{"it is continued", func() error {
			return c.packageChanged(t.Context(), packageIn("evil", "app", true), packageIn("evil", "app", false))
		}, []string{"evil"}},
		{"it has the name of a package that others need", func() error { return c.packageChanged(t.Context(), nil, packageIn("evil", "db", true)) }, []string{"evil"}},
		{"it is offered", func() error { return c.followers.OffersChanged(t.Context(), nil, offerIn("evil")) }, []string{"evil"}},
		{"it depends on a package that considers all dependents", func() error { return c.packageChanged(t.Context(), dependent(true), dependent(false)) }, []string{"", "evil"}},
		{"the cluster has it", func() error { return c.packageChanged(t.Context(), nil, packageIn("", "db", false)) }, []string{"", "evil", "other", "victim"}},
		{"it is offered to all", func() error { return c.followers.OffersChanged(t.Context(), nil, offerIn("")) }, []string{"", "evil", "other", "victim"}},
	} {
		for _, open := range []bool{false, true} {
			note()
			enqueued = nil
			c.must(tc.change())
			if open { // a change during their resolution is considered at the end
				enqueued = nil
				for _, namespace := range []string{"evil", "victim", "other", ""} {
					c.ledger.Note(types.NamespacedName{Namespace: namespace, Name: "app"}, []string{"db"})
				}
			}
			slices.Sort(enqueued)
			if got := slices.Compact(enqueued); !slices.Equal(got, tc.want) {
				t.Errorf("%s (open: %t): enqueued in %q, want %q", tc.reason, open, got, tc.want)
			}
		}
	}
}
