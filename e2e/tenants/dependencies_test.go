package tenants_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

const patience = harness.Patience

// wish returns a Package, or without a namespace a ClusterPackage, by constraint.
func wish(namespace, name, of, constraint string, changes ...func(*corev1alpha1.PackageSpec)) corev1alpha1.GenericPackage {
	pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
	pkg.SetNamespace(namespace)
	pkg.SetName(name)
	pkg.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: of, VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
	for _, change := range changes {
		change(pkg.PackageSpec())
	}
	return pkg
}

func deleting(spec *corev1alpha1.PackageSpec) {
	spec.Dependencies = &corev1alpha1.PackageDependencies{DeletionPolicy: corev1alpha1.DeletionPolicyDelete}
}

func allowing(spec *corev1alpha1.PackageSpec) {
	spec.UpgradePolicy = &corev1alpha1.UpgradePolicy{AllowDependents: true}
}

// install creates a package as the administrator, and waits for it. A ClusterPackage is
// deleted at the end of the test.
func install(t *testing.T, pkg corev1alpha1.GenericPackage) {
	t.Helper()
	env.Create(t, pkg)
	if pkg.GetNamespace() == "" {
		t.Cleanup(func() { discard(pkg.GetName()) })
	}
	awaitReady(t, pkg.GetNamespace(), pkg.GetName(), "")
}

// discard deletes ClusterPackages, even if they have dependents.
func discard(names ...string) {
	for _, name := range names {
		pkg := harness.ClusterPackage(name, "")
		_ = env.Client.Patch(context.Background(), pkg, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+corev1alpha1.DeleteRequiredAnnotation+`":"true"}}}`)))
		_ = env.Client.Delete(context.Background(), pkg)
	}
}

// awaitReady waits until a package is ready, in the given version if it is not empty.
func awaitReady(t *testing.T, namespace, name, version string) corev1alpha1.GenericPackage {
	t.Helper()
	pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
	pkg.SetNamespace(namespace)
	pkg.SetName(name)
	return harness.Await(t, env, patience, pkg, "is ready "+version, func(pkg corev1alpha1.GenericPackage) error {
		if r := pkg.PackageStatus().Resolved; r == nil || version != "" && r.Version != version {
			return fmt.Errorf("resolved %+v, conditions %+v", r, pkg.PackageStatus().Conditions)
		}
		return harness.HasCondition(pkg, corev1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})
}

func awaitRefusal(t *testing.T, namespace, name string, texts ...string) {
	t.Helper()
	pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
	pkg.SetNamespace(namespace)
	pkg.SetName(name)
	harness.Await(t, env, patience, pkg, "is refused", func(pkg corev1alpha1.GenericPackage) error {
		return harness.HasCondition(pkg, corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, corev1alpha1.ReasonDependenciesUnsatisfied, texts...)
	})
}

// awaitEvent waits for a warning about an object that has a text.
func awaitEvent(t *testing.T, about client.Object, reason, text string) {
	t.Helper()
	harness.Eventually(t, patience, "an event that names "+text, func(ctx context.Context) error {
		list := &eventsv1.EventList{}
		if err := env.Client.List(ctx, list); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Name == about.GetName() && e.Regarding.Namespace == about.GetNamespace() && e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
		}
		return fmt.Errorf("it is not among %d", len(list.Items))
	})
}

// untouched fails the test if a package does not exist, or if the manager has written more than
// its status since the start of the journal.
func untouched(t *testing.T, j *harness.Journal, namespace, name string) {
	t.Helper()
	env.Package(t, namespace, name)
	entries, err := j.Since(t.Context(), j.From, sandbox.ByUser(harness.ManagerUser()), func(e sandbox.Entry) bool {
		return (e.Object.Resource == "packages" || e.Object.Resource == "clusterpackages") && e.Object.Namespace == namespace && e.Object.Name == name &&
			e.Object.Subresource == "" && e.Verb != "get"
	})
	require.NoError(t, err)
	if len(entries) > 0 {
		t.Errorf("%s/%s was changed:%s", namespace, name, harness.Lines(entries))
	}
}

// released returns an error unless a generated package has no label of a dependent.
func released[T client.Object](pkg T) error {
	if len(pkg.GetLabels()) != 1 {
		return fmt.Errorf("labels %v", pkg.GetLabels())
	}
	return nil
}

