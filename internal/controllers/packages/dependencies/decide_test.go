package dependencies

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
	"lockstep.run/lockstep/test/require"
)

// offered is a catalogue by names of packages.
type offered map[string][]resolver.Offer

func (o offered) Offers(_, name string) []resolver.Offer { return o[name] }

func (o offered) Providers(string, corev1alpha1.ProvidedAPI) []string { return nil }

func offer(version string, requires ...corev1alpha1.Dependency) resolver.Offer {
	return resolver.Offer{Candidate: versions.Candidate{Version: version}, Dependencies: requires}
}

func named(name, follows, version string, change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := newPackage(change...)
	pkg.Name = name
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: follows, VersionSelection: corev1alpha1.VersionSelection{Version: version}}
	return pkg
}

// A decision depends only on its input: the same input gives the same decision. It does not write.
func TestDecide(t *testing.T) {
	t.Parallel()
	catalogue := offered{
		"db.example.com":   {offer("1.0.0"), offer("2.0.0")},
		"blog.example.com": {offer("1.0.0", dependencyOn("db", "<2"))},
	}
	shop := named("shop", "shop.example.com", "1.0.0")
	installed := func(version string, change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
		return named("shop-db", "db.example.com", version, func(pkg *corev1alpha1.Package) {
			pkg.Labels = map[string]string{corev1alpha1.GeneratedLabel: "true"}
			for _, c := range change {
				c(pkg)
			}
		})
	}
	blog := named("blog", "blog.example.com", "1.0.0")
	for name, tc := range map[string]struct {
		requires string
		packages []*corev1alpha1.Package
		of       *corev1alpha1.Package
		want     string
	}{
		"nothing is installed": {">=1", nil, shop, "create Package team/shop-db 2.0.0; db waits"},
		"nothing fits":         {">=3", nil, shop, "db fails"},
		"it is installed":      {">=1", []*corev1alpha1.Package{installed("2.0.0")}, shop, "db waits"},
		"another version":      {">=2", []*corev1alpha1.Package{installed("1.0.0")}, shop, "change Package team/shop-db 2.0.0; db waits"},
		"together with open ones": {
			">=1", []*corev1alpha1.Package{blog}, shop, "create Package team/blog-db 1.0.0; db waits",
		},
		"in another cluster": {">=1", []*corev1alpha1.Package{installed("2.0.0")}, named("shop", "shop.example.com", "1.0.0", func(pkg *corev1alpha1.Package) {
			pkg.Spec.TargetRef = &corev1alpha1.TargetReference{}
		}), "db fails"},
	} {
		packages := map[resolver.Instance]corev1alpha1.GenericPackage{snapshot.InstanceOf(tc.of): tc.of}
		for _, pkg := range tc.packages {
			packages[snapshot.InstanceOf(pkg)] = pkg
		}
		in := Input{
			Package: tc.of, Root: RootOf(tc.of, []corev1alpha1.Dependency{dependencyOn("db", tc.requires)}), Known: NewKnown(packages),
			Catalogue: catalogue, TakesPart: TakesPart, WasAvailable: func(resolver.Instance) bool { return true },
			Versions: func(pkg corev1alpha1.GenericPackage) (bool, []resolver.RootVersion, error) {
				var all []resolver.RootVersion
				for _, o := range catalogue[pkg.PackageSpec().PackageRef.Name] {
					all = append(all, resolver.RootVersion{Version: o.Version, Dependencies: o.Dependencies})
				}
				return false, all, nil
			},
		}
		for range 2 {
			plan, err := Decide(in)
			require.NoError(t, err)
			require.Equal(t, tc.want, planText(plan), name)
		}
	}
}

func planText(plan *Plan) string {
	var texts []string
	for _, step := range plan.Steps {
		verb := "change"
		if step.Create {
			verb = "create"
		}
		texts = append(texts, fmt.Sprintf("%s %s %s", verb, step.Instance, step.Version))
	}
	for _, o := range plan.Result.Outcomes {
		state := "waits"
		if o.Satisfied {
			state = "is satisfied"
		} else if o.Failed {
			state = "fails"
		}
		texts = append(texts, o.Dependency.Name+" "+state)
	}
	return strings.Join(texts, "; ")
}

