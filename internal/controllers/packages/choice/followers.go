package choice

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/kube/queueing"
)

// Followers are the Packages with a packageRef. They are enqueued when their choice can change.
type Followers struct {
	Catalogue *Catalogue
	Enqueue   func(types.NamespacedName)
	// Offered is called with the states of an offer before and after a change, in a namespace or in
	// the cluster.
	Offered func(namespace string, was, is *corev1alpha1.AvailablePackageSpec)
}

// Watch enqueues Packages whose choice can change with the offers of repositories, or with their
// visibility.
func (f *Followers) Watch(build *builder.Builder) *builder.Builder {
	for _, scope := range corev1alpha1.Scopes() {
		build = build.Watches(scope.NewAvailablePackage(), queueing.Changes(f.OffersChanged)).
			Watches(scope.NewPackageRepository(), queueing.Changes(f.repositoryChanged))
	}
	return build.WatchesMetadata(namespaceMetadata(), queueing.Changes(f.namespaceChanged))
}

// OffersChanged enqueues the followers of a package whose choice can change.
func (f *Followers) OffersChanged(ctx context.Context, before, after client.Object) error {
	was, is := specOf(before), specOf(after)
	f.Catalogue.changed(changedNamespace(before, after))
	f.Offered(changedNamespace(before, after), was, is)
	changed := changedVersions(was, is)
	names := map[string]bool{was.PackageName: true, is.PackageName: true}
	delete(names, "")
	for name := range names {
		followers, err := f.followers(ctx, name, changedNamespace(before, after))
		if err != nil {
			return err
		}
		for _, pkg := range followers {
			if mayMove(pkg, changed) {
				f.Enqueue(client.ObjectKeyFromObject(pkg))
			}
		}
	}

	if len(changed) == 0 {
		return nil
	}
	return f.providersChanged(ctx, was, is, changedNamespace(before, after))
}

// providersChanged enqueues the Packages without a version, and the Packages that name an API that
// a package starts or stops providing, or provides to other namespaces.
func (f *Followers) providersChanged(ctx context.Context, was, is *corev1alpha1.AvailablePackageSpec, namespace string) error {
	before, after := providersIn(was), providersIn(is)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for api := range all {
		same := maps.Equal(before[api], after[api])
		followers, err := f.followers(ctx, api, namespace)
		if err != nil {
			return err
		}
		for _, pkg := range followers {
			if !same || unresolved(pkg) {
				f.Enqueue(client.ObjectKeyFromObject(pkg))
			}
		}
	}

	return nil
}

// changedNamespace returns the namespace of an object from its states before and after; one of them
// can be nil.
func changedNamespace(before, after client.Object) string {
	if after == nil {
		return before.GetNamespace()
	}
	return after.GetNamespace()
}

// specOf returns the offers in an object; empty for another kind.
func specOf(obj client.Object) *corev1alpha1.AvailablePackageSpec {
	if available, ok := obj.(corev1alpha1.GenericAvailablePackage); ok {
		return available.AvailableSpec()
	}
	return &corev1alpha1.AvailablePackageSpec{}
}

// changedVersions returns the versions that differ between two states of an object.
func changedVersions(before, after *corev1alpha1.AvailablePackageSpec) []string {
	was, is, changed := byVersion(before), byVersion(after), []string{}
	for version, offers := range is {
		if before.PackageName != after.PackageName || !equality.Semantic.DeepEqual(was[version], offers) {
			changed = append(changed, version)
		}
	}
	for version := range was {
		if _, found := is[version]; !found {
			changed = append(changed, version)
		}
	}
	return changed
}

// byVersion returns the offers of each version in their order.
func byVersion(spec *corev1alpha1.AvailablePackageSpec) map[string][]*corev1alpha1.AvailableVersion {
	offers := make(map[string][]*corev1alpha1.AvailableVersion, len(spec.Versions))
	for i := range spec.Versions {
		v := &spec.Versions[i]
		offers[v.Version] = append(offers[v.Version], v)
	}
	return offers
}

// followers returns the Packages that follow a package or an API: of a namespace, or all of them,
// for reading only.
func (f *Followers) followers(ctx context.Context, name, namespace string) ([]corev1alpha1.GenericPackage, error) {
	return ListPackages(ctx, f.Catalogue.Reader, namespace, client.MatchingFields{followerIndex: name})
}

// ListPackages returns Packages of a namespace, or all of both scopes, from the cache, for reading
// only.
func ListPackages(ctx context.Context, reader client.Reader, namespace string, of ...client.ListOption) ([]corev1alpha1.GenericPackage, error) {
	var all []corev1alpha1.GenericPackage
	for _, scope := range corev1alpha1.Scopes() {
		if namespace != "" && scope == corev1alpha1.ScopeCluster {
			continue
		}
		list := scope.NewPackageList()
		if err := reader.List(ctx, list, append(of, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, fmt.Errorf("list Packages: %w", err)
		}
		all = append(all, list.GenericPackages()...)
	}
	return all, nil
}

// repositoryChanged enqueues the Packages that follow a package once a repository is fetched for the
// first time, is for other namespaces, or is deleted. The offers of a new one follow.
func (f *Followers) repositoryChanged(ctx context.Context, before, after client.Object) error {
	if isPending(before) == isPending(after) && after != nil && (before == nil || equality.Semantic.DeepEqual(selectorOf(before), selectorOf(after))) {
		return nil
	}
	return f.enqueueAll(ctx, changedNamespace(before, after))
}

func selectorOf(obj client.Object) *metav1.LabelSelector {
	return obj.(corev1alpha1.GenericPackageRepository).RepositorySpec().NamespaceSelector
}

// isPending reports whether the offers of a repository are not known yet.
func isPending(obj client.Object) bool {
	repository, ok := obj.(corev1alpha1.GenericPackageRepository)
	return ok && offers.Pending(repository)
}

// enqueueAll enqueues the Packages of a namespace, or all, that follow a package.
func (f *Followers) enqueueAll(ctx context.Context, namespace string) error {
	packages, err := ListPackages(ctx, f.Catalogue.Reader, namespace)
	for _, pkg := range packages {
		if pkg.PackageSpec().PackageRef != nil {
			f.Enqueue(client.ObjectKeyFromObject(pkg))
		}
	}
	return err
}

// namespaceChanged enqueues the followers in a namespace if its labels changed, because repositories
// select namespaces by them.
func (f *Followers) namespaceChanged(ctx context.Context, before, after client.Object) error {
	if after == nil || before != nil && labels.Equals(before.GetLabels(), after.GetLabels()) {
		return nil
	}
	return f.enqueueAll(ctx, after.GetName())
}
