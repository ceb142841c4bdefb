package packages

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/test/require"
)

// A deletion policy deletes packages that were generated for the Package itself, in its
// own scope, and marks of others stay as they are.
func TestReleaseStaysAtHome(t *testing.T) {
	t.Parallel()
	evil := resolver.Instance{Namespace: "evil", Name: "x"}
	for _, tc := range []struct {
		reason  string
		own, at resolver.Instance
		others  []resolver.Instance
		change  func(corev1alpha1.GenericPackage)
		// deleted means that it is deleted; else whether anything of it is changed.
		deleted, changed bool
	}{
		{reason: "its own", own: evil, at: resolver.Instance{Namespace: "evil", Name: "x-db"}, deleted: true},
		{reason: "its own, with a hash since the name was taken", own: evil, at: resolver.Instance{Namespace: "evil", Name: "x-db-4e513f9abb"}, deleted: true},
		{reason: "its own, that another needs", own: evil, at: resolver.Instance{Namespace: "evil", Name: "x-db"}, others: []resolver.Instance{{Namespace: "evil", Name: "y"}}, changed: true},
		{reason: "its own, that a user took over", own: evil, at: resolver.Instance{Namespace: "evil", Name: "x-db"}, change: func(pkg corev1alpha1.GenericPackage) { pkg.SetLabels(nil) }},
		{reason: "of another package of the namespace", own: evil, at: resolver.Instance{Namespace: "evil", Name: "platform-db"}, changed: true},
		{reason: "of another namespace", own: evil, at: resolver.Instance{Namespace: "victim", Name: "x-db"}},
		{reason: "a ClusterPackage", own: evil, at: resolver.Instance{Name: "platform-db"}},
		{reason: "a ClusterPackage of the same name", own: evil, at: resolver.Instance{Name: "x-db"}},
		{reason: "a ClusterPackage of another ClusterPackage", own: resolver.Instance{Name: "infra"}, at: resolver.Instance{Name: "platform-db"}, changed: true},
		{reason: "a ClusterPackage of its own", own: resolver.Instance{Name: "platform"}, at: resolver.Instance{Name: "platform-db"}, deleted: true},
		{reason: "that a Package of a namespace uses", own: resolver.Instance{Name: "platform"}, at: resolver.Instance{Name: "platform-db"}, others: []resolver.Instance{evil}, changed: true},
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
			dependencies.Require(shared, []resolver.Need{{Dependent: tc.own, Dependency: dependencyOn("db", ">=1")}, {Dependent: resolver.Instance{Namespace: tc.at.Namespace, Name: "kept"}, Dependency: dependencyOn("db", "")}})
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
			if gone := apierrors.IsNotFound(err); gone != tc.deleted {
				t.Fatalf("deleted: %t", gone)
			}
			if changed := !tc.deleted && shared.GetResourceVersion() != before; changed != tc.changed {
				t.Errorf("changed: %t, labels %v", changed, shared.GetLabels())
			}
			require.Equal(t, (len(recorder.Events) == 1), len(tc.others) > 0 && tc.others[0].Namespace != tc.own.Namespace, fmt.Sprintf("%d events", len(recorder.Events)))
		})
	}
}

// A package that cannot be marked is still used.
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
		c.generate("shop-db", "shop", "blog")
		c.unmark("shop-db", "blog")
		blog, at := c.get("blog"), in("shop-db")
		c.Client = interceptor.NewClient(c.server.(client.WithWatch), interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return tc.err
			},
		})
		s := c.of(blog)
		d := &dependencies.Plan{Result: resolver.Result{Ready: true, Outcomes: []resolver.Outcome{{Dependency: dependencyOn("db", ">=9"), Satisfied: true, Satisfier: &at}}}}
		if err := s.perform(t.Context(), d, c.surveyOf("team")); err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if (len(recorder.Events) == 1) != tc.event || (s.After > 0) != tc.raced {
			t.Errorf("%s: %d events, again after %s", tc.reason, len(recorder.Events), s.After)
		}
	}
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	pkg := newPackage(recording(entry("db", "mine", corev1alpha1.ReasonAlreadyInstalled), entry("old", "old", corev1alpha1.ReasonNoLongerRequired)), func(pkg *corev1alpha1.Package) {
		pkg.Spec.Dependencies = &corev1alpha1.PackageDependencies{Overrides: []corev1alpha1.DependencyOverride{{Name: "cache", Package: &corev1alpha1.DependencyPackageOverride{VersionSelection: corev1alpha1.VersionSelection{Version: "~2"}}}}}
	})
	loaded := &load.Attempt{Out: load.Out{Content: &load.Content{Dependencies: []corev1alpha1.Dependency{dependencyOn("cache", ">=1")}}}}
	for _, tc := range []struct {
		reason string
		step   step
		want   string
		known  bool
	}{
		{"the loaded content, with overrides", stepDeploy, "cache ~2", true},
		{"the record, without requirements of earlier revisions alone", stepSync, "db ", true},
		{"not known while it is loaded", stepLoad, "", false},
		{"not acted upon in a pause", stepPaused, "", false},
	} {
		v := view{pkg: pkg, attempt: loaded, outcome: outcome{step: tc.step}}
		got, known := v.requirements()
		text := ""
		for _, d := range got {
			text += d.Name + " " + d.Package.Version
		}
		if text != tc.want || known != tc.known {
			t.Errorf("%s: %q %t, want %q %t", tc.reason, text, known, tc.want, tc.known)
		}
	}
	require.Equal(t, ">=1", loaded.Out.Content.Dependencies[0].Package.Version, "the loaded content is changed")
}

func in(name string) resolver.Instance { return resolver.Instance{Namespace: "team", Name: name} }

func dependencyOn(name, version string) corev1alpha1.Dependency {
	return corev1alpha1.Dependency{Name: name, Package: &corev1alpha1.DependencyPackage{
		Name: name + ".example.com", VersionSelection: corev1alpha1.VersionSelection{Version: version},
	}}
}

// entry returns an entry of a status.
func entry(name, satisfier, reason string) corev1alpha1.DependencyStatus {
	d := corev1alpha1.DependencyStatus{Dependency: dependencyOn(name, "")}
	if satisfier != "" {
		d.PackageRef = in(satisfier).Reference()
	}
	conditions.Set(&d.Conditions, 1, corev1alpha1.ConditionSatisfied, reason != corev1alpha1.ReasonVersionMismatch, reason, "")
	return d
}

func outcomeOf(name, satisfier, reason string) resolver.Outcome {
	o := resolver.Outcome{Dependency: dependencyOn(name, ""), Reason: reason, Message: reason + "."}
	o.Satisfied, o.Failed = reason == corev1alpha1.ReasonAlreadyInstalled, reason == corev1alpha1.ReasonVersionMismatch
	if satisfier != "" {
		at := in(satisfier)
		o.Satisfier, o.Version = &at, "1.0.0"
	}
	return o
}

func recording(entries ...corev1alpha1.DependencyStatus) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) { pkg.Status.Dependencies = entries }
}
