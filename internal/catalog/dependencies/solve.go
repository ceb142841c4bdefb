package dependencies

import (
	"cmp"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
)

// Solve resolves the requirements of the root.
func Solve(in Input) Plan {
	s := newSearch(in)
	solution := s.solve(&state{}, s.first(in.Dependencies))
	if solution == nil {
		return s.unsatisfied()
	}
	plan := Plan{Steps: solution.steps(), Outcomes: s.outcomesOf(solution)}
	if !plan.Ready() || slices.ContainsFunc(plan.Outcomes, func(o Outcome) bool { return !o.Satisfied }) {
		plan.Awaited = s.awaitedNames()
	}
	return plan
}

// need is a requirement that is to be satisfied.
type need struct {
	Need
	// top is the requirement of the root that leads to it, and path are the packages in between, the root first.
	top  string
	path []hop
	// private means that the dependent has another requirement of the same package.
	private bool
}

type hop struct {
	Instance
	name string
}

// planned is an instance that is created or changed.
type planned struct {
	Instance
	create        bool
	name, version string
	offer         *Offer
}

// link is a requirement with what satisfies it, or why nothing does where it is optional.
type link struct {
	need
	outcome Outcome
}

// state is a partial solution. It is never changed: each option has a state of its own.
type state struct {
	planned []planned
	links   []link
}

func (st *state) with(p *planned, l link) *state {
	next := &state{planned: st.planned, links: append(slices.Clip(st.links), l)}
	if p != nil {
		next.planned = append(slices.Clip(st.planned), *p)
	}
	return next
}

func (st *state) find(i Instance) *planned {
	for k := range st.planned {
		if st.planned[k].Instance == i {
			return &st.planned[k]
		}
	}
	return nil
}

// option is one way to satisfy a need.
type option struct {
	planned *planned
	outcome Outcome
}

type search struct {
	Input
	byName    map[Instance]*Installed
	privates  map[Instance]bool
	awaited   map[string]bool
	failure   *link // the first one
	steps     int
	exhausted bool
	fitting   map[string]fitting
}

func newSearch(in Input) *search {
	s := &search{Input: in, byName: map[Instance]*Installed{}, privates: map[Instance]bool{}, awaited: map[string]bool{}, fitting: map[string]fitting{}}
	for i := range in.Installed {
		s.byName[in.Installed[i].Instance] = &in.Installed[i]
	}
	for i := range in.Installed {
		for _, instance := range privatesOf(in.Installed[i].Requirements) {
			s.privates[instance] = true
		}
	}
	return s
}

// privatesOf returns what satisfies requirements of a package that are several of one dependent.
func privatesOf(requirements []Requirement) []Instance {
	var found []Instance
	count := map[string]int{}
	for _, r := range requirements {
		if r.Package != nil {
			count[r.Package.Name]++
		}
	}
	for _, r := range requirements {
		if r.Package != nil && count[r.Package.Name] > 1 && r.Satisfier != nil {
			found = append(found, *r.Satisfier)
		}
	}
	return found
}

// first returns the needs of the root.
func (s *search) first(all []corev1alpha1.Dependency) []need {
	return needsOf(s.Root, "", []hop{{s.Root, s.Package}}, all)
}

func needsOf(dependent Instance, top string, path []hop, all []corev1alpha1.Dependency) []need {
	count := map[string]int{}
	for i := range all {
		count[nameOf(&all[i])]++
	}
	needs := make([]need, len(all))
	for i := range all {
		name := nameOf(&all[i])
		needs[i] = need{Need{dependent, all[i]}, cmp.Or(top, all[i].Name), path, name != "" && count[name] > 1}
	}
	return needs
}

// nameOf returns the name of the package that a dependency requires; empty for one on an API.
func nameOf(d *corev1alpha1.Dependency) string {
	if d.Package == nil {
		return ""
	}
	return d.Package.Name
}

func rangeOf(d *corev1alpha1.Dependency) corev1alpha1.VersionSelection {
	if d.Package == nil {
		return corev1alpha1.VersionSelection{}
	}
	return d.Package.VersionSelection
}

