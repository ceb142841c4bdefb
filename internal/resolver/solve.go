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
func Solve(in Input) Plan {
	r := &resolution{market: newMarket(&in), limit: cmp.Or(in.Steps, limits.ResolutionSteps)}
	var users []*Root
	for i := range in.Roots {
		if root := &in.Roots[i]; root.UserManaged {
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
	roots  []*Root
	limit  int
	failed []Result
}

// solve returns a search with a solution for the roots that have one together.
func (r *resolution) solve() *search {
	s := newSearch(r.market, r.roots, nil, r.limit)
	state, core := s.run()
	if state == solved {
		return s
	}
	if len(r.roots) == 1 {
		r.failed = append(r.failed, r.diagnose(nil, r.roots[0], s, state, core))
		return nil
	}
	order := slices.Clone(r.roots)
	slices.SortStableFunc(order, func(a, b *Root) int { return compareBool(r.isEstablished(b), r.isEstablished(a)) })
	var accepted []*Root
	var last *search
	for _, root := range order {
		with := slices.SortedFunc(slices.Values(append(slices.Clone(accepted), root)), func(a, b *Root) int { return a.Instance.Compare(b.Instance) })
		s := newSearch(r.market, with, nil, r.limit)
		state, core := s.run()
		if state == solved {
			accepted, last = with, s
			continue
		}
		r.failed = append(r.failed, r.diagnose(accepted, root, s, state, core))
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
	s := newSearch(&m, []*Root{&managed}, map[edgeKey]bool{}, r.limit) // no requirement counts: each is judged alone
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
