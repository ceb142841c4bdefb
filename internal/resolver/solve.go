package resolver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
)

// Solve resolves the requirements of the roots.
func Solve(in Input) Plan { return New(in).Solve(in.Roots) }

// Resolver resolves roots of one input, which it reads once. All of its calls share one count of
// steps.
type Resolver struct {
	market *market
	limit  int
	// end is the total number of steps: one limit for its own roots, and another for the roots they
	// are tried with.
	end int
}

// New returns a Resolver. The limit is in.Steps or, if that is 0, the limit for the roots, which is
// lower if one of them is in a namespace.
func New(in Input) *Resolver {
	limit := cmp.Or(in.Steps, limits.ResolutionSteps)
	if isNamespaced := func(r Root) bool { return r.Namespace != "" }; in.Steps == 0 && slices.ContainsFunc(in.Roots, isNamespaced) {
		limit = limits.ResolutionStepsNamespaced
	}
	m := &market{
		input: &in, spent: new(int), listed: map[place][]Offer{}, offered: map[place][]value{}, leads: map[place][]want{}, providers: map[provided][]string{},
		constraints: map[string]*versions.Constraint{}, awaited: map[string]bool{}, within: map[within]bool{}, choices: map[asked]versions.Choice{},
	}
	return &Resolver{m, limit, 4 * limit}
}

// Solve resolves the requirements of roots. A search can take as many steps as the limit, and
// explaining roots without a solution as many again.
func (x *Resolver) Solve(roots []Root) Plan {
	spent := *x.market.spent
	r := &resolution{market: x.market, limit: x.limit, search: min(spent+x.limit, x.end), end: min(spent+2*x.limit, x.end)}
	var users []*Root
	for i := range roots {
		root := roots[i].at(0)
		if root.Versions = roots[i].Versions; root.UserManaged {
			users = append(users, root)
		} else {
			r.roots = append(r.roots, root)
		}
	}

	r.roots = byInstance(r.roots...)
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
	// search is the step at which a search for all roots has to stop, end the step at which
	// everything has to.
	search, end int
	failed      []Result
}

// solve returns a search with a solution for the roots that have a common one.
func (r *resolution) solve() *search {
	s := newSearch(r.market, r.roots, nil, r.search)
	state, core := s.run()
	if state == solved {
		return s
	}
	if len(r.roots) == 1 {
		r.fail(nil, r.roots[0], s, state, core, r.end)
		return nil
	}

	// Established roots come first, so that a new root cannot make an installed one fail.
	order := slices.Clone(r.roots)
	slices.SortStableFunc(order, func(a, b *Root) int { return compareBool(r.isEstablished(b), r.isEstablished(a)) })
	var accepted []*Root
	for rest := order; len(rest) > 0; {
		// Each further root only removes solutions, so binary search finds the first one that does not
		// fit.
		n := sort.Search(len(rest), func(n int) bool { return !r.goTogether(slices.Concat(accepted, rest[:n+1]), rest[n+1:]) })
		accepted = append(accepted, rest[:n]...)
		if n == len(rest) {
			break
		}

		r.reject(accepted, rest[n])
		rest = rest[n+1:]
	}

	if len(accepted) == 0 {
		return nil
	}

	s = newSearch(r.market, byInstance(accepted...), nil, r.end)
	if state, _ := s.run(); state != solved {
		for _, root := range accepted {
			r.failed = append(r.failed, r.exceeded(root))
		}
		return nil
	}

	return s
}

// goTogether reports whether there is a solution for roots, regardless of whether the others stay
// as they are installed.
func (r *resolution) goTogether(roots, others []*Root) bool {
	all := slices.Clone(roots)
	for _, o := range others {
		optional := *o
		optional.optional = true
		if len(o.Versions) == 0 {
			optional.Versions = []RootVersion{{o.Version, o.Dependencies, o.Unique}}
		}
		all = append(all, &optional)
	}
	state, _ := newSearch(r.market, byInstance(all...), nil, r.share()).run()
	return state == solved
}

// share returns the step at which one of several searches has to stop.
func (r *resolution) share() int { return *r.spent + (r.end-*r.spent)/8 }

