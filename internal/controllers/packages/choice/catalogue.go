package choice

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// Catalogue chooses among the offers of repositories. It reads caches alone, and is safe for
// concurrent use.
type Catalogue struct {
	Reader client.Reader
	// Remembered returns the memory of a Package; nil if the Package is not reconciled.
	Remembered func(corev1alpha1.GenericPackage) *Memory
	// WasAvailable reports whether a revision of a package was available at any time.
	WasAvailable func(context.Context, resolver.Instance) bool

	mu sync.Mutex
	// changes counts the changes of offers of the cluster, and of namespaces.
	changes map[string]int
}

// Memory is the memory of a Catalogue about a Package.
type Memory struct {
	mu       sync.Mutex
	chosen   rememberedChoice
	provider rememberedProvider
}

// rememberedChoice is the choice that followed from a key, which identifies all that it depends on.
type rememberedChoice struct {
	key string
	Choice
}

// rememberedProvider is the package that packageRef led to while all that this depends on has a
// key.
type rememberedProvider struct {
	key string
	offers.Provider
}

// Choose chooses the version of a Package with a packageRef.
func (c *Catalogue) Choose(ctx context.Context, pkg corev1alpha1.GenericPackage, on versions.Platform) (Choice, error) {
	provider, listed, err := c.follow(ctx, pkg)
	if err != nil {
		return Choice{}, err
	}

	request := offers.RequestOf(pkg, provider.Name, on)
	key, err := listed.key(request, provider, Installed(pkg))
	if err != nil {
		return Choice{}, err
	}

	m := cmp.Or(c.Remembered(pkg), &Memory{})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.chosen.key != key {
		offered := offers.Candidates(provider.Name, listed.local, listed.cluster, listed.visible)
		m.chosen = rememberedChoice{key: key, Choice: choose(pkg, provider, offered, listed.pending, request, c.wasAvailable(ctx, pkg))}
	}

	return m.chosen.Choice, nil
}

// Candidates returns the versions that a Package with a packageRef can have, the highest first.
func (c *Catalogue) Candidates(ctx context.Context, pkg corev1alpha1.GenericPackage, on versions.Platform) ([]offers.Offered, error) {
	provider, listed, err := c.follow(ctx, pkg)
	if err != nil {
		return nil, err
	}
	offered := offers.Candidates(provider.Name, listed.local, listed.cluster, listed.visible)
	return choose(pkg, provider, offered, nil, offers.RequestOf(pkg, provider.Name, on), c.wasAvailable(ctx, pkg)).Candidates, nil
}

// wasAvailable defers the question, which takes a read, until a decision needs it.
func (c *Catalogue) wasAvailable(ctx context.Context, pkg corev1alpha1.GenericPackage) func() bool {
	return func() bool { return c.WasAvailable(ctx, snapshot.InstanceOf(pkg)) }
}

// Lookup is the catalogue of one resolution.
type Lookup struct {
	*Catalogue
	ctx context.Context // of that resolution
	// Err is why an offer could not be read: the resolution lacks it.
	Err error
}

// In returns the catalogue of one resolution.
func (c *Catalogue) In(ctx context.Context) *Lookup { return &Lookup{Catalogue: c, ctx: ctx} }

// Offers returns the versions of a package that a namespace sees; for an empty namespace, the
// versions that ClusterPackages see.
func (l *Lookup) Offers(namespace, name string) []resolver.Offer {
	listed, err := l.listIndexed(l.ctx, namespace, client.MatchingFields{availableIndex: name})
	if err != nil {
		l.Err = err
		return nil
	}
	return snapshot.OffersOf(offers.Candidates(name, listed.local, listed.cluster, listed.visible))
}

// Providers returns the names of packages with a version that provides an API.
func (l *Lookup) Providers(namespace string, api corev1alpha1.ProvidedAPI) []string {
	some, err := l.listIndexed(l.ctx, namespace, client.MatchingFields{providedIndex: api.String()})
	if err != nil {
		l.Err = err
		return nil
	}
	found := []string{}
	for _, name := range some.names() {
		if slices.ContainsFunc(l.Offers(namespace, name), func(o resolver.Offer) bool { return slices.Contains(o.Provides, api) }) {
			found = append(found, name)
		}
	}
	return found
}

// offerings are the versions of one package that the repositories offer to one namespace.
type offerings struct {
	local, cluster []corev1alpha1.AvailablePackageSpec
	// read identifies the objects that were read.
	read []string
	// hidden are the cluster repositories that the namespace does not see.
	hidden map[string]bool
	// pending are the repositories, such as PackageRepository/stable, that it sees and that were
	// never fetched.
	pending []string
}

func (o *offerings) visible(repository string) bool { return !o.hidden[repository] }

// key identifies everything that a choice depends on, in a few bytes: offers are as large as their
// repositories choose.
func (o *offerings) key(request versions.Request, provider offers.Provider, installed Origin) (string, error) {
	return keyFrom(request, provider, installed.Image, installed.Digest, installed.Version, o.read, o.hidden, o.pending)
}

// keyFrom returns a short key of all values.
func keyFrom(all ...any) (string, error) {
	encoded, err := json.Marshal(all)
	sum := sha256.Sum256(encoded)
	return string(sum[:]), err
}

// follow returns the package that packageRef leads to, and its offers.
func (c *Catalogue) follow(ctx context.Context, pkg corev1alpha1.GenericPackage) (offers.Provider, *offerings, error) {
	seen, err := c.readRepositories(ctx, pkg.GetNamespace())
	if err != nil {
		return offers.Provider{}, nil, err
	}
	provider, err := c.provider(ctx, pkg, seen)
	if err != nil {
		return offers.Provider{}, nil, err
	}
	listed, err := c.list(ctx, seen, client.MatchingFields{availableIndex: provider.Name})
	return provider, listed, err
}