// A change during the resolution of a Package enqueues that Package again, if it turns out to wait
// for it.
func TestChangesDuringAResolution(t *testing.T) {
	t.Parallel()
	enqueued := 0
	l := &Ledger{Enqueue: func(types.NamespacedName) { enqueued++ }}
	own := types.NamespacedName{Namespace: "team", Name: "shop"}
	change := func(name string) bool { return l.Changed(everywhere, func(noted string) bool { return noted == name }) }
	for _, tc := range []struct {
		changes string
		want    int
	}{{"db", 1}, {"other", 0}} {
		enqueued = 0
		l.Open(own)
		l.Changed(everywhere, func(name string) bool { return name == tc.changes })
		enqueued = 0 // by the note of the resolution before
		if l.Note(own, []string{"api", "db"}); enqueued != tc.want {
			t.Errorf("%s changes: %d are enqueued", tc.changes, enqueued)
		}
	}
	if enqueued = 0; !change("db") || enqueued != 1 || len(l.open) > 0 {
		t.Errorf("afterwards: %d are enqueued, %v", enqueued, l.open)
	}
	if l.Drop(own); change("db") || len(l.notes) > 0 {
		t.Error("it is enqueued after it was dropped")
	}
}

// slow reads the Packages of one namespace only on a signal.
type slow struct {
	Packages
	reading, end chan struct{}
}

func (s slow) In(_ context.Context, namespace string) ([]corev1alpha1.GenericPackage, error) {
	if namespace == "large" {
		s.reading <- struct{}{}
		<-s.end
	}
	return nil, nil
}

// A read of the many Packages of a namespace does not block others. A decision of the namespace
// that ends meanwhile can be missing in the result, so the Packages are read again; decisions of
// other namespaces do not cause that.
func TestSurveysOfOthers(t *testing.T) {
	t.Parallel()
	packages := slow{reading: make(chan struct{}), end: make(chan struct{})}
	l := &Ledger{Packages: packages}
	surveyed := make(chan error)
	go func() {
		_, err := l.Survey(t.Context(), "large")
		surveyed <- err
	}()
	decided := func(namespace string) {
		t.Helper()
		c, err := l.Commit(t.Context(), resolver.Instance{Namespace: namespace, Name: "x"}, &Plan{}, Known{}, false)
		require.NoError(t, err)
		c.Done()
	}
	<-packages.reading
	decided("small")
	var done func()
	_ = l.locked(func() error {
		done = l.decide(t.Context(), resolver.Instance{Namespace: "large", Name: "x"}, Decision{})
		return nil
	})
	done()
	packages.end <- struct{}{}
	<-packages.reading // again
	decided("small")
	packages.end <- struct{}{}
	require.NoError(t, <-surveyed)
}

func TestOnce(t *testing.T) {
	t.Parallel()
	api := func(paths ...string) *corev1alpha1.DependencyAPI {
		return &corev1alpha1.DependencyAPI{APIVersion: "example.com/v1", Kind: "Shop", FieldPaths: paths}
	}
	reads := 0
	once := Once(func(api *corev1alpha1.DependencyAPI) (bool, []string) {
		if len(api.FieldPaths) > 0 {
			reads++
		}
		return true, api.FieldPaths
	})
	if served, missing := once(api()); !served || len(missing) > 0 || reads > 0 {
		t.Error("whether an API is served needs no read")
	}
	for range 2 {
		if served, missing := once(api("spec.a")); !served || len(missing) != 1 || reads != 1 {
			t.Errorf("%t %v after %d reads", served, missing, reads)
		}
	}
	if once(api("spec.b")); reads != 2 {
		t.Error("other fields of the API are another question")
	}
}
