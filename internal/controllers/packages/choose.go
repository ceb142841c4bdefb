package packages

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/resolver"
)

// choose determines the content to load. It reads only caches. A new choice is recorded in the
// status before it is used.
func (s *reconciliation) choose(ctx context.Context) error {
	spec := s.pkg.PackageSpec()
	switch {
	case spec.PackageRef == nil:
		s.choice = choice.Choice{Origin: choice.Origin{Image: spec.Image}}
		return nil
	case spec.Paused || s.waiting || s.inputError != "":
		s.choice = choice.Choice{Origin: choice.Installed(s.pkg)}
		return nil
	}

	if spec.Interval != nil {
		s.Requeue(s.loads.Spread(s.Pace.Of(max(spec.Interval.Duration, limits.TagIntervalMin))))
	}

	var err error
	if s.choice, err = s.catalogue.Choose(ctx, s.pkg, versions.PlatformOf(s.environment, s.Version)); err != nil {
		return err
	}
	if err := s.chooseByNeeds(ctx); err != nil {
		return err
	}
	if err := s.recordAttempt(ctx); err != nil {
		return err
	}

	return s.endDowngrade(ctx)
}

// chooseByNeeds takes the highest version whose dependencies can be satisfied, if several fit. If
// there is none, the installed version stays.
func (s *reconciliation) chooseByNeeds(ctx context.Context) error {
	all, installed := s.choice.Candidates, s.pkg.PackageStatus().Resolved
	s.state.chosenBy = nil
	switch {
	case len(all) < 2 || len(all[0].Version.Dependencies) == 0 || remote(s.pkg):
		return nil
	case installed != nil && installed.Version == all[0].Version.Version:
		return nil // it is there already
	}

	k, err := s.ledger.Survey(ctx, s.pkg.GetNamespace())
	if err != nil {
		return err
	}

	served := dependencies.Once(s.servedAPI())
	root := dependencies.RootOf(s.pkg, nil)
	if root.Versions = dependencies.VersionsOf(s.pkg, all); root.UserManaged {
		return nil
	}

	s.ledger.Open(keyOf(s.pkg))
	var own, alone resolver.Result
	err = s.withInput(ctx, root, k, served, func(in dependencies.Input) (err error) {
		own, alone, s.state.chosenBy, err = dependencies.DecideVersion(in)
		return err
	})

	s.ledger.Note(keyOf(s.pkg), s.state.chosenBy)
	if err != nil {
		return err
	}

	at := slices.IndexFunc(all, func(o offers.Offered) bool { return o.Version.Version == own.Version })
	if own.Failed() {
		at = slices.IndexFunc(all, func(o offers.Offered) bool { return installed != nil && o.Version.Version == installed.Version })
	}
	if at <= 0 {
		return nil
	}

	s.choice.Origin = choice.OriginOf(s.choice.Provider.Name, all[at])
	why := resolver.PassedOver(all[at].Version.Version, all[0].Version.Version, alone)
	s.choice.Message = conditions.Cut(s.choice.Provider.Describe(why), limits.MessageBytes)
	return nil
}

// endDowngrade removes the annotation that allowed one downgrade, once a version is chosen and
// recorded.
func (s *reconciliation) endDowngrade(ctx context.Context) error {
	if _, found := s.pkg.GetAnnotations()[corev1alpha1.DowngradeFromAnnotation]; !found || !s.choice.Chosen() {
		return nil
	}
	err := s.Fresh.Change(ctx, s.Client, s.pkg, func() { objectsets.Annotate(s.pkg, corev1alpha1.DowngradeFromAnnotation, "") })
	if err != nil {
		return fmt.Errorf("take off the annotation %s: %w", corev1alpha1.DowngradeFromAnnotation, err)
	}
	return nil
}

// recordAttempt writes status.lastAttempted, with the condition Resolved.
func (s *reconciliation) recordAttempt(ctx context.Context) error {
	if !s.choice.Chosen() {
		return nil
	}

	from := s.choice.Origin
	attempted := corev1alpha1.AttemptedVersion{PackageName: from.PackageName, API: s.pkg.PackageSpec().PackageRef.API.DeepCopy(), Version: from.Version, Image: from.Image}
	if last := s.pkg.PackageStatus().LastAttempted; equality.Semantic.DeepEqual(last, &attempted) {
		return nil
	}

	s.pkg.PackageStatus().LastAttempted = &attempted
	choice.Report(s.pkg.PackageStatus(), s.pkg, s.choice)
	if err := statuswriter.Write(ctx, s.Client, s.pkg); err != nil {
		return fmt.Errorf("record the version that was chosen: %w", err)
	}

	s.Fresh.Put(s.pkg)
	return nil
}