// solve satisfies the pending needs one after the other; nil where that is not possible.
func (s *search) solve(st *state, pending []need) *state {
	if len(pending) == 0 {
		return st
	}
	if s.steps++; s.steps > limits.DependencySteps {
		s.exhausted = true
		return nil
	}
	n, rest := pending[0], pending[1:]
	options, refused := s.options(st, n)
	for _, o := range options {
		more := rest
		if o.planned != nil {
			path := append(slices.Clip(n.path), hop{o.planned.Instance, o.planned.name})
			more = append(slices.Clip(rest), needsOf(o.planned.Instance, n.top, path, o.planned.offer.Dependencies)...)
		}
		if solved := s.solve(st.with(o.planned, link{n, o.outcome}), more); solved != nil || s.exhausted {
			return solved
		}
	}
	if len(options) == 0 && s.failure == nil {
		s.failure = &link{n, refused}
	}
	if !n.Dependency.Optional {
		return nil
	}
	if len(options) > 0 && s.failure != nil {
		refused = s.failure.outcome
		refused.Dependency = n.Dependency
	}
	s.failure = nil
	return s.solve(st.with(nil, link{n, refused}), rest)
}

// outcomesOf returns what became of the requirements of the root.
func (s *search) outcomesOf(st *state) []Outcome {
	all := make([]Outcome, 0, len(s.Dependencies))
	for _, l := range st.links {
		if l.Dependent == s.Root && len(l.path) == 1 {
			all = append(all, l.outcome)
		}
	}
	return all
}

// unsatisfied returns the plan of a root that cannot be satisfied: each requirement by itself.
func (s *search) unsatisfied() Plan {
	together, exhausted := s.failure, s.exhausted
	plan := Plan{}
	for _, n := range s.first(s.Dependencies) {
		s.failure, s.steps, s.exhausted = nil, 0, false
		alone := s.solve(&state{}, []need{n})
		outcome := Outcome{Dependency: n.Dependency}
		switch {
		case alone != nil && len(alone.planned) == 0:
			outcome = alone.links[0].outcome
		case alone != nil:
			outcome.Reason, outcome.Message = corev1alpha1.ReasonNotAvailable, "It can be installed, and is not while another dependency cannot be satisfied."
		case s.exhausted:
			outcome.Reason, outcome.Message = corev1alpha1.ReasonResolutionLimit, tooLong()
		default:
			outcome.Reason, outcome.Message = s.failure.outcome.Reason, s.failure.explained()
		}
		if alone == nil && plan.Failed == nil && !n.Dependency.Optional {
			plan.Failed = &Failure{outcome.Reason, n.Dependency.Name + ": " + outcome.Message}
		}
		plan.Outcomes = append(plan.Outcomes, outcome)
	}
	switch {
	case exhausted:
		plan.Failed = &Failure{corev1alpha1.ReasonResolutionLimit, tooLong()}
	case plan.Failed == nil && together != nil:
		plan.Failed = &Failure{together.outcome.Reason, together.top + ": " + together.explained()}
		s.blame(plan.Outcomes, together)
	case plan.Failed == nil:
		plan.Failed = &Failure{corev1alpha1.ReasonVersionMismatch, "The dependencies cannot be satisfied together."}
	}
	plan.Awaited = s.awaitedNames()
	return plan
}

// blame gives the requirement of the root that led to a failure its reason.
func (s *search) blame(outcomes []Outcome, failed *link) {
	for i := range outcomes {
		if outcomes[i].Dependency.Name == failed.top {
			outcomes[i] = Outcome{Dependency: outcomes[i].Dependency, Reason: failed.outcome.Reason, Message: failed.explained()}
		}
	}
}

// steps returns what is planned, dependencies first.
func (st *state) steps() []Step {
	var steps []Step
	done := map[Instance]bool{}
	var visit func(i Instance)
	visit = func(i Instance) {
		p := st.find(i)
		if p == nil || done[i] {
			return
		}
		done[i] = true
		for _, l := range st.links {
			if l.Dependent == i && l.outcome.Satisfier != nil {
				visit(*l.outcome.Satisfier)
			}
		}
		step := Step{Instance: i, Create: p.create, Package: p.name, Version: p.version}
		for _, l := range st.links {
			if l.outcome.Satisfier != nil && *l.outcome.Satisfier == i {
				step.Needs = append(step.Needs, l.Need)
			}
		}
		steps = append(steps, step)
	}
	for i := range st.planned {
		visit(st.planned[i].Instance)
	}
	return steps
}

func matches(selection corev1alpha1.VersionSelection, version string) bool {
	constraint, err := versions.ParseConstraint(selection.Version)
	return err == nil && (constraint.String() == "" && version == "" || constraint.Matches(version, selection.Prereleases))
}
