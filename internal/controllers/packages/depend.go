package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// depend resolves the dependencies of the package, and installs or changes them. The loaded content
// is deployed only when all of them are available, and recorded in the status.
func (s *reconciliation) depend(ctx context.Context) (step, string, error) {
	required, known := s.requirements()
	if !known || len(required) == 0 && len(s.pkg.PackageStatus().Dependencies) == 0 {
		if known {
			s.ledger.Note(keyOf(s.pkg), s.state.chosenBy)
		}
		return s.step, s.why, nil
	}

	undeployed := s.step == stepDeploy && s.attempt.Out.Deployed.IsZero()
	end, ok := s.itsTurn(ctx, undeployed && len(required) > 0)
	if !ok {
		if s.step == stepDeploy {
			return stepGather, "", nil // also once it is deployed: the status must record the loaded content before that is dropped
		}
		return s.step, s.why, nil
	}

	defer end()
	committed, err := s.resolveDependencies(ctx, required)
	if err != nil {
		return s.step, "", err
	}

	defer committed.Done()
	d := s.required
	if d.Err = s.perform(ctx, d, committed.Now); queueing.Raced(d.Err) {
		return s.step, "", d.Err
	}

	switch {
	case undeployed && (d.Err != nil || !d.Result.Ready):
		s.writeErr = d.Err
		return stepDepend, "", nil
	case s.step == stepSync && d.Err == nil && observed(s.view) && deploymentState(s.dep).Ready:
		return s.step, s.why, s.drop(ctx)
	case undeployed && !dependencies.SameRecords(s.pkg.PackageStatus().Dependencies, d.Entries):
		return s.step, s.why, s.record(ctx)
	}

	return s.step, s.why, nil
}

// record writes the dependencies of the Package into its status before it is deployed: from then on
// it holds them.
func (s *reconciliation) record(ctx context.Context) error {
	s.required.Report(s.pkg.PackageStatus(), s.pkg.GetGeneration())
	if err := statuswriter.Write(ctx, s.Client, s.pkg); err != nil {
		return fmt.Errorf("record the dependencies: %w", err)
	}
	s.Fresh.Put(s.pkg)
	return nil
}

// resolveDependencies makes the plan for the requirements, without a lock, and repeats it if the
// Packages changed meanwhile.
func (s *reconciliation) resolveDependencies(ctx context.Context, required []corev1alpha1.Dependency) (c dependencies.Committed, err error) {
	root, served := dependencies.RootOf(s.pkg, required), dependencies.Once(s.servedAPI())
	if s.step == stepDeploy {
		loaded := s.attempt.Out.Content.Resolved
		root.Package, root.Version, root.Unique = loaded.CatalogName, loaded.Version, loaded.UniqueInScope
	}

	s.ledger.Open(keyOf(s.pkg))
	was, err := s.ledger.Survey(ctx, s.pkg.GetNamespace())
	for attempt := 1; ; attempt++ {
		var plan *dependencies.Plan
		if err == nil {
			err = s.withInput(ctx, root, was, served, func(in dependencies.Input) (err error) {
				plan, err = dependencies.Decide(in)
				return err
			})
		}
		if err != nil {
			s.ledger.Note(keyOf(s.pkg), s.state.chosenBy)
			return c, err
		}
		s.ledger.Note(keyOf(s.pkg), slices.Concat(plan.Awaited, s.state.chosenBy))
		last := attempt == limits.ConflictAttempts
		switch c, err = s.ledger.Commit(ctx, snapshot.InstanceOf(s.pkg), plan, was, last); {
		case err != nil:
			return c, err
		case c.Done != nil:
			if c.Outdated {
				s.Requeue(limits.ConflictRetry)
			}
			s.required = plan
			return c, nil
		case last:
			return c, apierrors.NewConflict(corev1alpha1.GroupVersion.WithResource("packages").GroupResource(), s.pkg.GetName(), errOutdated)
		}
		was = c.Now
	}
}

// errOutdated means that the Packages that a resolution read have changed since.
var errOutdated = errors.New("a package that it depends on is being deleted")

// withInput calls decide with the input of a decision for the Package.
func (s *reconciliation) withInput(
	ctx context.Context, root resolver.Root, k dependencies.Known, served resolver.Served, decide func(dependencies.Input) error,
) error {
	offers, namespace := s.catalogue.In(ctx), s.pkg.GetNamespace()
	release, err := s.computing.Acquire(ctx, namespace, 1)
	if err != nil {
		return err
	}

	defer func() { release() }()
	err = decide(dependencies.Input{
		Package: s.pkg, Root: root, Known: k, Catalogue: offers,
		Served: func(api *corev1alpha1.DependencyAPI) (bool, []string) {
			release() // others compute while the API server answers
			defer func() {
				if release, err = s.computing.Acquire(ctx, namespace, 1); err != nil {
					release = func() {}
				}
			}()
			return served(api)
		},
		Platform:  versions.PlatformOf(s.environment, s.Version),
		TakesPart: s.takesPart,
		Versions: func(pkg corev1alpha1.GenericPackage) (known bool, all []resolver.RootVersion, err error) {
			return s.versionsOf(ctx, pkg)
		},
		WasAvailable: func(i resolver.Instance) bool { return s.wasAvailable(ctx, i) },
	})
	if err != nil {
		return err
	}

	return offers.Err
}