// reject records why a root has no solution along with the roots accepted before it.
func (r *resolution) reject(accepted []*Root, root *Root) {
	until := r.share()
	s := newSearch(r.market, byInstance(append(slices.Clone(accepted), root)...), nil, until)
	state, core := s.run()
	if state == solved { // the search with the others reached the limit
		state = exhausted
	}
	r.fail(accepted, root, s, state, core, until)
}

// byInstance sorts roots.
func byInstance(all ...*Root) []*Root {
	return slices.SortedFunc(slices.Values(all), func(a, b *Root) int { return a.Instance.Compare(b.Instance) })
}

// fail records why the preferred version of a root has no solution.
func (r *resolution) fail(accepted []*Root, root *Root, s *search, state outcome, core []int32, until int) {
	if len(root.Versions) > 1 && state == unsolvable {
		root = root.at(0)
		s = newSearch(r.market, byInstance(append(slices.Clone(accepted), root)...), nil, until)
		state, core = s.run()
	}

	result := r.diagnose(accepted, root, s, state, core, until)
	result.Version = root.Version
	r.failed = append(r.failed, result)
}

// compareBool sorts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// isEstablished reports whether the installed packages satisfy all requirements of a root in one of
// its versions.
func (r *resolution) isEstablished(root *Root) bool {
	return slices.ContainsFunc(root.all(), func(root *Root) bool {
		return !slices.ContainsFunc(r.judge(root).Outcomes, func(o Outcome) bool { return !o.Dependency.Optional && o.Failed })
	})
}

// judge returns how the installed packages satisfy a root without changes.
func (r *resolution) judge(root *Root) Result {
	w := newWorld(r.input, []*Root{root})
	frozen := *r.input
	frozen.Installed = slices.Clone(frozen.Installed)
	for i := range frozen.Installed {
		frozen.Installed[i].Changeable = false
	}

	m := *r.market
	m.input = &frozen
	managed := *root.at(0)
	managed.UserManaged = false
	s := newSearch(&m, []*Root{&managed}, map[edgeKey]bool{}, *r.spent+r.limit) // no requirement is enforced, because each is judged on its own
	s.run()
	result := Result{Instance: root.Instance, Version: managed.Version}
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

// subject names the package that an edge requires, or else the API.
func subject(e *edge) string {
	if api := e.dependency.API; e.name == "" && api != nil {
		return "The provider of " + api.APIVersion + " " + api.Kind
	}
	return e.name
}

// command returns the command by which a user installs the required package.
func (r *resolution) command(root *Root, e *edge) string {
	if e.name == "" {
		return "kubectl package available"
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
	v := max(s.chosen(i), 0)
	for _, e := range s.slots[i].expanded[v] {
		of[s.edges[e].dependency] = e
	}

	var all []int32
	deps := root.at(int(v)).Dependencies
	for k := range deps {
		if e, ok := of[&deps[k]]; ok {
			all = append(all, e)
		}
	}

	return all
}

// Related returns the other roots that share a package with root, directly or through further
// roots, by namespace and name.
func (x *Resolver) Related(root Root, others []Root) []Root {
	in, reached := make([]bool, len(others)), make([]map[place]bool, len(others))
	for i := range others {
		reached[i] = x.reachedBy(&others[i])
	}

	all := x.reachedBy(&root)
	for grown := true; grown; {
		grown = false
		for i := range others {
			if in[i] || !intersects(all, reached[i]) {
				continue
			}
			in[i], grown = true, true
			maps.Copy(all, reached[i])
		}
	}

	var related []Root
	for i := range others {
		if in[i] {
			related = append(related, others[i])
		}
	}

	slices.SortFunc(related, func(a, b Root) int { return a.Instance.Compare(b.Instance) })
	return related
}

// reachedBy returns a root's package and everything that it can lead to in any of its versions.
func (x *Resolver) reachedBy(root *Root) map[place]bool {
	m := x.market
	w := newWorld(m.input, nil)
	f := &closure{
		search: &search{sat: sat{steps: m.spent}, market: m, world: w, until: min(*m.spent+x.limit, x.end)},
		wanted: map[wantIn]bool{}, reached: map[place]bool{{root.Namespace, root.Package}: true},
	}
	f.reachAll(root)
	f.followAll()
	return f.reached
}

// intersects reports whether two sets share a package.
func intersects(a, b map[place]bool) bool {
	for p := range a {
		if b[p] {
			return true
		}
	}
	return false
}
