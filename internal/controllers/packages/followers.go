package packages

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/kube/panics"
)

// watchOffers enqueues Packages whose choice may change with what repositories offer, or to whom.
func (r *Reconciler) watchOffers(build *builder.Builder) *builder.Builder {
	for _, scope := range scopes {
		build = build.Watches(scope.NewAvailablePackage(), changes(r.offersChanged)).
			Watches(scope.NewPackageRepository(), changes(r.repositoryChanged))
	}
	return build.WatchesMetadata(namespaceMetadata(), changes(r.namespaceChanged))
}

// changes calls handle with the states before and after; nil for one that does not exist.
func changes(handle func(ctx context.Context, before, after client.Object)) handler.EventHandler {
	// client-go ends the process where a handler panics, and would do so again after a restart.
	changed := func(ctx context.Context, before, after client.Object) {
		_ = panics.Guard(ctx, "handling an event", func() error { handle(ctx, before, after); return nil })
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ queue) { changed(ctx, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ queue) { changed(ctx, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ queue) { changed(ctx, e.Object, nil) },
	}
}

// offersChanged enqueues the followers of a package whose choice may change.
func (r *Reconciler) offersChanged(ctx context.Context, before, after client.Object) {
	was, is := specOf(before), specOf(after)
	r.memory.offerChanged(changedNamespace(before, after))
	r.offersWake(was, is)
	changed := changedVersions(was, is)
	names := map[string]bool{was.PackageName: true, is.PackageName: true}
	delete(names, "")
	for name := range names {
		for _, pkg := range r.followers(ctx, name, changedNamespace(before, after)) {
			if mayMove(pkg, changed) {
				r.enqueue(keyOf(pkg))
			}
		}
	}
	if len(changed) > 0 {
		r.providersChanged(ctx, was, is, changedNamespace(before, after))
	}
}

// providersChanged enqueues the Packages that name an API which a package provides from now on, no more, or to others, and those
// without a version.
func (r *Reconciler) providersChanged(ctx context.Context, was, is *corev1alpha1.AvailablePackageSpec, namespace string) {
	before, after := providersIn(was), providersIn(is)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for api := range all {
		same := maps.Equal(before[api], after[api])
		for _, pkg := range r.followers(ctx, api, namespace) {
			if !same || unresolved(pkg) {
				r.enqueue(keyOf(pkg))
			}
		}
	}
}

// changedNamespace returns the namespace of the states of an object, of which one may be nil.
func changedNamespace(before, after client.Object) string {
	if after == nil {
		return before.GetNamespace()
	}
	return after.GetNamespace()
}

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

// followers returns the Packages that follow a package or an API: of a namespace, or all of them, for reading only.
func (r *Reconciler) followers(ctx context.Context, name, namespace string) []corev1alpha1.GenericPackage {
	var all []corev1alpha1.GenericPackage
	for _, scope := range scopes {
		if namespace != "" && scope == corev1alpha1.ScopeCluster {
			continue
		}
		list := scope.NewPackageList()
		err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{followerIndex: name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			continue // the cache has stopped, and with it this process
		}
		all = append(all, list.GenericPackages()...)
	}
	return all
}

// repositoryChanged enqueues the followers of what a repository offers in namespaces that see it from now on, or no more,
// and the Packages without a version where it was fetched for the first time.
func (r *Reconciler) repositoryChanged(ctx context.Context, before, after client.Object) {
	if isPending(before) != isPending(after) {
		r.enqueueUnresolved(ctx, before, after)
	}
	was, _ := before.(*corev1alpha1.ClusterPackageRepository)
	is, _ := after.(*corev1alpha1.ClusterPackageRepository)
	if was == nil && is == nil || was != nil && is != nil && equality.Semantic.DeepEqual(was.Spec.NamespaceSelector, is.Spec.NamespaceSelector) {
		return
	}
	own := map[string]labels.Set{}
	for name := range r.offeredBy(ctx, was, is) {
		for _, pkg := range r.followers(ctx, name, "") {
			ns := pkg.GetNamespace()
			if ns == "" {
				continue // ClusterPackages see all repositories
			}
			if _, known := own[ns]; !known {
				own[ns], _ = r.namespaceLabels(ctx, ns)
			}
			if selects(was, own[ns]) != selects(is, own[ns]) {
				r.enqueue(keyOf(pkg))
			}
		}
	}
}

func isPending(obj client.Object) bool {
	repository, ok := obj.(corev1alpha1.GenericPackageRepository)
	return ok && offers.Pending(repository)
}

// enqueueUnresolved enqueues the Packages in the scope of a repository that have no version.
func (r *Reconciler) enqueueUnresolved(ctx context.Context, before, after client.Object) {
	namespace := changedNamespace(before, after)
	for _, scope := range scopes {
		if namespace != "" && scope == corev1alpha1.ScopeCluster {
			continue
		}
		list := scope.NewPackageList()
		if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return // the cache has stopped, and with it this process
		}
		for _, pkg := range list.GenericPackages() {
			if pkg.PackageSpec().PackageRef != nil && unresolved(pkg) {
				r.enqueue(keyOf(pkg))
			}
		}
	}
}

// selects reports whether a repository exists and is for the namespaces with some labels.
func selects(repository *corev1alpha1.ClusterPackageRepository, own labels.Set) bool {
	return repository != nil && offers.Visible(&repository.Spec, own)
}

// offeredBy returns the names of packages of which a repository offers a version, and the APIs that these provide.
func (r *Reconciler) offeredBy(ctx context.Context, states ...*corev1alpha1.ClusterPackageRepository) map[string]bool {
	repository, names := "", map[string]bool{}
	for _, state := range states {
		if state != nil {
			repository = state.Name
		}
	}
	list := &corev1alpha1.ClusterAvailablePackageList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return names // the cache has stopped, and with it this process
	}
	for i := range list.Items {
		spec := &list.Items[i].Spec
		for j := range spec.Versions {
			if v := &spec.Versions[j]; v.Repository == repository {
				names[spec.PackageName] = true
				for _, api := range v.Provides {
					names[api.String()] = true
				}
			}
		}
	}
	return names
}

// namespaceChanged enqueues the followers in a namespace whose labels changed what they see.
func (r *Reconciler) namespaceChanged(ctx context.Context, before, after client.Object) {
	if after == nil || before != nil && labels.Equals(before.GetLabels(), after.GetLabels()) {
		return
	}
	repositories := &corev1alpha1.ClusterPackageRepositoryList{}
	if err := r.Client.List(ctx, repositories, client.UnsafeDisableDeepCopy); err != nil || !seesOthers(repositories.Items, before, after) {
		return
	}
	list := &corev1alpha1.PackageList{}
	if err := r.Client.List(ctx, list, client.InNamespace(after.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return // the cache has stopped, and with it this process
	}
	for i := range list.Items {
		if list.Items[i].Spec.PackageRef != nil {
			r.enqueue(keyOf(&list.Items[i]))
		}
	}
}

// seesOthers reports whether a change of labels shows or hides a repository.
func seesOthers(repositories []corev1alpha1.ClusterPackageRepository, before, after metav1.Object) bool {
	var was labels.Set
	if before != nil {
		was = before.GetLabels()
	}
	for i := range repositories {
		if selects(&repositories[i], was) != selects(&repositories[i], after.GetLabels()) {
			return true
		}
	}
	return false
}
