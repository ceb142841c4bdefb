package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/test/jointneeds"
	"lockstep.run/lockstep/test/require"
)

// Packages that are applied together get the same versions in every order and timing. With the
// first half of the seeds they are applied faster than the pause, and all of them are available at
// once. With the others they come at any time, and none is available before all of them exist.
func TestAppliedTogether(t *testing.T) {
	t.Parallel()
	seeds := uint64(4)
	if os.Getenv("LOCKSTEP_DEEP") != "" {
		seeds = 200
	}
	for _, set := range jointneeds.Sets {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				p := newPlay(t, set, seed)
				p.apply()
				p.rest()
				if diff := cmp.Diff(set.Want, p.versions()); diff != "" {
					t.Fatalf("seed %d: %s\n%v", seed, diff, p.log)
				}
			}
		})
	}
}

// If a version comes before its dependencies, followers stay at their version, report that they
// wait for the dependencies, and then move.
func TestNewVersionBeforeItsNeeds(t *testing.T) {
	t.Parallel()
	p := newPlay(t, jointneeds.Set{Offered: "ui 1.0.0: srv ^1\nsrv 1.0.0", Applied: []string{"ui: ui >=1"}}, 1)
	p.apply()
	p.rest()
	for _, step := range []struct {
		offered string
		want    map[string]string
		waits   bool
	}{
		{"ui 1.0.0: srv ^1\nui 2.0.0: srv ^2\nsrv 1.0.0", map[string]string{"ui": "1.0.0", "srv": "1.0.0"}, true},
		{"ui 1.0.0: srv ^1\nui 2.0.0: srv ^2\nsrv 1.0.0\nsrv 2.0.0", map[string]string{"ui": "2.0.0", "srv": "2.0.0"}, false},
	} {
		p.offer(jointneeds.Set{Offered: step.offered})
		p.rest()
		require.Equal(t, step.want, p.versions(), p.log)
		ui := p.get("ui")
		if !conditions.IsTrueFor(ui.Status.Conditions, corev1alpha1.ConditionAvailable, ui.Generation) {
			t.Error("it is not available")
		}
		message := ""
		for _, c := range ui.Status.Conditions {
			if c.Type == corev1alpha1.ConditionResolved {
				message = c.Message
			}
		}
		waits := "ui: 1.0.0 is the highest version that fits and whose dependencies can be satisfied; 2.0.0 waits for its dependencies: VersionMismatch: srv: srv is installed as Package team/ui-srv in 1.0.0"
		require.Equal(t, step.waits, len(message) > len(waits) && message[:len(waits)] == waits, fmt.Sprintf("it says %s", message))
	}
}

// play reconciles Packages in a random order, by the decisions of the controller over a cluster in
// memory.
type play struct {
	*cluster
	set  jointneeds.Set
	rand *rand.Rand
	now  time.Time
	// gated means that no package is available before all are applied.
	gated, applied bool
	log            []string
}

type environment struct{}

func (environment) For(string) (manifestsv1alpha1.PackageEnvironment, bool, error) {
	return env, false, nil
}

func newPlay(t *testing.T, set jointneeds.Set, seed uint64) *play {
	t.Helper()
	p := &play{cluster: newClusterWith(t, func(b *fake.ClientBuilder) { b.WithStatusSubresource(&corev1alpha1.Package{}) }), set: set, rand: rand.New(rand.NewPCG(seed, 1)), now: start, gated: seed%2 == 1}
	p.Environment = environment{}
	p.Reconciler.Now = func() time.Time { return p.now }
	p.enqueue = func(types.NamespacedName) {}
	p.offer(set)
	return p
}

// offer replaces the offers.
func (p *play) offer(set jointneeds.Set) {
	p.t.Helper()
	repo := &corev1alpha1.PackageRepository{}
	repo.Namespace, repo.Name, repo.Spec.Paused = "team", "stable", true
	p.must(client.IgnoreAlreadyExists(p.server.Create(p.t.Context(), repo)))
	p.release(set.Releases())
}

func (p *play) release(all []jointneeds.Release) {
	p.t.Helper()
	specs := map[string]*corev1alpha1.AvailablePackageSpec{}
	for _, r := range all {
		if specs[r.Package] == nil {
			specs[r.Package] = &corev1alpha1.AvailablePackageSpec{PackageName: r.Package}
		}
		specs[r.Package].Versions = append(specs[r.Package].Versions, corev1alpha1.AvailableVersion{
			Version: r.Version, Repository: "stable", Image: "registry.test/" + r.Package + ":" + r.Version, Dependencies: r.Needs,
		})
	}
	for name, spec := range specs {
		available := &corev1alpha1.AvailablePackage{}
		available.Namespace, available.Name, available.UID, available.Spec = "team", name, uuid.NewUUID(), *spec
		p.must(client.IgnoreNotFound(p.server.Delete(p.t.Context(), available.DeepCopy())))
		p.must(p.server.Create(p.t.Context(), available))
	}
}

