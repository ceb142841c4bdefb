package versions

import (
	"cmp"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// Candidate is a version that is offered.
type Candidate struct {
	// Version is a semantic version. Invalid versions are never chosen.
	Version string
	// Retracted is why the version is not for new installations; empty if it is.
	Retracted string
	// Constraints are requirements on the platform. All have to be met.
	Constraints []corev1alpha1.AvailableConstraint
	// NotInstallable is the full reason why the version can never be installed; empty if it can be.
	NotInstallable string
	// Scopes are the scopes that the version can be installed in; empty means all.
	Scopes []corev1alpha1.Scope
	// Provides are APIs that the version brings.
	Provides []corev1alpha1.ProvidedAPI
}

// Platform is the platform that the versions have to run on.
type Platform struct {
	// Kubernetes is the version of the API server.
	Kubernetes string
	// OpenShift is its version. It is empty on other clusters, and constraints on it do not apply
	// there.
	OpenShift string
	// Manager is the version of the manager. It is empty for a build without a version, which meets
	// every constraint.
	Manager string
}

// PlatformOf returns the platform of an environment, for a version of the manager.
func PlatformOf(env manifestsv1alpha1.PackageEnvironment, manager string) Platform {
	p := Platform{Kubernetes: env.Kubernetes.Version, Manager: manager}
	if env.OpenShift != nil {
		p.OpenShift = env.OpenShift.Version
	}
	return p
}

// Request is the input for choosing a version.
type Request struct {
	Selection corev1alpha1.VersionSelection
	// Scope is the scope of the installation, which the version must support; empty for any.
	Scope corev1alpha1.Scope
	// API must be provided by the version; nil if there is no such requirement.
	API *corev1alpha1.ProvidedAPI
	// Installed and LastAttempted are the versions that are installed and that were chosen last;
	// each can be empty.
	Installed, LastAttempted string
	// AllowDowngrade allows versions below LastAttempted or, if that is empty, below Installed.
	AllowDowngrade bool
	Platform       Platform
	// Ignored can contain FilterKubernetes, FilterOpenShift and FilterManager, to ignore their
	// version constraints.
	Ignored []Filter
}

// Choice is the version that was chosen, or the reason why none was.
type Choice struct {
	// Index is the index of the chosen candidate, or -1.
	Index int
	// Highest is the index of the highest candidate that fits, whether it was chosen or refused as
	// a downgrade; -1 if no candidate fits.
	Highest int
	// Reason is the reason of the condition Resolved.
	Reason string
	// Message explains the choice in one line.
	Message string
	// Considered are all candidates in their order; empty if the request is invalid.
	Considered []Considered
	// Remaining counts the candidates after each filter that took part.
	Remaining []Remaining
}

// Considered is a candidate with the reason why it was not chosen.
type Considered struct {
	Index   int
	Version string
	// Why is empty if the version fits. The highest of these is chosen.
	Why string
}

// Remaining is a filter with the number of candidates that passed it and all filters before it.
type Remaining struct {
	Filter Filter
	Left   int
}

// Select chooses the highest candidate that fits the request. The choice does not depend on the
// order of the candidates.
func Select(candidates []Candidate, r Request) Choice {
	return selectFrom(candidates, r, "version", "spec.packageRef")
}

// selectFrom is Select with a noun for candidates and the path of the selection's field in
// messages.
func selectFrom(candidates []Candidate, r Request, noun, field string) Choice {
	constraint, err := ParseConstraint(r.Selection.Version)
	if err != nil {
		return Choice{Index: -1, Highest: -1, Reason: corev1alpha1.ReasonVersionInvalid, Message: err.Error()}
	}
	if len(candidates) == 0 {
		return Choice{Index: -1, Highest: -1, Reason: corev1alpha1.ReasonUnknownPackage, Message: "no repository offers a version of the package"}
	}

	s := newSelection(candidates, constraint, r)
	s.noun, s.field = noun, field
	s.consider()
	choice := Choice{Index: -1, Highest: s.highest(), Considered: s.considered, Remaining: s.remaining()}
	switch {
	case choice.Highest < 0:
		choice.Reason, choice.Message = corev1alpha1.ReasonNoMatchingVersion, s.explainNone(choice.Remaining)
	case !r.AllowDowngrade && s.lastParsed != nil && Compare(s.parsed[choice.Highest], s.lastParsed) < 0:
		choice.Reason, choice.Message = corev1alpha1.ReasonDowngradeRefused, s.explainDowngrade(choice.Highest)
		choice.Considered[choice.Highest].Why = "is lower than " + s.last + ", which was chosen before"
	default:
		choice.Index, choice.Reason, choice.Message = choice.Highest, corev1alpha1.ReasonResolved, s.explainChosen(choice.Highest)
	}

	return choice
}

// selection is the state of one Select.
type selection struct {
	request    Request
	noun       string
	field      string // the path of the selection's field
	constraint *Constraint
	filters    []filter
	candidates []Candidate
	parsed     []*semver.Version // nil for invalid text
	stage      []int             // the filter that rejected the candidate, or the number of filters
	considered []Considered
	// last is the version below which a choice is a downgrade.
	last       string
	lastParsed *semver.Version
}

// newSelection prepares a selection; considered is filled in by consider.
func newSelection(candidates []Candidate, constraint *Constraint, r Request) *selection {
	s := &selection{
		request: r, constraint: constraint, candidates: candidates,
		parsed: make([]*semver.Version, len(candidates)), stage: make([]int, len(candidates)),
		considered: make([]Considered, len(candidates)), last: cmp.Or(r.LastAttempted, r.Installed),
	}
	if v, err := Parse(s.last); err == nil {
		s.lastParsed = v
	}
	s.filters = s.pipeline()
	return s
}

// consider runs every candidate through the filters.
func (s *selection) consider() {
	for i, c := range s.candidates {
		s.considered[i] = Considered{Index: i, Version: c.Version}
		s.parsed[i], _ = Parse(c.Version)
		for s.stage[i] = 0; s.stage[i] < len(s.filters); s.stage[i]++ {
			if why := s.filters[s.stage[i]].why(i); why != "" {
				s.considered[i].Why = why
				break
			}
		}
	}
}

// remaining counts the candidates after each filter, for the status and for messages.
func (s *selection) remaining() []Remaining {
	rejected := make([]int, len(s.filters)+1)
	for _, stage := range s.stage {
		rejected[stage]++
	}
	left, out := len(s.candidates), []Remaining{}
	for i, f := range s.filters {
		left -= rejected[i]
		if f.takesPart || rejected[i] > 0 {
			out = append(out, Remaining{Filter: f.name, Left: left})
		}
	}
	return out
}

// highest returns the index of the highest version that fits, or -1.
func (s *selection) highest() int {
	best := -1
	for i := range s.candidates {
		if s.considered[i].Why == "" && (best < 0 || s.compare(i, best) > 0) {
			best = i
		}
	}
	return best
}

// compare orders candidates; invalid versions are the lowest. It also orders different texts of one
// version, such as 1.0.0 and v1.0.0, so that the order of the candidates does not matter.
func (s *selection) compare(i, j int) int {
	a, b := s.parsed[i], s.parsed[j]
	if a == nil || b == nil {
		return cmp.Or(boolean(a != nil)-boolean(b != nil), cmp.Compare(s.candidates[i].Version, s.candidates[j].Version))
	}
	return cmp.Or(Compare(a, b), cmp.Compare(s.candidates[i].Version, s.candidates[j].Version))
}

// boolean returns 1 for true, for comparisons.
func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
