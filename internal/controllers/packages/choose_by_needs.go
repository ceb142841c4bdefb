package packages

import (
	"context"
	"slices"

	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
)

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