// provider returns the package that packageRef leads to. To find out which packages provide an API,
// all of them are read: it is remembered until an offer changes.
func (c *Catalogue) provider(ctx context.Context, pkg corev1alpha1.GenericPackage, seen *repositories) (offers.Provider, error) {
	ref, status := pkg.PackageSpec().PackageRef, pkg.PackageStatus()
	if ref.API == nil {
		return offers.ProviderOf(pkg, nil, nil), nil
	}

	installed := ""
	if resolved := status.Resolved; resolved != nil {
		installed = cmp.Or(resolved.CatalogName, resolved.PackageName)
	}

	key, err := keyFrom(c.seen(pkg.GetNamespace()), seen.visible, seen.pending, ref.API, status.LastAttempted, installed)
	if err != nil {
		return offers.Provider{}, err
	}

	m := cmp.Or(c.Remembered(pkg), &Memory{})
	m.mu.Lock()
	known := m.provider
	m.mu.Unlock()
	if known.key == key {
		return known.Provider, nil
	}

	providers, err := c.providers(ctx, seen, corev1alpha1.ProvidedAPI(*ref.API))
	if err != nil {
		return offers.Provider{}, err
	}

	provider := offers.ProviderOf(pkg, providers, seen.pending)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.provider = rememberedProvider{key, provider}
	return provider, nil
}

// changed notes that the offers of the repositories of a namespace, or of the cluster, changed in
// the cache.
func (c *Catalogue) changed(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == nil {
		c.changes = map[string]int{}
	}
	c.changes[namespace]++
}

// seen identifies the offers to a namespace, or to ClusterPackages.
func (c *Catalogue) seen(namespace string) [2]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return [2]int{c.changes[""], c.changes[namespace]}
}

// providers returns the names of packages that can be chosen for an API.
func (c *Catalogue) providers(ctx context.Context, seen *repositories, api corev1alpha1.ProvidedAPI) (names []string, err error) {
	some, err := c.list(ctx, seen, client.MatchingFields{providedIndex: api.String()})
	if err != nil {
		return nil, err
	}

	for _, name := range some.names() {
		// A version from the namespace's own repositories takes precedence over the cluster's.
		all, err := c.list(ctx, seen, client.MatchingFields{availableIndex: name})
		if err != nil {
			return nil, err
		}
		if offers.Provide(offers.Each(name, all.local, all.cluster, all.visible), api, corev1alpha1.ScopeOf(seen.namespace)) {
			names = append(names, name)
		}
	}

	return names, nil
}

// listIndexed reads the offers of an index to a namespace, or to ClusterPackages. The result is for
// reading only.
func (c *Catalogue) listIndexed(ctx context.Context, namespace string, of client.MatchingFields) (*offerings, error) {
	seen, err := c.readRepositories(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return c.list(ctx, seen, of)
}

// list is listIndexed of the repositories that were read.
func (c *Catalogue) list(ctx context.Context, seen *repositories, of client.MatchingFields) (*offerings, error) {
	o := &offerings{pending: seen.pending}
	var err error
	if o.cluster, err = c.listAvailable(ctx, corev1alpha1.ScopeCluster, "", of, &o.read); err != nil {
		return nil, err
	}
	if seen.namespace != "" {
		if o.local, err = c.listAvailable(ctx, corev1alpha1.ScopeNamespaced, seen.namespace, of, &o.read); err != nil {
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

// repositories are the repositories that a namespace sees. ClusterPackages see all repositories of
// the cluster.
type repositories struct {
	namespace string
	// visible are the cluster's repositories.
	visible map[string]bool
	// pending are the repositories, such as PackageRepository/stable, that were never fetched.
	pending []string
}

// readRepositories returns the repositories that a namespace sees, and the ones that were never
// fetched.
func (c *Catalogue) readRepositories(ctx context.Context, namespace string) (*repositories, error) {
	own, err := c.namespaceLabels(ctx, namespace)
	if err != nil {
		return nil, err
	}

	found := &repositories{namespace: namespace, visible: map[string]bool{}}
	for _, scope := range corev1alpha1.Scopes() {
		list, in := scope.NewPackageRepositoryList(), ""
		if scope == corev1alpha1.ScopeNamespaced {
			if in = namespace; in == "" {
				continue
			}
		}
		if err := c.Reader.List(ctx, list, client.InNamespace(in), client.UnsafeDisableDeepCopy); err != nil {
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

// listAvailable returns the offers in a scope, and adds their versions to read, which identifies
// the input of a decision. The list is not a copy and must not be modified.
func (c *Catalogue) listAvailable(
	ctx context.Context, scope corev1alpha1.Scope, namespace string, of client.MatchingFields, read *[]string,
) ([]corev1alpha1.AvailablePackageSpec, error) {
	list := scope.NewAvailablePackageList()
	err := c.Reader.List(ctx, list, client.InNamespace(namespace), of, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("read the offers of repositories: %w", err)
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

// namespaceLabels returns the labels of a namespace; none if it is empty or does not exist yet.
func (c *Catalogue) namespaceLabels(ctx context.Context, name string) (labels.Set, error) {
	if name == "" {
		return nil, nil
	}
	ns := namespaceMetadata()
	err := c.Reader.Get(ctx, types.NamespacedName{Name: name}, ns)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the labels of the namespace: %w", err)
	}
	if err != nil {
		return nil, nil
	}
	return ns.Labels, nil
}

// namespaceMetadata returns an empty Namespace to read metadata into.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return ns
}
