package resolver

import (
	"cmp"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

// world has the installed packages, with the roots as they should become.
type world struct {
	roots     []*Root // by namespace and name
	rootOf    map[Instance]*Root
	at        map[Instance]*Installed
	byPackage map[string][]*Installed
	byAPI     map[corev1alpha1.ProvidedAPI][]*Installed
	// isChangeable means that the version of some instance can be raised for the roots.
	isChangeable bool
	// changeable are the instances that the roots can lead to, by namespace and name; nil until a
	// search has found them.
	changeable []*Installed
	// was are the roots as they are installed.
	was map[Instance]*Installed
	// size counts instances and their requirements.
	size int
	// tentative are the instances that solutions do not depend on, by namespace and name.
	tentative []*Installed
	// private instances serve a single requirement.
	private map[Instance]bool
	// recorded are the requirements that an instance satisfies, by instance of the dependents and
	// name.
	recorded map[Instance][]recorded
}

// recorded is a requirement with its dependent, by the dependent's status.
type recorded struct {
	dependent   *Installed
	requirement *Requirement
}

// newWorld replaces the installed versions of the roots with the roots.
func newWorld(in *Input, roots []*Root) *world {
	w := &world{
		roots: roots, rootOf: map[Instance]*Root{}, at: map[Instance]*Installed{}, byPackage: map[string][]*Installed{}, byAPI: map[corev1alpha1.ProvidedAPI][]*Installed{},
		private: map[Instance]bool{}, recorded: map[Instance][]recorded{}, was: map[Instance]*Installed{},
	}
	all := make([]*Installed, 0, len(in.Installed)+len(roots))
	for _, r := range roots {
		w.rootOf[r.Instance] = r
		all = append(all, &Installed{Instance: r.Instance, Package: r.Package, Version: r.Version, Unique: r.Unique})
	}

	for i := range in.Installed {
		o := &in.Installed[i]
		if w.rootOf[o.Instance] != nil {
			w.was[o.Instance] = o
		}
		if w.size += 1 + len(o.Requirements); w.rootOf[o.Instance] == nil {
			all = append(all, o)
		} else if j := slices.IndexFunc(all, func(a *Installed) bool { return a.Instance == o.Instance }); all[j].Package != "" {
			all[j].Generated, all[j].Available, all[j].Deleting = o.Generated, o.Available, o.Deleting
			all[j].Provides, all[j].AllDependents = o.Provides, o.AllDependents
		} else {
			// The root's own dependencies replace the recorded requirements.
			known := *o
			known.Requirements, known.Changeable, known.Unloaded = nil, false, false
			all[j] = &known
		}
	}

	slices.SortStableFunc(all, func(a, b *Installed) int { return a.Instance.Compare(b.Instance) })
	for _, i := range all {
		w.at[i.Instance] = i
		if i.Tentative {
			w.tentative = append(w.tentative, i)
		}
		if i.Package != "" && !i.Tentative {
			w.byPackage[i.Package] = append(w.byPackage[i.Package], i)
		}
		if i.Package != "" {
			for _, api := range i.Provides {
				w.byAPI[api] = append(w.byAPI[api], i)
			}
		}
		w.isChangeable = w.isChangeable || w.mayChange(i)
	}

	w.relate(all)
	return w
}

// relate records which requirements each instance satisfies, and which instances serve a single
// one.
func (w *world) relate(all []*Installed) {
	for _, d := range all {
		deps := make([]corev1alpha1.Dependency, len(d.Requirements))
		for i := range d.Requirements {
			r := &d.Requirements[i]
			deps[i] = r.Dependency
			if r.Satisfier != nil && !d.Tentative {
				w.recorded[*r.Satisfier] = append(w.recorded[*r.Satisfier], recorded{d, r})
			}
		}

		lists := [][]corev1alpha1.Dependency{deps}
		if r := w.rootOf[d.Instance]; r != nil {
			lists = nil
			for _, at := range r.all() {
				lists = append(lists, at.Dependencies)
			}
		}

		for _, deps := range lists {
			for i := range deps {
				if isPrivate(deps, i) {
					w.private[Child(d.Instance, deps[i].Name)] = true
				}
			}
		}
	}
}

// tentativeOf returns the existing instance of a package to be created, or nil. For a private slot
// this is child; otherwise all packages of the namespace share it.
func (w *world) tentativeOf(of *slot, child Instance) *Installed {
	at := slices.IndexFunc(w.tentative, func(i *Installed) bool {
		if i.Package != of.name || i.Namespace != of.namespace || i.Deleting {
			return false
		}
		if of.key.dependent > 0 {
			return i.Instance == child
		}
		return !w.private[i.Instance]
	})
	if at < 0 {
		return nil
	}

	return w.tentative[at]
}

// heeded returns the recorded requirements that limit the versions of an instance.
func (w *world) heeded(i *Installed) []recorded {
	return slices.DeleteFunc(slices.Clone(w.recorded[i.Instance]), func(r recorded) bool { return !i.Heeds(r.dependent.Instance) })
}

// isPrivate reports whether another dependency in the list requires the same package.
func isPrivate(deps []corev1alpha1.Dependency, i int) bool {
	p := deps[i].Package
	if p == nil {
		return false
	}
	for j := range deps {
		if o := deps[j].Package; j != i && o != nil && o.Name == p.Name && deps[j].Name != deps[i].Name {
			return true
		}
	}
	return false
}

// visible reports whether packages of a namespace can use an instance.
func visible(namespace string, i *Installed) bool {
	return i.Namespace == "" || i.Namespace == namespace
}

// candidates returns the installed instances of a package that a namespace can use, starting with
// the preferred one, and an instance that is being deleted, if any. The recorded satisfier of a
// requirement is always usable.
func (w *world) candidates(namespace, name string, was *Instance) (usable []*Installed, deleted *Installed) {
	for _, i := range w.byPackage[name] {
		isRecorded := was != nil && *was == i.Instance
		switch {
		case !visible(namespace, i) || w.private[i.Instance] && !isRecorded:
		case i.Deleting && !isRecorded:
			deleted = i
		default:
			usable = append(usable, i)
		}
	}

	rank := func(i *Installed) int {
		switch {
		case was != nil && *was == i.Instance:
			return 0
		case i.Namespace == namespace:
			return 1
		}
		return 2
	}

	slices.SortStableFunc(usable, func(a, b *Installed) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Instance.Compare(b.Instance))
	})
	return usable, deleted
}

