package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// catalogue reads what repositories offer.
type catalogue struct {
	*Reconciler
	ctx context.Context // of the one resolution that it is made for
	err error
}

// Offers returns the versions of a package that a namespace sees, and without one those that ClusterPackages see.
func (c *catalogue) Offers(namespace, name string) []resolver.Offer {
	listed, err := c.listOffers(c.ctx, name, namespace)
	if err != nil {
		c.err = err
		return nil
	}
	return snapshot.OffersOf(offers.Candidates(name, listed.local, listed.cluster, listed.visible))
}

// Providers returns the names of packages of which a version there provides an API.
func (c *catalogue) Providers(namespace string, api corev1alpha1.ProvidedAPI) []string {
	some, err := c.listIndexed(c.ctx, namespace, client.MatchingFields{providedIndex: api.String()})
	if err != nil {
		c.err = err
		return nil
	}
	found := []string{}
	for _, name := range some.names() {
		if slices.ContainsFunc(c.Offers(namespace, name), func(o resolver.Offer) bool { return slices.Contains(o.Provides, api) }) {
			found = append(found, name)
		}
	}
	return found
}

// versionsOf returns the versions that a Package with a packageRef may have, and whether its requirements are known without these:
// they were recorded.
func (r *Reconciler) versionsOf(ctx context.Context, pkg corev1alpha1.GenericPackage) (known bool, all []resolver.RootVersion, err error) {
	status, ref := pkg.PackageStatus(), pkg.PackageSpec().PackageRef
	known = meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionDependenciesReady) != nil
	if ref == nil {
		return known, nil, nil
	}
	env, waiting, err := r.Environment.For(pkg.GetNamespace())
	if err != nil || waiting {
		return known, nil, nil // it is reconciled once that is known
	}
	provider, listed, err := r.follow(ctx, pkg)
	if err != nil {
		return false, nil, err
	}
	offered := offers.Candidates(provider.Name, listed.local, listed.cluster, listed.visible)
	c := choose(pkg, provider, offered, nil, offers.RequestOf(pkg, provider.Name, platformOf(env, r.Version)))
	return known, dependencies.VersionsOf(pkg, c.candidates), nil
}

// wasAvailable reports whether a revision of a package was available at any time.
func (r *Reconciler) wasAvailable(ctx context.Context, i resolver.Instance) bool {
	list := corev1alpha1.ScopeOf(i.Namespace).NewObjectSetList()
	err := r.Client.List(ctx, list, client.InNamespace(i.Namespace), client.MatchingLabels{corev1alpha1.PackageInstanceLabel: i.Name}, client.UnsafeDisableDeepCopy)
	return err != nil || slices.ContainsFunc(list.GenericObjectSets(), func(set corev1alpha1.GenericObjectSet) bool {
		return meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded)
	})
}

// schemas are answers of resolver.Served in one reconcile. Whether an API has fields is read from the API server, once; no lock is
// held meanwhile.
type schemas struct {
	read  resolver.Served
	known map[string]answer
}

type answer struct {
	served bool
	fields []string
}

// served is a resolver.Served.
func (a *schemas) served(api *corev1alpha1.DependencyAPI) (bool, []string) {
	if len(api.FieldPaths) == 0 {
		return a.read(api)
	}
	key := resolver.KeyOf(api.APIVersion, api.Kind) + " " + strings.Join(api.FieldPaths, " ")
	if _, known := a.known[key]; !known {
		if a.known == nil {
			a.known = map[string]answer{}
		}
		served, fields := a.read(api)
		a.known[key] = answer{served, fields}
	}
	return a.known[key].served, a.known[key].fields
}

// offerings are what the repositories offer of one package to one namespace.
type offerings struct {
	local, cluster []corev1alpha1.AvailablePackageSpec
	// read identifies the objects that were read.
	read []string
	// hidden are the cluster repositories that the namespace does not see.
	hidden map[string]bool
	// pending are the repositories, such as PackageRepository/stable, that it sees and that were never fetched.
	pending []string
}

func (o *offerings) visible(repository string) bool { return !o.hidden[repository] }

// key identifies everything that a choice depends on, in a few bytes: offers are as large as their repositories choose.
func (o *offerings) key(request versions.Request, provider offers.Provider, installed origin) (string, error) {
	return keyFrom(request, provider, installed.image, installed.digest, installed.version, o.read, o.hidden, o.pending)
}

func keyFrom(all ...any) (string, error) {
	encoded, err := json.Marshal(all)
	sum := sha256.Sum256(encoded)
	return string(sum[:]), err
}

// follow returns the package that packageRef leads to, and its offers.
func (r *Reconciler) follow(ctx context.Context, pkg corev1alpha1.GenericPackage) (offers.Provider, *offerings, error) {
	seen, err := r.readRepositories(ctx, pkg.GetNamespace())
	if err != nil {
		return offers.Provider{}, nil, err
	}
	provider, err := r.provider(ctx, pkg, seen)
	if err != nil {
		return offers.Provider{}, nil, err
	}
	listed, err := r.list(ctx, seen, client.MatchingFields{availableIndex: provider.Name})
	return provider, listed, err
}

