package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// Chooser chooses versions as the manager does.
type Chooser struct {
	*cluster.Catalogue
	Cluster   *cluster.Cluster
	Namespace string

	// target is the cluster with the objects; nil for this one. there is the connection to it, if
	// there is one.
	target *corev1alpha1.TargetReference
	There  *cluster.Cluster

	// platform is nil until it is looked up, and if the user may not read it.
	platform *versions.Platform
	looked   bool
}

// ChooserFor returns a chooser for the packages of a namespace, or for ClusterPackages if it is
// empty.
func ChooserFor(cl *cluster.Cluster, namespace string) *Chooser {
	return &Chooser{Catalogue: cl.Catalogue(namespace), Cluster: cl, Namespace: namespace}
}

// At returns a chooser for a package with objects in another cluster, or c itself if ref is nil.
func (c *Chooser) At(ref *corev1alpha1.TargetReference) *Chooser {
	if ref == nil {
		return c
	}
	// The offers are shared, but the platform is another cluster's.
	remote := *c
	remote.target, remote.platform, remote.looked = ref, nil, false
	return &remote
}

// Chosen is one of the offered versions, or the reason why none is chosen.
type Chosen struct {
	Name    string
	Display *corev1alpha1.PackageDisplay
	Offered []offers.Offered
	versions.Choice
	// Kept is the reason why no version can be chosen, so that the installed one stays; nil otherwise.
	Kept error
}

// Version is nil if none was chosen.
func (c *Chosen) Version() *offers.Offered {
	if c.Index < 0 {
		return nil
	}
	return &c.Offered[c.Index]
}

// Why returns the reason why each offered version is not chosen. It is empty for the chosen
// version, and for versions that can be chosen.
func (c *Chosen) Why() map[string]string {
	why := map[string]string{}
	for _, considered := range c.Considered {
		why[considered.Version] = considered.Why
	}
	return why
}

// RequestFor returns the manager's request for a package that follows a reference to a package of a
// name. old is the installed package; nil for a new one.
func (c *Chooser) RequestFor(ctx context.Context, old corev1alpha1.GenericPackage, ref *corev1alpha1.PackageReference, name string) versions.Request {
	request := offers.RequestOf(following(old, ref), name, versions.Platform{})
	// The manager lets a package that never worked go back to a lower version.
	if old != nil && !request.AllowDowngrade {
		request.AllowDowngrade = !meta.IsStatusConditionTrue(*old.StatusConditions(), corev1alpha1.ConditionAvailable) && !c.wasAvailable(ctx, snapshot.InstanceOf(old))
	}
	return request
}

// wasAvailable reports whether a revision of a package was available at any time, or might have
// been.
func (c *Chooser) wasAvailable(ctx context.Context, i resolver.Instance) bool {
	sets := corev1alpha1.ScopeOf(i.Namespace).NewObjectSetList()
	err := c.Cluster.List(ctx, sets, client.InNamespace(i.Namespace), client.MatchingLabels{corev1alpha1.PackageInstanceLabel: i.Name})
	// An error counts as available, because a downgrade could then lose data.
	return err != nil || slices.ContainsFunc(sets.GenericObjectSets(), func(set corev1alpha1.GenericObjectSet) bool {
		return meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded)
	})
}

// Choose chooses among the offered versions of a package.
func (c *Chooser) Choose(ctx context.Context, name string, request versions.Request) (*Chosen, error) {
	offered, display, err := c.Of(ctx, name)
	if err != nil {
		return nil, err
	}

	found := &Chosen{Name: name, Display: display, Offered: offered}
	candidates := make([]versions.Candidate, len(offered))
	for i, o := range offered {
		candidates[i] = o.Candidate()
		if len(o.Version.Constraints) > 0 && c.Platform(ctx) == nil {
			candidates[i].Constraints = nil // the manager checks them
		}
	}

	if c.platform != nil {
		request.Platform = *c.platform
	}
	request.Scope = corev1alpha1.ScopeOf(c.Namespace)
	found.Choice = versions.Select(candidates, request)
	return found, nil
}