// mayChange reports whether the version of an instance can be raised for all roots.
func (w *world) mayChange(i *Installed) bool {
	return i.Changeable && !i.Deleting && !i.Tentative && !slices.ContainsFunc(w.roots, func(r *Root) bool { return !i.MayChange(r.Instance) })
}

// values returns the versions that an installed package can have: the present one and, if it can be
// changed, higher ones.
func (m *market) values(w *world, i *Installed) []value {
	if r := w.rootOf[i.Instance]; r != nil && len(r.Versions) > 0 {
		all := make([]value, len(r.Versions))
		for v := range all {
			parsed, _ := versions.Parse(r.Versions[v].Version)
			all[v] = value{version: r.Versions[v].Version, parsed: parsed}
		}
		if r.optional {
			all = append(all, value{})
			if was := w.was[i.Instance]; was != nil {
				all[len(r.Versions)].version = was.Version
				all[len(r.Versions)].parsed, _ = versions.Parse(was.Version)
			}
		}
		return all
	}

	present, err := versions.Parse(i.Version)
	if err != nil {
		present = nil
	}

	all := []value{{version: i.Version, parsed: present}}
	if present == nil || !w.mayChange(i) {
		return all
	}

	for _, v := range slices.Backward(m.versions(place{i.Namespace, i.Package})) {
		if versions.Compare(v.parsed, present) > 0 && w.admits(i.Instance, i.Package, v.offer.Unique) && (i.API == nil || slices.Contains(v.offer.Provides, *i.API)) {
			all = append(all, v)
		}
	}

	return all
}

// admits reports whether the other instances of a package permit a new one in a version.
func (w *world) admits(at Instance, name string, unique corev1alpha1.UniqueScope) bool {
	return !slices.ContainsFunc(w.byPackage[name], func(o *Installed) bool {
		return o.Instance != at && (clash(at.Namespace, o.Namespace, unique) || clash(at.Namespace, o.Namespace, o.Unique))
	})
}

// clash reports whether a scope has no room for both of two instances of a package. A Package is
// unique in its namespace, regardless of its image, so it never conflicts with instances elsewhere.
func clash(a, b string, unique corev1alpha1.UniqueScope) bool { return unique != "" && a == b }
