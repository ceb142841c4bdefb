package packages

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
)

// A deletion policy deletes what was generated for the Package itself, in its own scope, and marks of others stay as they are.
func TestReleaseStaysAtHome(t *testing.T) {
	t.Parallel()
	evil := resolver.Instance{Namespace: "evil", Name: "x"}
	for _, tc := range []struct {
		reason  string
		own, at resolver.Instance
		others  []resolver.Instance
		change  func(corev1alpha1.GenericPackage)
		// goes means that it is deleted; else whether anything of it is changed.
		goes, changed bool
	}{
		{reason: "its own", own: evil, at: resolver.Instance{Namespace: "evil", Name: "x.db"}, goes: true},
		{reason: "its own, with a hash since the name was taken", own: evil, at: resolver.Instance{Namespace: "evil", Name: "x.db-4e513f9abb"}, goes: true},
		{reason: "its own, that another needs", own: evil, at: resolver.Instance{Namespace: "evil", Name: "x.db"}, others: []resolver.Instance{{Namespace: "evil", Name: "y"}}, changed: true},
		{reason: "its own, that a user took over", own: evil, at: resolver.Instance{Namespace: "evil", Name: "x.db"}, change: func(pkg corev1alpha1.GenericPackage) { pkg.SetLabels(nil) }},
		{reason: "of another package of the namespace", own: evil, at: resolver.Instance{Namespace: "evil", Name: "platform.db"}, changed: true},
		{reason: "of another namespace", own: evil, at: resolver.Instance{Namespace: "victim", Name: "x.db"}},
		{reason: "a ClusterPackage", own: evil, at: resolver.Instance{Name: "platform.db"}},
		{reason: "a ClusterPackage of the same name", own: evil, at: resolver.Instance{Name: "x.db"}},
		{reason: "a ClusterPackage of another ClusterPackage", own: resolver.Instance{Name: "infra"}, at: resolver.Instance{Name: "platform.db"}, changed: true},
		{reason: "a ClusterPackage of its own", own: resolver.Instance{Name: "platform"}, at: resolver.Instance{Name: "platform.db"}, goes: true},
		{reason: "that a Package of a namespace uses", own: resolver.Instance{Name: "platform"}, at: resolver.Instance{Name: "platform.db"}, others: []resolver.Instance{evil}, changed: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			recorder := events.NewFakeRecorder(10)
			c.Events = recorder
			shared := corev1alpha1.ScopeOf(tc.at.Namespace).NewPackage()
			shared.SetNamespace(tc.at.Namespace)
			shared.SetName(tc.at.Name)
			shared.SetLabels(map[string]string{corev1alpha1.GeneratedLabel: "true"})
			shared.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: "db.example.com"}
			require(shared, []resolver.Need{{Dependent: tc.own, Dependency: dependencyOn("db", ">=1")}, {Dependent: resolver.Instance{Namespace: tc.at.Namespace, Name: "kept"}, Dependency: dependencyOn("db", "")}}, nil)
			if tc.change != nil {
				tc.change(shared)
			}
			c.must(c.server.Create(t.Context(), shared))
			before := shared.GetResourceVersion()
			var own corev1alpha1.GenericPackage
			for _, at := range append([]resolver.Instance{tc.own}, tc.others...) {
				pkg := corev1alpha1.ScopeOf(at.Namespace).NewPackage()
				pkg.SetNamespace(at.Namespace)
				pkg.SetName(at.Name)
				pkg.SetFinalizers([]string{corev1alpha1.MetricsFinalizer})
				pkg.PackageSpec().Dependencies = &corev1alpha1.PackageDependencies{DeletionPolicy: corev1alpha1.DeletionPolicyDelete}
				pkg.PackageStatus().Dependencies = []corev1alpha1.DependencyStatus{{Dependency: dependencyOn("db", ">=1"), PackageRef: tc.at.Reference()}}
				c.must(c.server.Create(t.Context(), pkg))
				if own == nil {
					own = pkg
				}
			}
			_, err := c.of(own).releaseAll(t.Context())
			c.must(err)
			err = c.server.Get(t.Context(), client.ObjectKeyFromObject(shared), shared)
			if gone := apierrors.IsNotFound(err); gone != tc.goes {
				t.Fatalf("deleted: %t", gone)
			}
			if changed := !tc.goes && shared.GetResourceVersion() != before; changed != tc.changed {
				t.Errorf("changed: %t, labels %v", changed, shared.GetLabels())
			}
			if elsewhere := len(tc.others) > 0 && tc.others[0].Namespace != tc.own.Namespace; elsewhere != (len(recorder.Events) == 1) {
				t.Errorf("%d events", len(recorder.Events))
			}
		})
	}
}