// NameFor returns the name of the package that a reference leads to. The manager chooses a package
// by its API, so old, the installed package, has its name.
func NameFor(old corev1alpha1.GenericPackage, ref *corev1alpha1.PackageReference) (string, error) {
	if ref.API == nil {
		return ref.Name, nil
	}
	provider := offers.ProviderOf(following(old, ref), nil, nil)
	if provider.Name == "" {
		return "", fmt.Errorf("no package was chosen for %s yet. See: kubectl package status %s", provider.API, progress.TargetOf(old).Flags())
	}
	return provider.Name, nil
}

// Kept returns the installed version of a package, if it stays even if no version can be chosen: as
// the manager keeps it, for a reference that is the package's own or names this version. old can be
// nil.
func Kept(old corev1alpha1.GenericPackage, ref *corev1alpha1.PackageReference, request versions.Request) *offers.Offered {
	if old == nil || !equality.Semantic.DeepEqual(old.PackageSpec().PackageRef, ref) && ref.Version != request.Installed {
		return nil
	}
	return offers.Kept(old, request)
}

// MustChoose is Choose with kept, or else an error, if no version can be chosen. The error names the
// versions and the reasons.
func (c *Chooser) MustChoose(ctx context.Context, name string, request versions.Request, kept *offers.Offered) (*Chosen, error) {
	found, err := c.Choose(ctx, name, request)
	if err != nil || found.Index >= 0 {
		return found, err
	}

	if err = noVersion(found, request.Selection, c.flag()); len(found.Offered) == 0 {
		err = c.Unknown(ctx, name)
	}
	if kept == nil {
		return nil, err
	}
	found.Offered, found.Index, found.Kept = []offers.Offered{*kept}, 0, err
	return found, nil
}

// flag is the scope flag of the chooser's namespace.
func (c *Chooser) flag() string { return progress.ScopeFlag(c.Namespace) }

// Unknown is the error for a package that is not offered. It names the most similar packages.
func (c *Chooser) Unknown(ctx context.Context, name string) error {
	where := "to the cluster"
	if c.Namespace != "" {
		where = "in namespace " + c.Namespace
	}

	names, err := c.Names(ctx)
	if err != nil {
		return err
	}

	if len(names) == 0 {
		return fmt.Errorf("no repository offers %s %s: no package is offered at all. %s", name, where, c.NothingOffered())
	}
	advice := violation.Suggest(name, names, "")
	return fmt.Errorf("no repository offers %s %s. %sSee: kubectl package available%s", name, where, advice+map[bool]string{true: " "}[advice != ""], c.flag())
}

// noVersion is the error if no version fits. It lists each version with the reason, highest first.
func noVersion(found *Chosen, selection corev1alpha1.VersionSelection, flag string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no version of %s can be installed", found.Name)
	if selection.Version != "" {
		fmt.Fprintf(&b, " with %q", selection.Version)
	}

	why, prereleases := found.Why(), false
	for i, v := range NewestFirst(found.Offered) {
		if i == limits.VersionsNamed {
			fmt.Fprintf(&b, "\n  … and %d more", len(found.Offered)-i)
			break
		}

		reason := cmp.Or(why[v.Version.Version], "not chosen")
		fmt.Fprintf(&b, "\n  %s  %s", v.Version.Version, reason)
		prereleases = prereleases || strings.Contains(reason, "prerelease")
	}

	switch {
	case found.Reason == corev1alpha1.ReasonDowngradeRefused:
		b.WriteString("\nTo downgrade, add --allow-downgrade to kubectl package upgrade")
	case prereleases && selection.Prereleases == nil:
		b.WriteString("\nTo include prereleases: --prereleases")
	}

	fmt.Fprintf(&b, "\nSee: kubectl package available %s%s", found.Name, flag)
	return errors.New(b.String())
}

