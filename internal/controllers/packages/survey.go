package packages

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// dependencyIndex is that of Packages by the instances that satisfy their dependencies.
const dependencyIndex = "status.dependencies.packageRef"

// indexes are those of the caches.
func indexes() []choice.Index {
	all := choice.Indexes()
	for _, scope := range corev1alpha1.Scopes() {
		all = append(all, choice.Index{Of: scope.NewPackage(), Field: dependencyIndex, Values: satisfiers})
	}
	return all
}

func satisfiers(obj client.Object) []string {
	pkg, ok := obj.(corev1alpha1.GenericPackage)
	if !ok {
		return nil
	}
	var found []string
	for _, r := range snapshot.RequirementsOf(pkg.PackageStatus()) {
		if r.Satisfier != nil {
			found = append(found, r.Satisfier.String())
		}
	}
	return found
}

// survey returns the Packages that matter to those of a namespace, or to ClusterPackages:
// these, ClusterPackages, and dependents of ClusterPackages that heed all, in their
// latest known states and with the decisions noted.
func (r *Reconciler) survey(ctx context.Context, namespace string) (dependencies.Known, error) {
	r.resolving.mu.Lock()
	defer r.resolving.mu.Unlock()
	return r.surveyed(ctx, namespace)
}

// surveyed is survey with the lock held.
func (r *Reconciler) surveyed(ctx context.Context, namespace string) (dependencies.Known, error) {
	packages := map[resolver.Instance]corev1alpha1.GenericPackage{}
	for _, obj := range r.Fresh.Created(generatedOwner) {
		if pkg, ok := obj.(corev1alpha1.GenericPackage); ok && (pkg.GetNamespace() == "" || pkg.GetNamespace() == namespace) {
			packages[snapshot.InstanceOf(pkg)] = pkg
		}
	}
	cached, err := r.packagesIn(ctx, "")
	if err != nil {
		return dependencies.Known{}, err
	}
	if namespace != "" {
		own, err := r.packagesIn(ctx, namespace)
		if err != nil {
			return dependencies.Known{}, err
		}
		cached = append(cached, own...)
	}
	for len(cached) > 0 {
		pkg, ok := r.Fresh.Latest(cached[0]).(corev1alpha1.GenericPackage)
		if cached = cached[1:]; !ok {
			continue
		}
		i := snapshot.InstanceOf(pkg)
		if _, again := packages[i]; !again && heedsAll(pkg) {
			dependents, err := r.dependentsOf(ctx, i)
			if err != nil {
				return dependencies.Known{}, err
			}
			cached = append(cached, dependents...)
		}
		packages[i] = pkg
	}
	return dependencies.NewKnown(packages, r.resolving.decided), nil
}

func heedsAll(pkg corev1alpha1.GenericPackage) bool {
	policy := pkg.PackageSpec().UpgradePolicy
	return pkg.GetNamespace() == "" && policy != nil && policy.Dependents == corev1alpha1.DependentsAll
}

// packagesIn returns the Packages of a namespace, or without one ClusterPackages, from the cache, for reading only.
func (r *Reconciler) packagesIn(ctx context.Context, namespace string) ([]corev1alpha1.GenericPackage, error) {
	list := corev1alpha1.ScopeOf(namespace).NewPackageList()
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Packages: %w", err)
	}
	return list.GenericPackages(), nil
}

// dependentsOf returns the Packages that record an instance, from the cache, for reading only.
func (r *Reconciler) dependentsOf(ctx context.Context, i resolver.Instance) ([]corev1alpha1.GenericPackage, error) {
	var all []corev1alpha1.GenericPackage
	for _, scope := range corev1alpha1.Scopes() {
		list := scope.NewPackageList()
		if err := r.Client.List(ctx, list, client.MatchingFields{dependencyIndex: i.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the dependents of %s: %w", i, err)
		}
		all = append(all, list.GenericPackages()...)
	}
	return all, nil
}

// commit notes the decision that the Package is about to record, if the input of its
// resolution is still current, or in the last attempt if no package that it uses is being
// removed. Until done is called, the decision counts for others. It returns errOutdated if the input is not.
func (s *reconciliation) commit(
	ctx context.Context, d *dependencies.Plan, was dependencies.Known, last bool,
) (now dependencies.Known, done func(), err error) {
	own := snapshot.InstanceOf(s.pkg)
	s.resolving.mu.Lock()
	defer s.resolving.mu.Unlock()
	if now, err = s.surveyed(ctx, own.Namespace); err != nil {
		return now, nil, err
	}
	if !dependencies.Same(was, now, own, d.Awaited) {
		if !last || !d.Remains(now) {
			return now, nil, errOutdated
		}
		s.Requeue(limits.ConflictRetry)
	}
	return now, s.note(ctx, own, d.Decision()), nil
}

// errOutdated means that the input of a resolution has changed since.
var errOutdated = errors.New("what it depends on is being deleted")

// note notes a decision with the lock held, and returns a function that takes it back.
// Packages that were held by a decision that was not recorded in the end are reconciled then.
func (r *Reconciler) note(ctx context.Context, own resolver.Instance, d dependencies.Decision) (done func()) {
	if r.resolving.decided == nil {
		r.resolving.decided = dependencies.Decisions{}
	}
	r.resolving.decided[own] = d
	return func() {
		r.resolving.mu.Lock()
		delete(r.resolving.decided, own)
		r.resolving.mu.Unlock()
		for _, record := range d.Records {
			pkg, key := corev1alpha1.ScopeOf(record.Satisfier.Namespace).NewPackage(), types.NamespacedName(*record.Satisfier)
			if err := r.Client.Get(ctx, key, pkg); err == nil && pkg.GetDeletionTimestamp() != nil {
				r.enqueue(key)
			}
		}
	}
}
