package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
)

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

// chooseByNeeds takes the highest version whose dependencies can be satisfied, where
// there are several that fit. The installed version stays where there is none.
func (s *reconciliation) chooseByNeeds(ctx context.Context) error {
	all, installed := s.choice.candidates, s.pkg.PackageStatus().Resolved
	s.state.awaited = nil
	switch {
	case len(all) < 2 || len(all[0].Version.Dependencies) == 0 || remote(s.pkg):
		return nil
	case installed != nil && installed.Version == all[0].Version.Version:
		return nil // it is there already
	}
	k, apis := s.survey(ctx, s.pkg.GetNamespace()), &schemas{read: s.servedAPI()}
	root := dependencies.RootOf(s.pkg, nil)
	if root.Versions = dependencies.VersionsOf(s.pkg, all); root.UserManaged {
		return nil
	}
	s.attend(keyOf(s.pkg))
	var own, alone resolver.Result
	var awaited []string
	err := s.withInput(ctx, root, k, apis.served, func(in dependencies.Input) (err error) {
		own, alone, awaited, err = dependencies.DecideVersion(in)
		return err
	})
	if err != nil {
		s.await(keyOf(s.pkg), nil)
		return err
	}
	s.state.awaited = awaited
	s.await(keyOf(s.pkg), awaited)
	at := slices.IndexFunc(all, func(o offers.Offered) bool { return o.Version.Version == own.Version })
	if own.Failed() {
		at = slices.IndexFunc(all, func(o offers.Offered) bool { return installed != nil && o.Version.Version == installed.Version })
	}
	if at <= 0 {
		return nil
	}
	s.choice.origin = originOf(s.choice.provider.Name, all[at])
	why := resolver.PassedOver(all[at].Version.Version, all[0].Version.Version, alone)
	s.choice.message = conditions.Cut(s.choice.provider.Describe(why), limits.MessageBytes)
	return nil
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
	reportChoice(s.pkg.PackageStatus(), s.pkg, s.choice)
	if err := statuswriter.Write(ctx, s.Client, s.pkg); err != nil {
		return fmt.Errorf("record the version that was chosen: %w", err)
	}
	s.Fresh.Put(s.pkg)
	return nil
}