// NewestFirst orders versions from the highest to the lowest.
func NewestFirst(offered []offers.Offered) []offers.Offered {
	sorted := slices.Clone(offered)
	slices.SortStableFunc(sorted, func(a, b offers.Offered) int { return CompareVersions(b.Version.Version, a.Version.Version) })
	return sorted
}

// CompareVersions orders versions. Invalid versions are ordered as text.
func CompareVersions(a, b string) int {
	v, errA := versions.Parse(a)
	w, errB := versions.Parse(b)
	if errA != nil || errB != nil {
		return cmp.Compare(a, b)
	}
	return versions.Compare(v, w)
}

// Newest is the highest release that can be installed, or else the highest version. The version is
// nil if none is offered.
func (c *Chooser) Newest(ctx context.Context, name string) (*Chosen, *offers.Offered, error) {
	found, err := c.Choose(ctx, name, versions.Request{})
	if err != nil || len(found.Offered) == 0 {
		return found, nil, err
	}
	if v := found.Version(); v != nil {
		return found, v, nil
	}
	return found, &NewestFirst(found.Offered)[0], nil
}

// NothingOffered is the remedy if no repository offers a package.
func (c *Chooser) NothingOffered() string {
	return "Add a repository: kubectl package repo add NAME IMAGE" + c.flag() + "; or see the problems of the existing ones: kubectl package repo get -A"
}

// look reads the versions of the cluster that holds the objects; nil if the user may not.
func (c *Chooser) look(ctx context.Context) *versions.Platform {
	at := c.There
	if at == nil {
		var err error
		if at, err = c.Cluster.At(ctx, c.Namespace, c.target); err != nil {
			// An unreadable cluster is not an error: the manager, which has its own rights, checks
			// the constraints.
			return nil
		}
	}

	reader, err := at.AnyKind()
	if err != nil {
		return nil
	}
	env, err := EnvironmentOf(ctx, at, reader.RESTMapper(), c.target.NamespaceOf(c.Namespace))
	if err != nil {
		return nil
	}

	found := versions.PlatformOf(*env, "") // of any version of the manager
	return &found
}

// Platform describes the cluster that versions would run on; nil if the user may not read it.
func (c *Chooser) Platform(ctx context.Context) *versions.Platform {
	if !c.looked {
		c.platform, c.looked = c.look(ctx), true
	}
	return c.platform
}

// EnvironmentOf returns the environment that the packages of a namespace see of a cluster.
func EnvironmentOf(ctx context.Context, cl *cluster.Cluster, mapper meta.RESTMapper, namespace string) (*manifestsv1alpha1.PackageEnvironment, error) {
	versions, err := discovery.NewDiscoveryClientForConfig(cl.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	info, err := versions.ServerVersion()
	if err != nil {
		return nil, cl.Explain("cannot read the cluster's version", err)
	}

	reader, err := dynamic.NewForConfig(cl.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the environment: %w", err)
	}

	seen, err := environment.Look(ctx, info.GitVersion,
		func(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
			// RESTMapping would look for a version with an empty name.
			return mapper.RESTMapping(gk, slices.DeleteFunc([]string{version}, func(v string) bool { return v == "" })...)
		},
		func(ctx context.Context, s livestate.Selection) ([]metav1.Object, error) {
			opts := metav1.ListOptions{}
			if s.Name != "" {
				opts = metav1.SingleObject(metav1.ObjectMeta{Name: s.Name})
			}
			list, err := reader.Resource(s.Resource).Namespace(s.Namespace).List(ctx, opts)
			if err != nil {
				return nil, err
			}

			all := make([]metav1.Object, len(list.Items))
			for i := range list.Items {
				all[i] = &list.Items[i]
			}
			return all, nil
		})
	if err != nil {
		return nil, cl.Explain("cannot examine the cluster", err)
	}

	env, _, err := seen.For(namespace)
	return &env, err
}
