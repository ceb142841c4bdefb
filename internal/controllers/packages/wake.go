package packages

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// await records what the dependencies of a Package were resolved by: names of packages, and APIs.
func (r *Reconciler) await(key types.NamespacedName, awaited []string) {
	r.memory.Lock()
	missed := r.memory.missed[key]
	delete(r.memory.missed, key)
	if r.memory.awaited == nil {
		r.memory.awaited = map[types.NamespacedName][]string{}
	}
	if r.memory.awaited[key] = awaited; len(awaited) == 0 {
		delete(r.memory.awaited, key)
	}
	r.memory.Unlock()
	if slices.ContainsFunc(missed, func(arrived func(string) bool) bool { return slices.ContainsFunc(awaited, arrived) }) {
		r.enqueue(key)
	}
}

// attend remembers for a Package what arrives from now on, until it is known what that awaits.
func (r *Reconciler) attend(key types.NamespacedName) {
	r.memory.Lock()
	defer r.memory.Unlock()
	if r.memory.missed == nil {
		r.memory.missed = map[types.NamespacedName][]func(string) bool{}
	}
	r.memory.missed[key] = nil
}

// wake enqueues the Packages whose dependencies were resolved by something that changed, and reports whether there are any.
func (r *Reconciler) wake(arrived func(string) bool) bool {
	var waiting []types.NamespacedName
	r.memory.Lock()
	for key, awaited := range r.memory.awaited {
		if slices.ContainsFunc(awaited, arrived) {
			waiting = append(waiting, key)
		}
	}
	for key, missed := range r.memory.missed {
		r.memory.missed[key] = append(missed, arrived)
	}
	r.memory.Unlock()
	for _, key := range waiting {
		r.enqueue(key)
	}
	return len(waiting) > 0
}

// KindChanged enqueues the Packages that depend on a kind, which is served in another way, and reports whether there are any.
func (r *Reconciler) KindChanged(gk schema.GroupKind) bool {
	if r == nil {
		return false
	}
	return r.wake(func(awaited string) bool {
		apiVersion, kind, ok := strings.Cut(awaited, " ")
		gv, err := schema.ParseGroupVersion(apiVersion)
		return ok && err == nil && kind == gk.Kind && gv.Group == gk.Group
	})
}

// packageChanged enqueues the dependents of a Package where it changed for them, and its dependencies where it needs
// something else of them.
func (r *Reconciler) packageChanged(ctx context.Context, before, after client.Object) {
	was, is := factsOf(before), factsOf(after)
	same := was != nil && is != nil && equality.Semantic.DeepEqual(was, is)
	r.wakeTogether(before, after, same)
	if same {
		return
	}
	awaited, instance := map[string]bool{}, resolver.Instance{}
	for _, in := range []*resolver.Installed{was, is} {
		if in == nil {
			continue
		}
		instance = in.Instance
		awaited[in.Package] = true
		for _, api := range in.Provides {
			awaited[resolver.KeyOf(api.APIVersion, api.Kind)] = true
		}
		for _, req := range in.Requirements {
			if req.Package != nil {
				awaited[req.Package.Name] = true
			}
		}
	}
	delete(awaited, "")
	r.wake(func(name string) bool { return awaited[name] })
	if was == nil || is == nil || !sameFor(was, is) {
		r.enqueueDependents(ctx, instance)
	}
	if was == nil {
		return
	}
	for _, req := range was.Requirements {
		if i := req.Satisfier; i != nil && (is == nil || !slices.ContainsFunc(is.Requirements, func(r resolver.Requirement) bool {
			return r.Satisfier != nil && *r.Satisfier == *i
		})) {
			r.enqueue(types.NamespacedName{Namespace: i.Namespace, Name: i.Name})
		}
	}
}

// wakeTogether enqueues Packages that may only change together with one that became, or
// is in another way, unsatisfied: both may have been resolved before either had a status.
func (r *Reconciler) wakeTogether(before, after client.Object, same bool) {
	is, ok := after.(corev1alpha1.GenericPackage)
	if !ok || !dependencies.Unsatisfied(is) {
		return
	}
	if was, ok := before.(corev1alpha1.GenericPackage); !ok || !dependencies.Unsatisfied(was) || !same {
		r.wake(func(string) bool { return true })
	}
}

func factsOf(obj client.Object) *resolver.Installed {
	pkg, ok := obj.(corev1alpha1.GenericPackage)
	if !ok {
		return nil
	}
	in := snapshot.InstalledOf(pkg)
	return &in
}

// sameFor reports whether dependents find a package as it was.
func sameFor(was, is *resolver.Installed) bool {
	a, b := *was, *is
	a.Requirements, b.Requirements = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}

// enqueueDependents enqueues the Packages with a dependency that an instance satisfies.
func (r *Reconciler) enqueueDependents(ctx context.Context, i resolver.Instance) {
	dependents, err := r.dependentsOf(ctx, i)
	if err != nil {
		log.FromContext(ctx).Error(err, "dependents are not reconciled")
	}
	for _, pkg := range dependents {
		r.enqueue(keyOf(pkg))
	}
}

// warnUpgraded names in an event those that depend on a package and do not accept the version that is rolled out.
func (s *reconciliation) warnUpgraded(ctx context.Context, before, after *corev1alpha1.PackageStatus) {
	if before.Resolved == nil || after.Resolved == nil || before.Resolved.Version == after.Resolved.Version {
		return
	}
	own := snapshot.InstanceOf(s.pkg)
	dependents, _ := s.dependentsOf(ctx, own) // an event is no decision
	if names := dependencies.Refusing(dependents, own, after.Resolved.Version); len(names) > 0 {
		s.warn("Upgrade", after.Resolved.Version+" is rolled out, which is not within the ranges of "+dependencies.FirstOf(names)+". Change these.")
	}
}

// warnDeleted names in an event those that depend on a package that is being deleted, and
// do not hold it.
func (s *reconciliation) warnDeleted(ctx context.Context) {
	own := snapshot.InstanceOf(s.pkg)
	dependents, _ := s.dependentsOf(ctx, own) // an event is no decision
	if names := dependencies.Refusing(dependents, own, ""); len(names) > 0 {
		s.warn("Delete", "It is deleted, and these depend on it: "+dependencies.FirstOf(names)+".")
	}
}

func (s *reconciliation) warn(action, note string) {
	s.Events.Eventf(s.pkg, nil, corev1.EventTypeWarning, eventDependents, action, "%s", conditions.Cut(conditions.Message(note), limits.EventNote))
}

// offersWake enqueues the Packages that wait for what changed in an offer.
func (r *Reconciler) offersWake(was, is *corev1alpha1.AvailablePackageSpec) {
	awaited := map[string]bool{was.PackageName: true, is.PackageName: true}
	for _, spec := range []*corev1alpha1.AvailablePackageSpec{was, is} {
		for i := range spec.Versions {
			for _, api := range spec.Versions[i].Provides {
				awaited[resolver.KeyOf(api.APIVersion, api.Kind)] = true
			}
		}
	}
	delete(awaited, "")
	r.wake(func(name string) bool { return awaited[name] })
}
