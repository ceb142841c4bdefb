package resolver

import (
	"cmp"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// slot is an instance that exists or can be created.
type slot struct {
	key       key
	name      string // of the package
	namespace string
	installed *Installed // nil for a new one
	root      *Root
	values    []value // the preferred one first
	first     int32   // variable of the first value
	// expanded are the requirements of each visited value; nil for others.
	expanded [][]int32
	// position is the slot's place in the walk, and via the requirement that led to it.
	position int
	via      int32
	// instance is unknown for a new slot until the walk reaches it. tentative is the existing
	// instance in its place; nil if there is none.
	instance  Instance
	tentative *Installed
}

// key identifies a slot: an installed package, one that the packages of a namespace share, or one
// that serves a single requirement.
type key struct {
	instance  Instance
	namespace string
	name      string
	dependent int32 // the dependent's slot plus 1
	handle    string
}

// edge is a requirement of a value of a slot.
type edge struct {
	slot, value int32
	dependency  *corev1alpha1.Dependency
	name        string // of the package; empty for a served API
	selector    int32  // variable that enables an optional requirement; -1 for others
	targets     []target
	// kept is set for a requirement of an installed package that stays.
	kept bool
	// served is set for an API that needs no package.
	served bool
	// disabled edges are ignored.
	disabled bool
	// problem is why the requirement cannot be satisfied in any version.
	reason, problem string
	// cycle are the edges of a cycle. clash are slots that exclude each other because only one can
	// exist. Such an edge is not a requirement.
	cycle []int32
	clash []int32
}

// target is a slot that can satisfy a requirement with some of its values.
type target struct {
	slot int32
	fits []bool
}

// fitKey is a range of versions of a slot.
type fitKey struct {
	slot    int32
	version string
}

// edgeKey identifies a requirement across searches.
type edgeKey struct {
	slot    key
	parent  string
	version string
	handle  string
}

// search looks for a solution.
type search struct {
	sat
	*market
	world  *world
	only   map[edgeKey]bool // the considered requirements; nil means all
	until  int              // the step of the resolution at which it has to stop
	slots  []slot
	slotOf map[key]int32
	named  map[string][]int32 // slots by package
	edges  []edge
	keeps  map[*Requirement]int32
	fits   map[fitKey][]bool
	paths  map[int32][]string // to slots
	// changeable are the slots of installed packages that can be changed. chosenFirst puts the
	// roots with several versions before them; they are chosen first.
	changeable, chosenFirst []int32
	walk                    walk
	marks                   []walk // by level, before its decision
}

// walk is the progress of the walk. The queue can be cut, but its remaining elements never change.
type walk struct {
	queue                []int32
	node, edge           int // the next ones
	optional, optionalAt int
	changed              bool   // the queue includes changed packages that the walk did not reach
	checked              [3]int // the last state without cycles
}

// newSearch returns a search for roots. until is the step of the resolution at which it has to
// stop.
func newSearch(m *market, roots []*Root, only map[edgeKey]bool, until int) *search {
	w := newWorld(m.input, roots)
	*m.spent += w.size
	return searchIn(m, w, only, until)
}

// searchIn is newSearch in a known world, with the requirements in only. Minimizing a conflict
// repeats the search with fewer of them.
func searchIn(m *market, w *world, only map[edgeKey]bool, until int) *search {
	s := &search{
		sat: sat{steps: m.spent}, market: m, world: w, only: only, until: until,
		slotOf: map[key]int32{}, named: map[string][]int32{}, keeps: map[*Requirement]int32{}, fits: map[fitKey][]bool{}, paths: map[int32][]string{},
	}

	for _, r := range s.world.roots {
		s.walk.queue = append(s.walk.queue, s.existing(s.world.at[r.Instance]))
	}

	for at, i := range s.walk.queue {
		s.slots[i].position, s.slots[i].via = at, -1
	}

	s.findChangeable()
	for _, i := range s.walk.queue {
		if len(s.slots[i].values) > 1 {
			s.chosenFirst = append(s.chosenFirst, i)
		}
	}

	s.chosenFirst = append(s.chosenFirst, s.changeable...)
	return s
}

// existing returns the slot of an installed package.
func (s *search) existing(i *Installed) int32 {
	return s.slot(slot{key: key{instance: i.Instance}, name: i.Package, namespace: i.Namespace, installed: i, root: s.world.rootOf[i.Instance], instance: i.Instance},
		func() []value { return s.values(s.world, i) })
}

// created returns the slot of a package that does not exist.
func (s *search) created(k key) int32 {
	return s.slot(slot{key: k, name: k.name, namespace: k.namespace}, func() []value {
		return slices.DeleteFunc(slices.Clone(s.versions(place{k.namespace, k.name})), func(v value) bool {
			return !s.world.admits(Instance{Namespace: k.namespace}, k.name, v.offer.Unique)
		})
	})
}

// slot returns the slot with a key, and makes it with its values as variables if needed. An
// installed package always has a value; a package to be created can have none.
func (s *search) slot(of slot, values func() []value) int32 {
	if i, ok := s.slotOf[of.key]; ok {
		return i
	}

	i := int32(len(s.slots))
	of.values, of.position, of.via = values(), -1, -1
	of.expanded = make([][]int32, len(of.values))
	group := s.addGroup()
	of.first = int32(len(s.assigned))
	for range of.values {
		s.addVariable(group)
	}

	s.slots, s.slotOf[of.key] = append(s.slots, of), i
	s.named[of.name] = append(s.named[of.name], i)
	switch {
	case of.installed != nil && len(of.values) == 1:
		s.fix(of.first)
	case of.installed != nil:
		s.add(structure, s.anyOf(i, nil)...)
	}

	return i
}

// anyOf returns the literals of the values that fit, or of all values if fits is nil.
func (s *search) anyOf(i int32, fits []bool) []literal {
	all := make([]literal, 0, len(s.slots[i].values)+2)
	for v := range s.slots[i].values {
		if fits == nil || fits[v] {
			all = append(all, yes(s.slots[i].first+int32(v)))
		}
	}
	return all
}

// chosen returns the value of a slot, or -1.
func (s *search) chosen(i int32) int32 {
	v := s.picked[i] // each slot has the group of its own number
	if v < 0 {
		return -1
	}
	return v - s.slots[i].first
}

// findChangeable makes slots of the changeable packages that the roots can lead to, and enforces
// the requirements on them.
func (s *search) findChangeable() {
	if s.world.isChangeable && s.world.changeable == nil {
		f := &closure{search: s, wanted: map[wantIn]bool{}, reached: map[place]bool{}, found: []*Installed{}}
		for _, r := range s.world.roots {
			f.reachAll(r)
		}
		f.followAll()
		slices.SortFunc(f.found, func(a, b *Installed) int { return a.Instance.Compare(b.Instance) })
		s.world.changeable = slices.Compact(f.found)
	}

	for _, i := range s.world.changeable {
		s.changeable = append(s.changeable, s.existing(i))
	}

	for _, i := range s.changeable {
		s.keep(i)
	}
}

// closure walks over everything that the roots can lead to.
type closure struct {
	*search
	wanted  map[wantIn]bool
	reached map[place]bool
	queue   []place
	found   []*Installed
}

// wantIn is a want as a namespace sees it.
type wantIn struct {
	namespace string
	want      want
}

// reach adds the packages that can satisfy a want to the queue, once.
func (f *closure) reach(namespace string, w want) {
	*f.steps++
	if f.wanted[wantIn{namespace, w}] {
		return
	}

	f.wanted[wantIn{namespace, w}] = true
	for _, name := range f.possible(namespace, w) {
		*f.steps++
		if p := (place{namespace, name}); !f.reached[p] {
			f.reached[p] = true
			f.queue = append(f.queue, p)
		}
	}
}

// followAll follows the reached packages, and everything that they lead to.
func (f *closure) followAll() {
	for len(f.queue) > 0 && !f.isSpent() {
		p := f.queue[0]
		f.queue = f.queue[1:]
		f.follow(p)
	}
}

// reachAll reaches the needs of a root in all of its versions.
func (f *closure) reachAll(root *Root) {
	for _, r := range root.all() {
		for i := range r.Dependencies {
			f.reach(r.Namespace, wantOf(&r.Dependencies[i]))
		}
	}
}

// follow reaches the needs of a package in its installed and offered versions.
func (f *closure) follow(p place) {
	spaces := []string{p.namespace}
	for _, i := range f.world.byPackage[p.name] {
		*f.steps++
		if !visible(p.namespace, i) {
			continue
		}
		if spaces = append(spaces, i.Namespace); f.world.mayChange(i) {
			f.found = append(f.found, i)
		}
		for k := range i.Requirements {
			f.reach(i.Namespace, wantOf(&i.Requirements[k].Dependency))
		}
	}

	slices.Sort(spaces)
	for _, namespace := range slices.Compact(spaces) {
		for _, w := range f.wants(place{namespace, p.name}) {
			f.reach(namespace, w)
		}
	}
}

// possible returns the packages that can satisfy a dependency.
func (s *search) possible(namespace string, w want) []string {
	switch {
	case w.name != "":
		return []string{w.name}
	case w == want{}:
		return nil
	}

	names := slices.Clone(s.providersOf(namespace, w.api))
	for _, i := range s.world.byAPI[w.api] {
		*s.steps++
		if visible(namespace, i) {
			names = append(names, i.Package)
		}
	}

	slices.Sort(names)
	return slices.Compact(names)
}

// isSpent reports whether the search has used up its steps.
func (s *search) isSpent() bool { return *s.steps > s.until }

// keep makes the installed dependents of a slot constrain its values, if they accept the present
// one.
func (s *search) keep(i int32) {
	if len(s.slots[i].values) < 2 {
		return
	}

	all := s.world.heeded(s.slots[i].installed)
	slices.SortFunc(all, func(a, b recorded) int {
		return cmp.Or(a.dependent.Instance.Compare(b.dependent.Instance), cmp.Compare(a.requirement.Name, b.requirement.Name))
	})

	for _, r := range all {
		d := s.existing(r.dependent)
		if e, ok := s.kept(d, r.requirement); ok {
			if len(s.slots[d].values) > 1 && !slices.Contains(s.changeable, d) {
				s.fix(s.slots[d].first) // no root leads to it
			}
			s.enforce(e)
		}
	}
}

// kept returns the edge of a recorded requirement, if it is satisfied, heeded and mandatory.
func (s *search) kept(of int32, r *Requirement) (int32, bool) {
	if e, ok := s.keeps[r]; ok {
		return e, e >= 0
	}

	s.keeps[r] = -1
	i := s.world.at[*r.Satisfier]
	if i == nil || i.Tentative || r.Optional || !i.Heeds(s.slots[of].instance) {
		return -1, false
	}

	to := s.existing(i)
	e := edge{slot: of, dependency: &r.Dependency, name: i.Package, selector: -1, kept: true}
	if e.targets = []target{s.target(to, &r.Dependency)}; !e.targets[0].fits[0] {
		return -1, false
	}

	s.keeps[r] = s.newEdge(e)
	return s.keeps[r], true
}

// target returns a slot with the values that fit a dependency. Equal ranges share the result,
// because most dependents state the same few.
func (s *search) target(to int32, d *corev1alpha1.Dependency) target {
	*s.steps += len(s.slots[to].values)
	k := fitKey{to, rangeOf(d).Version}
	plain := d.API == nil && d.Package != nil && d.Package.Prereleases == nil
	if plain && s.fits[k] != nil {
		return target{to, s.fits[k]}
	}

	t := target{to, make([]bool, len(s.slots[to].values))}
	for v := range t.fits {
		t.fits[v] = s.fitsValue(d, &s.slots[to].values[v])
	}

	if plain {
		s.fits[k] = t.fits
	}

	return t
}

// fitsValue reports whether a version satisfies a dependency on its package.
func (s *search) fitsValue(d *corev1alpha1.Dependency, v *value) bool {
	if d.API != nil && d.Package == nil && v.offer != nil &&
		!slices.Contains(v.offer.Provides, corev1alpha1.ProvidedAPI{APIVersion: d.API.APIVersion, Kind: d.API.Kind}) {
		return false
	}
	return s.accepts(rangeOf(d), v)
}

// newEdge adds an edge and returns its number.
func (s *search) newEdge(e edge) int32 {
	e.disabled = s.only != nil && !s.only[s.keyOf(&e)]
	s.edges = append(s.edges, e)
	return int32(len(s.edges) - 1)
}

// keyOf returns the key of a requirement, which is valid in other searches too.
func (s *search) keyOf(e *edge) edgeKey {
	of := &s.slots[e.slot]
	k := edgeKey{slot: of.key, version: of.values[e.value].version, handle: e.dependency.Name}
	if d := of.key.dependent; d > 0 { // slot numbers are valid only within one search
		k.slot.dependent, k.parent = 0, s.slots[d-1].key.String()
	}
	return k
}

// String identifies a slot across searches, except for slots below a private one.
func (k key) String() string {
	return k.instance.Namespace + "/" + k.instance.Name + "/" + k.namespace + "/" + k.name + "/" + k.handle
}
