package resolver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// Solve resolves the requirements of the roots.
func Solve(in Input) Plan { return New(in).Solve(in.Roots) }

// Resolver resolves roots of one input, which it reads once. All of its work is counted as steps, over all that it is asked.
type Resolver struct {
	market *market
	limit  int
	// end is how many steps it takes in all: for roots of its own, and as many for what they are tried with.
	end int
}

// New returns a Resolver. Its limit is in.Steps, or else that of the roots: lower where one of them is in a namespace.
func New(in Input) *Resolver {
	limit := cmp.Or(in.Steps, limits.ResolutionSteps)
	if isNamespaced := func(r Root) bool { return r.Namespace != "" }; in.Steps == 0 && slices.ContainsFunc(in.Roots, isNamespaced) {
		limit = limits.ResolutionStepsNamespaced
	}
	return &Resolver{newMarket(&in), limit, 4 * limit}
}

// Solve resolves the requirements of some roots. A search takes as many steps as the limit, and the explanation of what has no
// solution as many again.
func (x *Resolver) Solve(roots []Root) Plan {
	spent := *x.market.spent
	r := &resolution{market: x.market, limit: x.limit, search: min(spent+x.limit, x.end), end: min(spent+2*x.limit, x.end)}
	var users []*Root
	for i := range roots {
		if root := &roots[i]; root.UserManaged {
			users = append(users, root)
		} else {
			r.roots = append(r.roots, root)
		}
	}
	byInstance := func(a, b *Root) int { return a.Instance.Compare(b.Instance) }
	slices.SortStableFunc(r.roots, byInstance)
	r.roots = slices.CompactFunc(r.roots, func(a, b *Root) bool { return a.Instance == b.Instance })
	var plan Plan
	s := r.solve()
	if s != nil {
		plan.Steps = s.plan()
		for _, root := range s.world.roots {
			plan.Results = append(plan.Results, s.result(root))
		}
	}
	plan.Results = append(plan.Results, r.failed...)
	for _, root := range users {
		plan.Results = append(plan.Results, r.judge(root))
	}
	slices.SortStableFunc(plan.Results, func(a, b Result) int { return a.Instance.Compare(b.Instance) })
	plan.Awaited = slices.Sorted(maps.Keys(r.awaited))
	return plan
}

// resolution is one call of Solve.
type resolution struct {
	*market
	roots []*Root
	limit int
	// The numbers of steps up to which a search for all roots, and all of it, may go on.
	search, end int
	failed      []Result
}

// solve returns a search with a solution for the roots that have one together.
func (r *resolution) solve() *search {
	s := newSearch(r.market, r.roots, nil, r.search)
	state, core := s.run()
	if state == solved {
		return s
	}
	if len(r.roots) == 1 {
		r.failed = append(r.failed, r.diagnose(nil, r.roots[0], s, state, core, r.end))
		return nil
	}
	order := slices.Clone(r.roots)
	slices.SortStableFunc(order, func(a, b *Root) int { return compareBool(r.isEstablished(b), r.isEstablished(a)) })
	var accepted []*Root
	var last *search
	for k, root := range order {
		until := *r.spent + (r.end-*r.spent)/(len(order)-k) // each has a share of what is left
		with := slices.SortedFunc(slices.Values(append(slices.Clone(accepted), root)), func(a, b *Root) int { return a.Instance.Compare(b.Instance) })
		s := newSearch(r.market, with, nil, until)
		state, core := s.run()
		if state == solved {
			accepted, last = with, s
			continue
		}
		r.failed = append(r.failed, r.diagnose(accepted, root, s, state, core, until))
	}
	return last
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// isEstablished reports whether what is installed satisfies all requirements of a root.
func (r *resolution) isEstablished(root *Root) bool {
	for _, o := range r.judge(root).Outcomes {
		if !o.Dependency.Optional && o.Failed {
			return false
		}
	}
	return true
}

// judge says how what is installed satisfies a root, without changes.
func (r *resolution) judge(root *Root) Result {
	w := newWorld(r.input, []*Root{root})
	frozen := *r.input
	frozen.Installed = slices.Clone(frozen.Installed)
	for i := range frozen.Installed {
		frozen.Installed[i].Changeable = false
	}
	m := *r.market
	m.input = &frozen
	managed := *root
	managed.UserManaged = false
	s := newSearch(&m, []*Root{&managed}, map[edgeKey]bool{}, *r.spent+r.limit) // no requirement counts: each is judged alone
	s.run()
	result := Result{Instance: root.Instance}
	for _, id := range s.edgesOf(&managed) {
		e := &s.edges[id]
		o := Outcome{Dependency: *e.dependency}
		installed := len(e.targets) > 0 && s.slots[e.targets[0].slot].installed != nil
		switch to := s.satisfier(e); {
		case e.served || installed && to >= 0:
			e.disabled, e.selector = false, -1
			o = s.outcome(root, e)
		case installed || e.reason != "" && len(e.targets) == 0 && e.reason != corev1alpha1.ReasonUnknownPackage:
			usable, _ := w.candidates(root.Namespace, e.name, nil)
			o.Failed, o.Reason, o.Message = true, e.reason, e.problem
			if len(usable) > 0 {
				o.Satisfier, o.Version = &usable[0].Instance, usable[0].Version
			}
		default:
			o.Failed, o.Reason = true, corev1alpha1.ReasonManagedByUser
			o.Message = fmt.Sprintf("%s is not installed, and spec.dependencies.management is User. Install it: %s", subject(e), r.command(root, e))
		}
		result.Outcomes = append(result.Outcomes, o)
	}
	result.conclude()
	return result
}

// subject names the package that a requirement is on, or else the API.
func subject(e *edge) string {
	if api := e.dependency.API; e.name == "" && api != nil {
		return "What provides " + api.APIVersion + " " + api.Kind
	}
	return e.name
}

func (r *resolution) command(root *Root, e *edge) string {
	if e.name == "" {
		return "kubectl package available list"
	}
	if root.Namespace == "" {
		return "kubectl package install " + e.name + " --cluster"
	}
	return "kubectl package install " + e.name + " -n " + root.Namespace
}

// edgesOf returns the requirements of a root in their order.
func (s *search) edgesOf(root *Root) []int32 {
	i := s.existing(s.world.at[root.Instance])
	of := map[*corev1alpha1.Dependency]int32{}
	for _, e := range s.slots[i].expanded[0] {
		of[s.edges[e].dependency] = e
	}
	var all []int32
	for k := range root.Dependencies {
		if e, ok := of[&root.Dependencies[k]]; ok {
			all = append(all, e)
		}
	}
	return all
}