// apply creates the Packages in a random order, with some reconciles in between.
func (p *play) apply() {
	p.t.Helper()
	var names []string
	references := p.set.References()
	for name := range references {
		names = append(names, name)
	}
	slices.Sort(names)
	p.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		p.create(name, references[name])
		if p.gated && p.rand.IntN(2) == 0 {
			p.reconcileAll()
		}
		for range p.rand.IntN(6) {
			all := p.packages()
			p.reconcile(&all[p.rand.IntN(len(all))])
		}
		p.now = p.now.Add(time.Duration(p.rand.IntN(900)) * time.Millisecond)
	}
	if p.gated { // all of them were seen before anything is available
		p.reconcileAll()
	}
	p.applied = true
}

func (p *play) create(name string, ref *corev1alpha1.PackageReference) {
	p.t.Helper()
	pkg := &corev1alpha1.Package{}
	pkg.Namespace, pkg.Name, pkg.UID, pkg.Generation = "team", name, types.UID(name), 1
	pkg.Finalizers = []string{corev1alpha1.MetricsFinalizer}
	pkg.Spec.PackageRef = ref
	p.must(p.server.Create(p.t.Context(), pkg))
	p.log = append(p.log, "apply "+name)
}

// reconcileAll reconciles all Packages a few times, with the clock past their pauses in between.
func (p *play) reconcileAll() {
	p.t.Helper()
	for range 3 {
		for _, pkg := range p.packages() {
			p.reconcile(&pkg)
		}
		p.now = p.now.Add(6 * time.Second)
	}
}

// rest reconciles all Packages in random orders until they stop changing.
func (p *play) rest() {
	p.t.Helper()
	for quiet := 0; quiet < 3; {
		changed := false
		all := p.packages()
		p.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for k := range all {
			if pkg := p.get(all[k].Name); pkg != nil {
				changed = p.reconcile(pkg) || changed
			}
		}
		if quiet++; changed {
			quiet = 0
		}
		p.now = p.now.Add(2 * time.Second)
		if len(p.log) > 300 {
			p.t.Fatalf("it does not come to rest: %v", p.log[len(p.log)-10:])
		}
	}
}

func (p *play) packages() []corev1alpha1.Package {
	list := &corev1alpha1.PackageList{}
	p.must(p.server.List(p.t.Context(), list))
	return list.Items
}

// reconcile takes a Package through choice, dependencies and status, as if it was loaded and rolled
// out at once, and reports whether that changed anything.
func (p *play) reconcile(cached *corev1alpha1.Package) bool {
	p.t.Helper()
	ctx := context.Background()
	pkg := p.get(cached.Name)
	before := p.texts()
	s := p.of(pkg)
	s.environment = env
	p.must(s.choose(ctx))
	choice.Report(&pkg.Status, pkg, s.choice)
	if s.choice.Chosen() {
		from := s.choice.Origin
		loaded := &load.Content{Dependencies: from.Declared.Dependencies, Resolved: corev1alpha1.ResolvedPackage{
			PackageName: from.PackageName, CatalogName: from.PackageName, Version: from.Version, Image: from.Image, Repository: from.Repository,
		}}
		s.attempt = &load.Attempt{Done: true, Out: load.Out{Content: loaded}}
		if s.step = stepDeploy; pkg.Status.Resolved != nil && pkg.Status.Resolved.Version == from.Version {
			s.step = stepSync
		}
		p.must(s.next(s.depend)(ctx))
		pkg = s.pkg.(*corev1alpha1.Package)
		s.required.Report(&pkg.Status, pkg.GetGeneration())
		available := !p.gated || p.applied || !dependencies.Generated(pkg)
		switch s.step {
		case stepDeploy:
			pkg.Status.Resolved = &loaded.Resolved
			conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionAvailable, available, "Test", "")
		case stepSync:
			conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionAvailable, available, "Test", "")
		case stepGather:
			return false
		}
		pkg.Status.ObservedGeneration = pkg.Generation
	}
	if before[pkg.Name] != p.textOf(pkg) {
		p.must(p.server.Status().Update(ctx, pkg.DeepCopy()))
		p.Fresh.Forget(string(pkg.UID))
	}
	after := p.texts()
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	p.log = append(p.log, fmt.Sprintf("reconcile %s at %s: %v", pkg.Name, p.now.Sub(start), p.versions()))
	return true
}

func (p *play) texts() map[string]string {
	all := map[string]string{}
	for _, pkg := range p.packages() {
		all[pkg.Name] = p.textOf(&pkg)
	}
	return all
}

func (p *play) textOf(pkg *corev1alpha1.Package) string {
	clean := pkg.DeepCopy()
	clean.ResourceVersion = ""
	for i := range clean.Status.Conditions {
		clean.Status.Conditions[i].LastTransitionTime.Reset()
	}
	for _, d := range clean.Status.Dependencies {
		for i := range d.Conditions {
			d.Conditions[i].LastTransitionTime.Reset()
		}
	}
	text, err := json.Marshal([]any{clean.Spec.PackageRef, clean.Status, clean.Labels, clean.Annotations})
	p.must(err)
	return string(text)
}

// versions returns the versions that are rolled out, in the form of jointneeds.Set.
func (p *play) versions() map[string]string {
	found := map[string]string{}
	for _, pkg := range p.packages() {
		version := ""
		if pkg.Status.Resolved != nil {
			version = pkg.Status.Resolved.Version
		}
		if dependencies.Generated(&pkg) {
			found[pkg.Spec.PackageRef.Name] = version
		} else {
			found[pkg.Name] = version
		}
	}
	return found
}
