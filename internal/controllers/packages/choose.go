package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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

// key identifies everything that a choice depends on.
func (o *offerings) key(request versions.Request, provider offers.Provider, installed origin) (string, error) {
	key, err := json.Marshal([]any{request, provider, installed.image, installed.digest, installed.version, o.read, o.hidden, o.pending})
	return string(key), err
}

// follow returns the package that packageRef leads to, and what is offered of it.
func (r *Reconciler) follow(ctx context.Context, pkg corev1alpha1.GenericPackage) (offers.Provider, *offerings, error) {
	ref, namespace := pkg.PackageSpec().PackageRef, pkg.GetNamespace()
	var providers, pending []string
	if ref.API != nil {
		var err error
		if providers, pending, err = r.providers(ctx, namespace, corev1alpha1.ProvidedAPI(*ref.API)); err != nil {
			return offers.Provider{}, nil, err
		}
	}
	provider := offers.ProviderOf(pkg, providers, pending)
	listed, err := r.listOffers(ctx, provider.Name, namespace)
	return provider, listed, err
}

// providers returns the names of packages that may be chosen for an API in a namespace, or by ClusterPackages, and the repositories
// that were never fetched.
func (r *Reconciler) providers(ctx context.Context, namespace string, api corev1alpha1.ProvidedAPI) (names, pending []string, err error) {
	some, err := r.list(ctx, namespace, client.MatchingFields{providedIndex: api.String()})
	if err != nil {
		return nil, nil, err
	}
	for _, name := range some.names() {
		// A version that the namespace's own repositories offer is not that of the cluster.
		all, err := r.listOffers(ctx, name, namespace)
		if err != nil {
			return nil, nil, err
		}
		if offers.Provide(offers.Candidates(name, all.local, all.cluster, all.visible), api, corev1alpha1.ScopeOf(namespace)) {
			names = append(names, name)
		}
	}
	return names, some.pending, nil
}

// listOffers reads the offers to a namespace, or to ClusterPackages. The result is for
// reading only.
func (r *Reconciler) listOffers(ctx context.Context, name, namespace string) (*offerings, error) {
	return r.list(ctx, namespace, client.MatchingFields{availableIndex: name})
}

// list is listOffers for the objects that an index has.
func (r *Reconciler) list(ctx context.Context, namespace string, of client.MatchingFields) (*offerings, error) {
	o := &offerings{}
	var err error
	if o.cluster, err = r.listAvailable(ctx, corev1alpha1.ScopeCluster, "", of, &o.read); err != nil {
		return nil, err
	}
	if namespace != "" {
		if o.local, err = r.listAvailable(ctx, corev1alpha1.ScopeNamespaced, namespace, of, &o.read); err != nil {
			return nil, err
		}
	}
	return o, r.readRepositories(ctx, namespace, o)
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

// readRepositories sets which repositories are hidden, or pending. ClusterPackages see all repositories of the cluster.
func (r *Reconciler) readRepositories(ctx context.Context, namespace string, o *offerings) error {
	own, err := r.namespaceLabels(ctx, namespace)
	if err != nil {
		return err
	}
	visible := map[string]bool{}
	for _, scope := range scopes {
		list, in := scope.NewPackageRepositoryList(), ""
		if scope == corev1alpha1.ScopeNamespaced {
			if in = namespace; in == "" {
				continue
			}
		}
		if err := r.Client.List(ctx, list, client.InNamespace(in), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("read repositories: %w", err)
		}
		for _, repository := range list.GenericRepositories() {
			name, seen := repository.GetName(), in != "" || namespace == "" || offers.Visible(repository.RepositorySpec(), own)
			visible[name] = visible[name] || in == "" && seen
			if seen && offers.Pending(repository) {
				o.pending = append(o.pending, scope.Kind("PackageRepository")+"/"+name)
			}
		}
	}
	slices.Sort(o.pending)
	if namespace != "" {
		o.hidden = hidden(o.cluster, visible)
	}
	return nil
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
	specs := []corev1alpha1.AvailablePackageSpec{}
	for _, available := range list.GenericAvailablePackages() {
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
