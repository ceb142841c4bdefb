package packages

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
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
