package resolver_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/Masterminds/semver/v3"

	"lockstep.run/lockstep/internal/resolver"
)

// oracle resolves by trying everything in the order of doc.go, one choice after the other, with no means but recursion. It
// takes one root, one namespace, and one instance of each package.
type oracle struct {
	resolver.Input
	offers    resolver.Offers
	installed map[string]*resolver.Installed // by package
	// choice is a version by package; "" where the package is absent. Optional requirements are "package handle".
	choice   map[string]string
	optional map[string]bool
}

func newOracle(in resolver.Input) *oracle {
	o := &oracle{Input: in, offers: in.Catalogue.(resolver.Offers), installed: map[string]*resolver.Installed{}, choice: map[string]string{}, optional: map[string]bool{}}
	for i := range in.Installed {
		o.installed[in.Installed[i].Package] = &in.Installed[i]
	}
	return o
}

func inRange(text, version string) bool {
	c, err := semver.NewConstraint(text)
	if text == "" {
		return true
	}
	return err == nil && c.Check(semver.MustParse(version))
}

type demand struct {
	handle, name, want string
	optional           bool
}

// demands of a package in its present choice, by handle; kept ones where it is installed and stays.
func (o *oracle) demands(name string) (all []demand, kept bool) {
	if name == "shop" {
		for _, d := range o.Roots[0].Dependencies {
			all = append(all, demand{d.Name, d.Package.Name, d.Package.Version, d.Optional})
		}
	} else if i := o.installed[name]; i != nil && i.Version == o.choice[name] {
		for _, r := range i.Requirements {
			if s := o.installed[r.Package.Name]; r.Satisfier != nil && !r.Optional && inRange(r.Package.Version, s.Version) {
				all = append(all, demand{r.Name, r.Package.Name, r.Package.Version, false})
			}
		}
		kept = true
	} else {
		for _, v := range o.offers[name] {
			if v.Version != o.choice[name] {
				continue
			}
			for _, d := range v.Dependencies {
				all = append(all, demand{d.Name, d.Package.Name, d.Package.Version, d.Optional})
			}
		}
	}
	sort.Slice(all, func(a, b int) bool { return all[a].handle < all[b].handle })
	return all, kept
}

// above returns the versions that are offered, the lowest first, above one.
func (o *oracle) above(name, version string) []string {
	var all []string
	for _, v := range o.offers[name] {
		if version == "" || semver.MustParse(v.Version).GreaterThan(semver.MustParse(version)) {
			all = append(all, v.Version)
		}
	}
	sort.Slice(all, func(a, b int) bool { return semver.MustParse(all[a]).LessThan(semver.MustParse(all[b])) })
	return all
}

// reachable names what the root may lead to.
func (o *oracle) reachable() map[string]bool {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, v := range o.offers[name] {
			for _, d := range v.Dependencies {
				visit(d.Package.Name)
			}
		}
		if i := o.installed[name]; i != nil {
			for _, r := range i.Requirements {
				visit(r.Package.Name)
			}
		}
	}
	for _, d := range o.Roots[0].Dependencies {
		visit(d.Package.Name)
	}
	return seen
}

// solve reports whether there is a solution, and leaves it in choice.
func (o *oracle) solve() bool {
	reachable := o.reachable()
	var changeable []string
	for _, i := range o.installed {
		o.choice[i.Package] = i.Version
		if i.Changeable && reachable[i.Package] {
			changeable = append(changeable, i.Package)
		}
	}
	slices.SortFunc(changeable, func(a, b string) int { return o.installed[a].Instance.Compare(o.installed[b].Instance) })
	return o.present(changeable)
}

func (o *oracle) present(changeable []string) bool {
	if len(changeable) == 0 {
		return o.keeps() && o.created(changeable)
	}
	name := changeable[0]
	was := o.installed[name].Version
	for _, v := range append([]string{was}, o.above(name, was)...) {
		o.choice[name] = v
		if o.present(changeable[1:]) {
			return true
		}
	}
	o.choice[name] = was
	return false
}

// keeps reports whether nothing that is installed and stays loses what satisfied it.
func (o *oracle) keeps() bool {
	for name, i := range o.installed {
		if i.Version != o.choice[name] {
			continue
		}
		all, _ := o.demands(name)
		for _, d := range all {
			if !inRange(d.want, o.choice[d.name]) {
				return false
			}
		}
	}
	return true
}