// A dependency of a Package is only deleted with it if it was installed for it, in its
// namespace.
func TestDepDelete(t *testing.T) {
	t.Parallel()
	// left returns the name of a ClusterPackage whose dependent no longer needs it.
	left := func(t *testing.T, name string, db harness.Release) string {
		env.Offer(t, "", name+"-db", db)
		env.Offer(t, "", name+"-platform", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", name+"-db", "")}}, harness.Release{Version: "2.0.0"})
		install(t, wish("", name, name+"-platform", "1.0.0"))
		t.Cleanup(func() { discard(name + "-db") })
		harness.Edit(t, env, harness.ClusterPackage(name, ""), func(p *corev1alpha1.ClusterPackage) { p.Spec.PackageRef.Version = "2.0.0" })
		awaitReady(t, "", name, "2.0.0")
		harness.Await(t, env, patience, harness.ClusterPackage(name+"-db", ""), "is released", released[*corev1alpha1.ClusterPackage])
		return name + "-db"
	}
	gone := func(t *testing.T, u *tenant, name string) {
		pkg := harness.Package(u.namespace, name, "")
		require.NoError(t, u.Delete(t.Context(), pkg))
		env.WaitGone(t, patience, pkg)
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		u := newTenant(t, env, "")
		db := left(t, u.namespace, harness.Release{Version: "1.0.0"})
		env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", u.namespace+"-db", "")}})
		journal := env.Journal(t)
		u.create(t, wish(u.namespace, "x", "x", "", deleting))
		awaitReady(t, u.namespace, "x", "1.0.0")
		gone(t, u, "x")
		untouched(t, journal, "", db)
	})
	t.Run("api", func(t *testing.T) {
		t.Parallel()
		u := newTenant(t, env, "")
		group := u.namespace + ".example.com"
		db := left(t, u.namespace, harness.Release{
			Version: "1.0.0", Provides: []corev1alpha1.ProvidedAPI{{APIVersion: group + "/v1", Kind: "Gadget"}},
			Files: harness.Files{"crd.yaml": strings.Replace(harness.Definition(group, "Gadget", "gadgets", "v1", "Namespaced"), "annotations: {", "annotations: {package-operator.run/phase: first, ", 1)},
		})
		env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.OnAPI("db", group+"/v1", "Gadget")}})
		journal := env.Journal(t)
		u.create(t, wish(u.namespace, "x", "x", "", deleting))
		pkg := awaitReady(t, u.namespace, "x", "1.0.0")
		if d := pkg.PackageStatus().Dependencies[0]; d.PackageRef != nil {
			t.Errorf("an owner of the API is recorded: %+v", d.PackageRef)
		}
		gone(t, u, "x")
		untouched(t, journal, "", db)
	})
	t.Run("upgrade", func(t *testing.T) {
		t.Parallel()
		u := newTenant(t, env, "")
		db := left(t, u.namespace, harness.Release{Version: "1.0.0"})
		env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", u.namespace+"-db", "")}}, harness.Release{Version: "2.0.0"})
		journal := env.Journal(t)
		u.create(t, wish(u.namespace, "x", "x", "1.0.0", deleting))
		awaitReady(t, u.namespace, "x", "1.0.0")
		pkg := harness.Package(u.namespace, "x", "")
		require.NoError(t, u.Patch(t.Context(), pkg, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"packageRef":{"version":"2.0.0"}}}`))))
		harness.Await(t, env, patience, pkg, "has no needs any more", func(p *corev1alpha1.Package) error {
			if p.Status.Resolved.Version != "2.0.0" || len(p.Status.Dependencies) > 0 {
				return fmt.Errorf("%+v", p.Status)
			}
			return nil
		})
		untouched(t, journal, "", db)
	})
	t.Run("other-ns", func(t *testing.T) {
		t.Parallel()
		u := newTenant(t, env, "")
		victim := u.namespace + "-victim"
		env.Namespace(t, victim)
		for _, ns := range []string{victim, u.namespace} {
			env.Offer(t, ns, "db", harness.Release{Version: "1.0.0", Unique: corev1alpha1.UniqueScopeCluster})
			env.Offer(t, ns, "app", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", "db", "")}}, harness.Release{Version: "2.0.0"})
		}
		install(t, wish(victim, "app", "app", "1.0.0"))
		harness.Edit(t, env, harness.Package(victim, "app", ""), func(p *corev1alpha1.Package) { p.Spec.PackageRef.Version = "2.0.0" })
		awaitReady(t, victim, "app", "2.0.0")
		harness.Await(t, env, patience, harness.Package(victim, "app-db", ""), "is released", released[*corev1alpha1.Package])
		journal := env.Journal(t)
		u.create(t, wish(u.namespace, "x", "app", "1.0.0", deleting))
		awaitReady(t, u.namespace, "x", "1.0.0")
		gone(t, u, "x")
		env.WaitGone(t, patience, harness.Package(u.namespace, "x-db", ""))
		untouched(t, journal, victim, "app-db")
	})
}

// The version range of a Package only changes versions in its namespace, and of ClusterPackages
// that allow it.
func TestDepRaise(t *testing.T) {
	t.Parallel()
	three := []harness.Release{{Version: "1.0.0"}, {Version: "2.0.0"}, {Version: "3.0.0"}}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		u := newTenant(t, env, "")
		db := u.namespace + "-db"
		env.Offer(t, "", db, three[0])
		env.Offer(t, "", db+"-infra", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, ">=1")}})
		install(t, wish("", db, db+"-infra", ""))
		t.Cleanup(func() { discard(db + "-db") })
		env.Offer(t, "", db, three...)
		env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, ">=3")}})
		journal := env.Journal(t)
		u.create(t, wish(u.namespace, "x", "x", ""))
		awaitRefusal(t, u.namespace, "x", "VersionMismatch", "ClusterPackage "+db+"-db in 1.0.0", "Packages in namespaces cannot change it")
		untouched(t, journal, "", db+"-db")
	})
	t.Run("allow", func(t *testing.T) {
		t.Parallel()
		u := newTenant(t, env, "")
		db := u.namespace + "-db"
		env.Offer(t, "", db, three...)
		install(t, wish("", db, db, "1.0.0", allowing))
		env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, ">=3")}})
		journal := env.Journal(t)
		u.create(t, wish(u.namespace, "x", "x", ""))
		awaitRefusal(t, u.namespace, "x", "VersionMismatch", "spec.upgradePolicy.dependents")
		untouched(t, journal, "", db)
		harness.Edit(t, env, harness.ClusterPackage(db, ""), func(p *corev1alpha1.ClusterPackage) { p.Spec.UpgradePolicy.Dependents = corev1alpha1.DependentsAll })
		awaitReady(t, u.namespace, "x", "1.0.0")
		awaitReady(t, "", db, "3.0.0")
	})
	t.Run("other-ns", func(t *testing.T) {
		t.Parallel()
		u := newTenant(t, env, "")
		victim := u.namespace + "-victim"
		env.Namespace(t, victim)
		for _, ns := range []string{victim, u.namespace} {
			var once []harness.Release
			for _, r := range three {
				r.Unique = corev1alpha1.UniqueScopeCluster
				once = append(once, r)
			}
			env.Offer(t, ns, "lib", once...)
		}
		install(t, wish(victim, "lib", "lib", "1.0.0", allowing))
		env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("lib", "lib", ">=3")}})
		journal := env.Journal(t)
		u.create(t, wish(u.namespace, "x", "x", ""))
		awaitReady(t, u.namespace, "x", "1.0.0")
		awaitReady(t, u.namespace, "x-lib", "3.0.0")
		untouched(t, journal, victim, "lib")
	})
}

// A Package with the name of a ClusterPackage's dependency neither satisfies the dependency nor
// prevents its installation.
func TestDepSpoof(t *testing.T) {
	t.Parallel()
	for name, constraint := range map[string]string{"satisfy": "", "deny": "<3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTenant(t, env, "")
			db := u.namespace + "-db"
			env.Offer(t, u.namespace, db, harness.Release{Version: "9.9.9", Unique: corev1alpha1.UniqueScopeCluster})
			u.create(t, wish(u.namespace, "x", db, ""))
			awaitReady(t, u.namespace, "x", "9.9.9")
			env.Offer(t, "", db, harness.Release{Version: "1.0.0", Unique: corev1alpha1.UniqueScopeCluster})
			env.Offer(t, "", db+"-infra", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, constraint)}})
			install(t, wish("", db, db+"-infra", ""))
			t.Cleanup(func() { discard(db + "-db") })
			awaitReady(t, "", db+"-db", "1.0.0")
		})
	}
}

// A Package with the name of a package that is unique in the cluster does not prevent the
// installation or an upgrade of a ClusterPackage.
func TestUniqueDeny(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	certs := u.namespace + "-certs"
	versions := []harness.Release{{Version: "1.0.0", Unique: corev1alpha1.UniqueScopeCluster}, {Version: "2.0.0", Unique: corev1alpha1.UniqueScopeCluster}}
	env.Offer(t, u.namespace, "innocent", harness.Release{Version: "1.0.0", Manifest: certs})
	env.Offer(t, "", certs, versions...)
	u.create(t, wish(u.namespace, "first", "innocent", ""))
	awaitReady(t, u.namespace, "first", "1.0.0")
	install(t, wish("", certs, certs, "1.0.0"))
	u.create(t, wish(u.namespace, "second", "innocent", ""))
	awaitReady(t, u.namespace, "second", "1.0.0")
	harness.Edit(t, env, harness.ClusterPackage(certs, ""), func(p *corev1alpha1.ClusterPackage) { p.Spec.PackageRef.Version = "2.0.0" })
	awaitReady(t, "", certs, "2.0.0")
	other := wish("", certs+"-other", certs, "1.0.0")
	env.Create(t, other)
	t.Cleanup(func() { discard(other.GetName()) })
	if c := env.WaitCondition(t, "", other.GetName(), corev1alpha1.ConditionInvalid, "True"); !strings.Contains(c.Message, "ClusterPackage "+certs+" is installed") {
		t.Errorf("a second ClusterPackage: %s", c.Message)
	}
}

// The range of a Package does not hold a ClusterPackage at a version. The Package reports the
// mismatch, and an Event of the ClusterPackage names the Package.
func TestDepPin(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	db := u.namespace + "-db"
	env.Offer(t, "", db, harness.Release{Version: "1.0.0"})
	env.Offer(t, "", db+"-infra", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, ">=1")}})
	env.Offer(t, "", db+"-new", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, ">=2")}})
	install(t, wish("", db, db+"-infra", ""))
	t.Cleanup(func() { discard(db + "-db") })
	env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, "<2")}})
	u.create(t, wish(u.namespace, "x", "x", ""))
	awaitReady(t, u.namespace, "x", "1.0.0")
	env.Offer(t, "", db, harness.Release{Version: "1.0.0"}, harness.Release{Version: "2.0.0"})
	install(t, wish("", db+"-new", db+"-new", ""))
	awaitReady(t, "", db+"-db", "2.0.0")
	awaitRefusal(t, u.namespace, "x", "VersionMismatch", `in 2.0.0, which is not within "<2"`)
	awaitEvent(t, harness.ClusterPackage(db+"-db", ""), "DependentsAffected", "Package "+u.namespace+"/x (<2)")
}

// A Package does not hold the deletion of a ClusterPackage, but is named.
func TestDepHold(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	db := u.namespace + "-db"
	env.Offer(t, "", db, harness.Release{Version: "1.0.0"})
	install(t, wish("", db, db, ""))
	env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, "")}})
	u.create(t, wish(u.namespace, "x", "x", ""))
	awaitReady(t, u.namespace, "x", "1.0.0")
	pkg := harness.ClusterPackage(db, "")
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, patience, pkg)
	awaitEvent(t, pkg, "DependentsAffected", "Package "+u.namespace+"/x")
}

// The labels that dependents leave on a package are limited, regardless of the number of dependents.
// Packages outside of their namespace get none.
func TestDepBloat(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	db := u.namespace + "-db"
	env.Offer(t, "", db, harness.Release{Version: "1.0.0"})
	env.Offer(t, "", db+"-infra", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, "")}})
	install(t, wish("", db, db+"-infra", ""))
	t.Cleanup(func() { discard(db + "-db") })
	long := ">=1" + strings.Repeat(" ", 4000) + ", <3"
	env.Offer(t, u.namespace, "log", harness.Release{Version: "1.0.0"})
	env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", db, long), harness.On("log", "log", long)}})
	journal := env.Journal(t)
	for k := range 24 {
		u.create(t, wish(u.namespace, fmt.Sprintf("%s-%02d", strings.Repeat("x", 50), k), "x", ""))
	}
	var logs string
	for k := range 24 {
		pkg := awaitReady(t, u.namespace, fmt.Sprintf("%s-%02d", strings.Repeat("x", 50), k), "1.0.0")
		logs = pkg.PackageStatus().Dependencies[1].PackageRef.Name
	}
	untouched(t, journal, "", db+"-db")
	harness.Await(t, env, patience, harness.Package(u.namespace, logs, ""), "names some of its dependents", func(p *corev1alpha1.Package) error {
		labels := 0
		for label := range p.Labels {
			if strings.HasPrefix(label, corev1alpha1.RequiredByLabelPrefix) {
				labels++
			}
		}
		if labels != 20 {
			return fmt.Errorf("%d labels", labels)
		}
		return nil
	})
	install(t, wish("", db+"-second", db+"-infra", ""))
	if _, marked := env.Package(t, "", db+"-db").GetLabels()[corev1alpha1.RequiredByLabelPrefix+db+"-second"]; !marked {
		t.Error("a ClusterPackage leaves no mark")
	}
}