// provider returns the package that packageRef leads to. To find out which packages provide an API, all of them are read: it is
// remembered until an offer changes.
func (r *Reconciler) provider(ctx context.Context, pkg corev1alpha1.GenericPackage, seen *repositories) (offers.Provider, error) {
	ref, status := pkg.PackageSpec().PackageRef, pkg.PackageStatus()
	if ref.API == nil {
		return offers.ProviderOf(pkg, nil, nil), nil
	}
	installed := ""
	if resolved := status.Resolved; resolved != nil {
		installed = cmp.Or(resolved.CatalogName, resolved.PackageName)
	}
	key, err := keyFrom(r.memory.offersSeen(pkg.GetNamespace()), seen.visible, seen.pending, ref.API, status.LastAttempted, installed)
	if err != nil {
		return offers.Provider{}, err
	}
	if known := r.memory.providerOf(pkg); known.key == key {
		return known.Provider, nil
	}
	providers, err := r.providers(ctx, seen, corev1alpha1.ProvidedAPI(*ref.API))
	if err != nil {
		return offers.Provider{}, err
	}
	provider := offers.ProviderOf(pkg, providers, seen.pending)
	r.memory.rememberProvider(pkg, rememberedProvider{key, provider})
	return provider, nil
}

// providers returns the names of packages that may be chosen for an API.
func (r *Reconciler) providers(ctx context.Context, seen *repositories, api corev1alpha1.ProvidedAPI) (names []string, err error) {
	some, err := r.list(ctx, seen, client.MatchingFields{providedIndex: api.String()})
	if err != nil {
		return nil, err
	}
	for _, name := range some.names() {
		// A version that the namespace's own repositories offer is not that of the cluster.
		all, err := r.list(ctx, seen, client.MatchingFields{availableIndex: name})
		if err != nil {
			return nil, err
		}
		if offers.Provide(offers.Each(name, all.local, all.cluster, all.visible), api, corev1alpha1.ScopeOf(seen.namespace)) {
			names = append(names, name)
		}
	}
	return names, nil
}

// listOffers reads the offers to a namespace, or to ClusterPackages. The result is for
// reading only.
func (r *Reconciler) listOffers(ctx context.Context, name, namespace string) (*offerings, error) {
	return r.listIndexed(ctx, namespace, client.MatchingFields{availableIndex: name})
}

// listIndexed is listOffers for the objects that an index has.
func (r *Reconciler) listIndexed(ctx context.Context, namespace string, of client.MatchingFields) (*offerings, error) {
	seen, err := r.readRepositories(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return r.list(ctx, seen, of)
}

// list is listIndexed of the repositories that were read.
func (r *Reconciler) list(ctx context.Context, seen *repositories, of client.MatchingFields) (*offerings, error) {
	o := &offerings{pending: seen.pending}
	var err error
	if o.cluster, err = r.listAvailable(ctx, corev1alpha1.ScopeCluster, "", of, &o.read); err != nil {
		return nil, err
	}
	if seen.namespace != "" {
		if o.local, err = r.listAvailable(ctx, corev1alpha1.ScopeNamespaced, seen.namespace, of, &o.read); err != nil {
			return nil, err
		}
		o.hidden = hidden(o.cluster, seen.visible)
	}
	return o, nil
}

// names returns the names of the packages that are offered, sorted.
func (o *offerings) names() []string {
	names := map[string]bool{}
	for _, specs := range [][]corev1alpha1.AvailablePackageSpec{o.local, o.cluster} {
		for i := range specs {
			names[specs[i].PackageName] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// repositories are those that a namespace sees. ClusterPackages see all repositories of the cluster.
type repositories struct {
	namespace string
	// visible are those of the cluster.
	visible map[string]bool
	// pending are the repositories, such as PackageRepository/stable, that were never fetched.
	pending []string
}

func (r *Reconciler) readRepositories(ctx context.Context, namespace string) (*repositories, error) {
	own, err := r.namespaceLabels(ctx, namespace)
	if err != nil {
		return nil, err
	}
	found := &repositories{namespace: namespace, visible: map[string]bool{}}
	for _, scope := range scopes {
		list, in := scope.NewPackageRepositoryList(), ""
		if scope == corev1alpha1.ScopeNamespaced {
			if in = namespace; in == "" {
				continue
			}
		}
		if err := r.Client.List(ctx, list, client.InNamespace(in), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("read repositories: %w", err)
		}
		for _, repository := range list.GenericRepositories() {
			name, seen := repository.GetName(), in != "" || namespace == "" || offers.Visible(repository.RepositorySpec(), own)
			found.visible[name] = found.visible[name] || in == "" && seen
			if seen && offers.Pending(repository) {
				found.pending = append(found.pending, scope.Kind("PackageRepository")+"/"+name)
			}
		}
	}
	slices.Sort(found.pending)
	return found, nil
}

// hidden returns the repositories of specs that are not visible, or do not exist any more.
func hidden(specs []corev1alpha1.AvailablePackageSpec, visible map[string]bool) map[string]bool {
	found := map[string]bool{}
	for _, spec := range specs {
		for i := range spec.Versions {
			if name := spec.Versions[i].Repository; !visible[name] {
				found[name] = true
			}
		}
	}
	return found
}

func (r *Reconciler) listAvailable(
	ctx context.Context, scope corev1alpha1.Scope, namespace string, of client.MatchingFields, read *[]string,
) ([]corev1alpha1.AvailablePackageSpec, error) {
	list := scope.NewAvailablePackageList()
	err := r.Client.List(ctx, list, client.InNamespace(namespace), of, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("read what repositories offer: %w", err)
	}
	all := list.GenericAvailablePackages()
	specs := make([]corev1alpha1.AvailablePackageSpec, 0, len(all))
	for _, available := range all {
		specs = append(specs, *available.AvailableSpec())
		*read = append(*read, string(available.GetUID())+"/"+available.GetResourceVersion())
	}
	slices.Sort(*read)
	return specs, nil
}

// namespaceLabels returns the labels of a namespace; none where it does not exist yet, or is none.
func (r *Reconciler) namespaceLabels(ctx context.Context, name string) (labels.Set, error) {
	if name == "" {
		return nil, nil
	}
	ns := namespaceMetadata()
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, ns)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the labels of the namespace: %w", err)
	}
	if err != nil {
		return nil, nil
	}
	return ns.Labels, nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return ns
}