// walk returns the packages in the order of the walk, and the first that has to be decided for a demand. It reports false
// where a demand is not met.
func (o *oracle) walk() (order []string, open *demand, ok bool) {
	order = []string{"shop"}
	add := func(name string) {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	done := 0
	mandatory := func() (*demand, bool) {
		for ; done < len(order); done++ {
			all, _ := o.demands(order[done])
			for _, d := range all {
				switch {
				case d.optional:
				case d.name == "shop":
					return nil, false // a cycle
				case o.choice[d.name] == "":
					return &d, true
				case !inRange(d.want, o.choice[d.name]):
					return nil, false
				default:
					add(d.name)
				}
			}
		}
		return nil, true
	}
	if open, ok = mandatory(); open != nil || !ok {
		return nil, open, ok
	}
	var changed []string
	for name, i := range o.installed {
		if i.Version != o.choice[name] {
			changed = append(changed, name)
		}
	}
	slices.SortFunc(changed, func(a, b string) int { return o.installed[a].Instance.Compare(o.installed[b].Instance) })
	for _, name := range changed {
		add(name)
	}
	if open, ok = mandatory(); open != nil || !ok {
		return nil, open, ok
	}
	for at := 0; at < len(order); at++ {
		all, _ := o.demands(order[at])
		for _, d := range all {
			key := order[at] + " " + d.handle
			takesPart, decided := o.optional[key]
			switch {
			case !d.optional || decided && !takesPart:
				continue
			case !decided:
				if o.cyclic() {
					return nil, nil, false
				}
				return nil, &demand{handle: key, optional: true}, true
			case d.name == "shop":
				return nil, nil, false
			case o.choice[d.name] == "":
				return nil, &d, true
			case !inRange(d.want, o.choice[d.name]):
				return nil, nil, false
			}
			add(d.name)
			if open, ok = mandatory(); open != nil || !ok {
				return nil, open, ok
			}
		}
	}
	return order, nil, !o.cyclic()
}

// cyclic reports whether what is active has a cycle, in which not all demands are kept.
func (o *oracle) cyclic() bool {
	color := map[string]int{}
	var way []string
	var visit func(name string) bool
	visit = func(name string) bool {
		color[name] = 1
		way = append(way, name)
		all, _ := o.demands(name)
		for _, d := range all {
			if d.optional && !o.optional[name+" "+d.handle] {
				continue
			}
			switch color[d.name] {
			case 0:
				if visit(d.name) {
					return true
				}
			case 1:
				at := slices.Index(way, d.name)
				if slices.ContainsFunc(way[at:], func(n string) bool { _, kept := o.demands(n); return !kept }) {
					return true
				}
			}
		}
		way = way[:len(way)-1]
		color[name] = 2
		return false
	}
	if visit("shop") {
		return true
	}
	for name, i := range o.installed {
		if i.Version != o.choice[name] && color[name] == 0 && visit(name) {
			return true
		}
	}
	return false
}

func (o *oracle) created(changeable []string) bool {
	_, open, ok := o.walk()
	switch {
	case !ok:
		return false
	case open == nil:
		return true
	case open.optional && open.name == "":
		for _, takesPart := range []bool{true, false} {
			o.optional[open.handle] = takesPart
			if o.created(changeable) {
				return true
			}
		}
		delete(o.optional, open.handle)
		return false
	}
	for _, v := range slices.Backward(o.above(open.name, "")) {
		if !inRange(open.want, v) {
			continue
		}
		o.choice[open.name] = v
		if o.created(changeable) {
			return true
		}
	}
	delete(o.choice, open.name)
	return false
}

// solution prints what is created and changed, and which optional requirements of the root are left out.
func (o *oracle) solution() string {
	var lines []string
	order, _, _ := o.walk()
	for _, name := range order {
		switch i := o.installed[name]; {
		case name == "shop":
		case i == nil:
			lines = append(lines, "create "+name+" "+o.choice[name])
		case i.Version != o.choice[name]:
			lines = append(lines, "change "+name+" "+o.choice[name])
		}
	}
	for _, d := range o.Roots[0].Dependencies {
		if d.Optional && !o.optional["shop "+d.Name] {
			lines = append(lines, "without "+d.Name)
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// solutionOf prints a plan in the same way; "none" where the root fails.
func solutionOf(plan resolver.Plan) string {
	var lines []string
	for _, o := range plan.Results[0].Outcomes {
		switch {
		case o.Failed && !o.Dependency.Optional:
			return "none"
		case o.Failed:
			lines = append(lines, "without "+o.Dependency.Name)
		}
	}
	for _, s := range plan.Steps {
		verb := "change"
		if s.Create {
			verb = "create"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", verb, s.Package, s.Version))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
