package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
)

// rememberedChoice is the choice that followed from a key, which identifies all that it depends on.
type rememberedChoice struct {
	key string
	choice
}

// choose determines what the package is loaded from. It reads caches alone; a new choice is recorded in the status
// before anything is made of it.
func (s *reconciliation) choose(ctx context.Context) error {
	spec := s.pkg.PackageSpec()
	switch {
	case spec.PackageRef == nil:
		s.choice = choice{origin: origin{image: spec.Image}}
		return nil
	case spec.Paused || s.waiting || s.inputError != "":
		s.choice = choice{origin: installed(s.pkg)}
		return nil
	}
	if spec.Interval != nil {
		s.Requeue(s.spread(s.Pace.Of(max(spec.Interval.Duration, limits.TagIntervalMin))))
	}
	provider, listed, err := s.follow(ctx, s.pkg)
	if err != nil {
		return err
	}
	request := offers.RequestOf(s.pkg, provider.Name, platformOf(s.environment, s.Version))
	key, err := listed.key(request, provider, installed(s.pkg))
	if err != nil {
		return err
	}
	if s.state.chosen.key != key {
		offered := offers.Candidates(provider.Name, listed.local, listed.cluster, listed.visible)
		s.state.chosen = rememberedChoice{key: key, choice: choose(s.pkg, provider, offered, listed.pending, request)}
	}
	s.choice = s.state.chosen.choice
	if err := s.chooseByNeeds(ctx); err != nil {
		return err
	}
	if err := s.confirm(ctx); err != nil {
		return err
	}
	if err := s.recordAttempt(ctx); err != nil {
		return err
	}
	return s.endDowngrade(ctx)
}

// endDowngrade takes off the annotation that allowed one downgrade, once a version is chosen and recorded.
func (s *reconciliation) endDowngrade(ctx context.Context) error {
	if _, found := s.pkg.GetAnnotations()[corev1alpha1.DowngradeFromAnnotation]; !found || !s.choice.chosen() {
		return nil
	}
	before := copyOf(s.pkg)
	annotate(s.pkg, map[string]string{corev1alpha1.DowngradeFromAnnotation: ""})
	if err := s.patch(ctx, before, s.pkg); err != nil {
		return fmt.Errorf("take off the annotation %s: %w", corev1alpha1.DowngradeFromAnnotation, err)
	}
	return nil
}

// confirm returns an error where the caches lack a package that may provide an API for which a package is about to be chosen, which
// stays then: that a repository was fetched is in another cache than what it offers. It reads the API server once for each state of
// the repositories.
func (s *reconciliation) confirm(ctx context.Context) error {
	ref, last, namespace := s.pkg.PackageSpec().PackageRef, s.pkg.PackageStatus().LastAttempted, s.pkg.GetNamespace()
	if ref.API == nil || !s.choice.chosen() || last != nil && last.PackageName == s.choice.origin.packageName {
		return nil
	}
	seen, err := s.readRepositories(ctx, namespace)
	if err != nil || s.memory.isConfirmed(namespace, seen.fetched) {
		return err
	}
	for _, scope := range scopes {
		if in := map[corev1alpha1.Scope]string{corev1alpha1.ScopeNamespaced: namespace}[scope]; scope == corev1alpha1.ScopeCluster || in != "" {
			if err := s.confirmOffers(ctx, scope, in); err != nil {
				return err
			}
		}
	}
	s.memory.confirm(namespace, seen.fetched)
	return nil
}

// confirmOffers returns an error where the cache lacks an object, or has another version of it.
func (s *reconciliation) confirmOffers(ctx context.Context, scope corev1alpha1.Scope, namespace string) error {
	list := scope.NewAvailablePackageList()
	if err := s.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("read what repositories offer: %w", err)
	}
	cached := map[types.UID]string{}
	for _, available := range list.GenericAvailablePackages() {
		cached[available.GetUID()] = available.GetResourceVersion()
	}
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(scope.Kind("AvailablePackage") + "List"))
		if err := s.Reader.List(ctx, page, client.InNamespace(namespace), client.Limit(limits.OffersConfirmed), client.Continue(next)); err != nil {
			return fmt.Errorf("read which packages repositories offer: %w", err)
		}
		for i := range page.Items {
			if now := &page.Items[i]; cached[now.UID] != now.ResourceVersion {
				return apierrors.NewConflict(corev1alpha1.GroupVersion.WithResource("availablepackages").GroupResource(), now.Name,
					errors.New("it is not in the cache yet as it is offered"))
			}
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// recordAttempt writes status.lastAttempted, with the condition Resolved.
func (s *reconciliation) recordAttempt(ctx context.Context) error {
	if !s.choice.chosen() {
		return nil
	}
	from := s.choice.origin
	attempted := corev1alpha1.AttemptedVersion{PackageName: from.packageName, API: s.pkg.PackageSpec().PackageRef.API.DeepCopy(), Version: from.version, Image: from.image}
	if last := s.pkg.PackageStatus().LastAttempted; equality.Semantic.DeepEqual(last, &attempted) {
		return nil
	}
	s.pkg.PackageStatus().LastAttempted = &attempted
	reportChoice(s.pkg.PackageStatus(), s.view)
	if err := statuswriter.Write(ctx, s.Client, s.pkg); err != nil {
		return fmt.Errorf("record the version that was chosen: %w", err)
	}
	s.Fresh.Put(s.pkg)
	return nil
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

// rememberedProvider is the package that packageRef led to while all that this depends on has a key.
type rememberedProvider struct {
	key string
	offers.Provider
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
	// fetched identifies the last fetch of each.
	fetched string
}

func (r *Reconciler) readRepositories(ctx context.Context, namespace string) (*repositories, error) {
	own, err := r.namespaceLabels(ctx, namespace)
	if err != nil {
		return nil, err
	}
	found, artifacts := &repositories{namespace: namespace, visible: map[string]bool{}}, []string{}
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
			if artifact := repository.RepositoryStatus().Artifact; artifact != nil {
				artifacts = append(artifacts, in+"/"+name+" "+artifact.Digest+" "+artifact.OffersDigest)
			}
		}
	}
	slices.Sort(found.pending)
	slices.Sort(artifacts)
	found.fetched, err = keyFrom(artifacts)
	return found, err
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