func TestMayTake(t *testing.T) {
	t.Parallel()
	pkg := func(namespace string, change ...func(corev1alpha1.GenericPackage)) corev1alpha1.GenericPackage {
		p := corev1alpha1.ScopeOf(namespace).NewPackage()
		p.SetNamespace(namespace)
		p.SetName("db")
		p.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: "db.example.com"}
		for _, c := range change {
			c(p)
		}
		return p
	}
	generated := func(p corev1alpha1.GenericPackage) {
		p.SetLabels(map[string]string{corev1alpha1.GeneratedLabel: "true"})
	}
	allows := func(p corev1alpha1.GenericPackage) {
		p.PackageSpec().UpgradePolicy = &corev1alpha1.UpgradePolicy{AllowDependents: true}
	}
	all := func(p corev1alpha1.GenericPackage) {
		p.PackageSpec().UpgradePolicy = &corev1alpha1.UpgradePolicy{AllowDependents: true, Dependents: corev1alpha1.DependentsAll}
	}
	heeds := func(p corev1alpha1.GenericPackage) {
		p.PackageSpec().UpgradePolicy = &corev1alpha1.UpgradePolicy{Dependents: corev1alpha1.DependentsAll}
	}
	deleted := func(p corev1alpha1.GenericPackage) { p.SetDeletionTimestamp(&metav1.Time{Time: start}) }
	for _, tc := range []struct {
		reason string
		own    string // namespace
		known  corev1alpha1.GenericPackage
		to     string // namespace of what is created
		want   bool
	}{
		{"creates in its namespace", "team", nil, "team", true},
		{"creates in another", "team", nil, "other", false},
		{"creates a ClusterPackage", "team", nil, "", false},
		{"a ClusterPackage creates one", "", nil, "", true},
		{"a ClusterPackage creates a Package", "", nil, "team", false},
		{"changes what was generated in its namespace", "team", pkg("team", generated), "", true},
		{"changes what a user allows", "team", pkg("team", allows), "", true},
		{"changes what no user allows", "team", pkg("team"), "", false},
		{"changes what is being deleted", "team", pkg("team", generated, deleted), "", false},
		{"changes another namespace", "team", pkg("other", generated), "", false},
		{"changes another namespace, which says that it heeds all", "team", pkg("other", all), "", false},
		{"changes a generated ClusterPackage", "team", pkg("", generated), "", false},
		{"changes a ClusterPackage that allows dependents", "team", pkg("", allows), "", false},
		{"changes a ClusterPackage that heeds all", "team", pkg("", heeds), "", false},
		{"changes a ClusterPackage that heeds and allows all", "team", pkg("", all), "", true},
		{"a ClusterPackage changes one", "", pkg("", allows), "", true},
		{"a ClusterPackage changes a Package", "", pkg("team", generated), "", false},
	} {
		step := resolver.Step{Instance: resolver.Instance{Namespace: tc.to, Name: "db"}, Create: tc.known == nil}
		if tc.known != nil {
			step.Namespace = tc.known.GetNamespace()
		}
		if err := mayTake(resolver.Instance{Namespace: tc.own, Name: "x"}, step, tc.known); (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// What cannot be marked is used all the same.
func TestMarksFailNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		err    error
		event  bool
		raced  bool
	}{
		{"too long", apierrors.NewInvalid(corev1alpha1.GroupVersion.WithKind("Package").GroupKind(), "db", nil), true, false},
		{"a webhook refuses it", errors.New("denied"), true, false},
		{"gone", apierrors.NewNotFound(corev1alpha1.GroupVersion.WithResource("packages").GroupResource(), "db"), false, false},
		{"raced", apierrors.NewConflict(corev1alpha1.GroupVersion.WithResource("packages").GroupResource(), "db", nil), false, true},
	} {
		c := newCluster(t)
		recorder := events.NewFakeRecorder(10)
		c.Events = recorder
		c.generate("shop.db", "shop", "blog")
		blog, at := c.get("blog"), in("shop.db")
		c.Client = interceptor.NewClient(c.server.(client.WithWatch), interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return tc.err
			},
		})
		s := c.of(blog)
		d := &dependencyView{result: resolver.Result{Ready: true, Outcomes: []resolver.Outcome{{Dependency: dependencyOn("db", ">=9"), Satisfied: true, Satisfier: &at}}}}
		if err := s.perform(t.Context(), d, c.survey(t.Context(), "team")); err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if (len(recorder.Events) == 1) != tc.event || (s.After > 0) != tc.raced {
			t.Errorf("%s: %d events, again after %s", tc.reason, len(recorder.Events), s.After)
		}
	}
}

// An upgrade names those that do not accept it, and a deletion all.
func TestRefusing(t *testing.T) {
	t.Parallel()
	of := resolver.Instance{Name: "db"}
	dependent := func(namespace, name string, on corev1alpha1.Dependency, at resolver.Instance) corev1alpha1.GenericPackage {
		pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
		pkg.SetNamespace(namespace)
		pkg.SetName(name)
		pkg.PackageStatus().Dependencies = []corev1alpha1.DependencyStatus{{Dependency: on, PackageRef: at.Reference()}, {Dependency: on}}
		return pkg
	}
	all := []corev1alpha1.GenericPackage{
		dependent("team", "old", dependencyOn("db", "<2"), of), dependent("team", "any", dependencyOn("db", ""), of), dependent("", "infra", dependencyOn("db", "~1"), of),
		dependent("team", "new", dependencyOn("db", ">=1"), of), dependent("team", "api", corev1alpha1.Dependency{Name: "api", API: &corev1alpha1.DependencyAPI{}}, of),
		dependent("team", "elsewhere", dependencyOn("db", "<2"), in("db")), dependent("team", "odd", dependencyOn("db", "none"), of),
	}
	for version, want := range map[string]string{
		"2.0.0": "ClusterPackage infra (~1), Package team/old (<2)", "1.5.0": "", "odd": "",
		"": "ClusterPackage infra, Package team/any, Package team/api, Package team/new, Package team/odd, Package team/old",
	} {
		if got := strings.Join(refusing(all, of, version), ", "); got != want {
			t.Errorf("%q: %s", version, got)
		}
	}
}
