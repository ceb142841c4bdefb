package packages

import (
	"slices"
	"strings"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/sources"
)

// Environment tells what a package in a namespace is rendered for, or, where that
// is empty, a ClusterPackage. err is why that is not known; waiting means that it
// will be in a moment.
type Environment interface {
	For(namespace string) (env manifestsv1alpha1.PackageEnvironment, waiting bool, err error)
}

// inputs are what a package depends on beside its spec.
type inputs struct {
	// waiting means that something of it is not known yet and will be in a moment;
	// trouble is why it is not known for longer.
	waiting bool
	trouble string
	// moved is the digest that the tag stands for by now, where that is not the one
	// that is unpacked; lookup is why the tag could not be looked up last.
	moved, lookup string
	// around is what a failed attempt may have failed by; empty where none failed,
	// or while it is not known.
	around string
	// turn is how often the Package was given another try for what others did.
	turn int
}

// gatherInputs reads the environment and the versions of what the spec names, as
// watches tell them. Pull secrets are watched while they may be needed: after a
// pull that failed, and where the Package looks after its tag.
func (s *session) gatherInputs() error {
	env, waiting, err := s.environment.For(s.pkg.GetNamespace())
	s.input.Environment, s.waiting = env, waiting
	if err != nil && !waiting {
		s.trouble = "Waiting for what the cluster is: " + err.Error()
	}
	spec, namespace := s.pkg.PackageSpec(), s.input.Namespace
	refs, pulls := sources.Of(spec, namespace), sources.PullSecrets(spec, namespace)
	failed := s.attempt != nil && s.attempt.done && s.attempt.err != nil
	if !failed && spec.Interval == nil {
		pulls = nil
	}
	s.sources.Use(keyOf(s.pkg), sources.Union(refs, pulls))
	versions := s.versions(refs)
	s.turn = s.neighbours.turn(keyOf(s.pkg))
	if failed {
		s.around = s.surroundings(pulls)
	}
	s.fingerprint, err = fingerprintOf(s.pkg, env, versions, s.overrides)
	return err
}

// versions returns the versions of the sources by their names.
func (s *session) versions(refs []sources.Ref) map[string]string {
	versions := make(map[string]string, len(refs))
	for _, ref := range refs {
		state := s.sources.State(ref)
		switch {
		case state.Known:
			versions[ref.String()] = state.Version
		case state.Err != nil:
			s.trouble = "Cannot watch " + ref.String() + ": " + state.Err.Error()
		default:
			s.waiting = true
		}
	}
	return versions
}

// surroundings names what a failed attempt may have failed by: the versions of
// the pull secrets. A first look after the failure is what it is compared with.
func (s *session) surroundings(pulls []sources.Ref) string {
	parts := []string{"pull secrets"}
	for _, ref := range pulls {
		state := s.sources.State(ref)
		if !state.Known {
			return ""
		}
		parts = append(parts, ref.String()+"="+state.Version)
	}
	around := strings.Join(slices.Clip(parts), ";")
	if s.attempt.around == "" {
		s.attempt.around = around
		s.attempts.surround(s.pkg.GetUID(), around)
	}
	return around
}