// versionsOf returns the versions that a Package with a packageRef can have, and whether its
// requirements are known without them, because they were recorded.
func (r *Reconciler) versionsOf(ctx context.Context, pkg corev1alpha1.GenericPackage) (known bool, all []resolver.RootVersion, err error) {
	known = meta.FindStatusCondition(pkg.PackageStatus().Conditions, corev1alpha1.ConditionDependenciesReady) != nil
	if pkg.PackageSpec().PackageRef == nil {
		return known, nil, nil
	}

	env, waiting, err := r.Environment.For(pkg.GetNamespace())
	if err != nil || waiting {
		return known, nil, nil // it is reconciled once that is known
	}

	candidates, err := r.catalogue.Candidates(ctx, pkg, versions.PlatformOf(env, r.Version))
	if err != nil {
		return false, nil, err
	}
	return known, dependencies.VersionsOf(pkg, candidates), nil
}

// wasAvailable reports whether a revision of a package was available at any time.
func (r *Reconciler) wasAvailable(ctx context.Context, i resolver.Instance) bool {
	list := corev1alpha1.ScopeOf(i.Namespace).NewObjectSetList()
	err := r.Client.List(ctx, list, client.InNamespace(i.Namespace), client.MatchingLabels{corev1alpha1.PackageInstanceLabel: i.Name}, client.UnsafeDisableDeepCopy)
	return err != nil || slices.ContainsFunc(list.GenericObjectSets(), func(set corev1alpha1.GenericObjectSet) bool {
		return meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded)
	})
}

// takesPart reports whether the dependencies of a Package of a user count for others before they
// are satisfied.
func (r *Reconciler) takesPart(pkg corev1alpha1.GenericPackage) bool {
	return dependencies.TakesPart(pkg) && r.Accounts.refusal(pkg) == ""
}

// requirements returns the dependencies of a Package; false while they are unknown, or must not be
// acted on.
func (v view) requirements() ([]corev1alpha1.Dependency, bool) {
	switch v.step {
	case stepDeploy:
		return snapshot.Overridden(v.attempt.Out.Content.Dependencies, v.pkg.PackageSpec().Dependencies), true
	case stepSync:
		return dependencies.Recorded(v.pkg.PackageStatus()), true
	}
	return nil, false
}

// itsTurn reports whether the dependencies of the Package can be resolved now; if so, the caller
// has to call end. A new Package first waits for others that are applied together with it, and then
// for its turn.
func (s *reconciliation) itsTurn(ctx context.Context, isNew bool) (end func(), ok bool) {
	if isNew && s.Wait(s.untilOthersAreKnown(ctx)) {
		return nil, false
	}
	return s.admit(s.resolutions)
}

// untilOthersAreKnown returns how long a user's new Package waits before its dependencies are
// resolved, so that Packages that are applied together are resolved together. It waits until no
// other Package of its scope is as new and their requirements are known. The wait is bounded.
func (s *reconciliation) untilOthersAreKnown(ctx context.Context) time.Duration {
	if dependencies.Generated(s.pkg) || remote(s.pkg) || s.pkg.PackageStatus().Resolved != nil || len(s.pkg.PackageStatus().Dependencies) > 0 {
		return 0
	}

	short, long := s.Pace.Of(limits.ResolutionPause), s.Pace.Of(limits.ResolutionPauseMax)
	left := s.since(s.pkg, short)
	others, err := latest{s.Reconciler}.In(ctx, s.pkg.GetNamespace())
	if err != nil {
		return 0 // the survey that follows returns it
	}

	for _, other := range others {
		if other.GetName() == s.pkg.GetName() || !s.takesPart(other) || other.PackageStatus().Resolved != nil {
			continue
		}
		left = max(left, s.since(other, short))
		if known, all, err := s.versionsOf(ctx, other); err == nil && !known && len(all) == 0 && other.PackageSpec().PackageRef == nil {
			left = max(left, short) // its image is being loaded
		}
	}

	return min(left, s.since(s.pkg, long))
}

// since returns the rest of a duration that started when this process first saw a Package.
func (r *Reconciler) since(pkg corev1alpha1.GenericPackage, d time.Duration) time.Duration {
	r.memory.Lock()
	defer r.memory.Unlock()
	st := r.memory.states[keyOf(pkg)]
	if st == nil || st.uid != pkg.GetUID() {
		return d
	}
	return max(st.seen.Add(d).Sub(r.Now()), 0)
}
