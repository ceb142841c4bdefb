package dependencies

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"lockstep.run/lockstep/internal/limits"
)

// Child returns the instance that is installed for a dependency.
func Child(dependent Instance, dependency string) Instance {
	return Instance{dependent.Namespace, shortened(dependent.Name + "." + dependency)}
}

// shortened returns a name of at most 63 bytes, which is valid as the value or the name of a label: with a hash in place
// of the rest of a longer one.
func shortened(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return strings.TrimRight(name[:validation.LabelValueMaxLength-len(suffix)], "-.") + suffix
}

// LabelOf returns the last part of the label of a dependent on a package in namespace.
func LabelOf(dependent Instance, namespace string) string {
	if dependent.Namespace == namespace {
		return shortened(dependent.Name)
	}
	sum := sha256.Sum256([]byte(dependent.Namespace))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return shortened(strings.TrimRight(dependent.Name[:min(len(dependent.Name), validation.LabelValueMaxLength-len(suffix))], "-.") + suffix)
}

// cycle returns the path by which the satisfier of a need depends on the need's own dependents; empty where it does not.
func (s *search) cycle(n need, name string, i Instance) string {
	for k, h := range n.path {
		if h.Instance == i {
			return arrows(append(slices.Clip(n.path[k:]), hop{i, h.name}))
		}
	}
	back := s.wayBack(i, n.path, map[Instance]bool{})
	if back == nil {
		return ""
	}
	last := back[len(back)-1]
	for k, h := range n.path {
		if h.Instance == last.Instance {
			return arrows(append(append(slices.Clip(n.path[k:]), hop{i, name}), back...))
		}
	}
	return ""
}

// wayBack returns the recorded requirements that lead from an instance to one of the path.
func (s *search) wayBack(from Instance, path []hop, seen map[Instance]bool) []hop {
	in := s.byName[from]
	if in == nil || seen[from] {
		return nil
	}
	seen[from] = true
	for _, r := range in.Requirements {
		if r.Satisfier == nil {
			continue
		}
		for _, h := range path {
			if h.Instance == *r.Satisfier {
				return []hop{h}
			}
		}
		if way := s.wayBack(*r.Satisfier, path, seen); way != nil {
			name := r.Satisfier.Name
			if next := s.byName[*r.Satisfier]; next != nil && next.Package != "" {
				name = next.Package
			}
			return append([]hop{{*r.Satisfier, name}}, way...)
		}
	}
	return nil
}

func arrows(path []hop) string {
	names := make([]string, len(path))
	for i, h := range path {
		if names[i] = h.name; names[i] == "" {
			names[i] = h.Name
		}
	}
	return strings.Join(names, " → ")
}

// mismatch explains why the version of an instance does not fit a need and is not changed.
func (s *search) mismatch(st *state, n need, i Instance, name, version string) string {
	text := fmt.Sprintf("%s is installed as %s in %s, which is not in %q (required by %s)", name, i, version, rangeOf(&n.Dependency).Version, n.way())
	others := []string{}
	for _, d := range s.dependents(st, i) {
		if r := rangeOf(&d.Dependency).Version; len(others) < limits.NearestVersions {
			others = append(others, fmt.Sprintf("%q by %s", r, d.Dependent))
		}
	}
	if len(others) > 0 {
		text += "; it is also required in " + strings.Join(others, ", ")
	}
	in := s.byName[i]
	switch {
	case in == nil:
	case s.UserManaged:
		return text + ". Change it: spec.dependencies.management is User."
	case !in.Changeable:
		return text + ". Change its version, or set spec.upgradePolicy.allowDependents in it where it has a packageRef."
	case len(s.fits(name, rangeOf(&n.Dependency), "")) == 0:
		return text + ". No version that fits is offered: " + s.choice(name, rangeOf(&n.Dependency), "").Message
	}
	return text + ". No higher version that is offered fits all of them: change one of these ranges."
}

// way names what requires a need.
func (n need) way() string {
	if len(n.path) == 1 {
		return n.Dependent.String()
	}
	names := make([]string, 0, len(n.path))
	for _, h := range n.path[1:] {
		names = append(names, h.name)
	}
	return n.path[0].String() + ", path " + strings.Join(names, " → ")
}

// explained returns the message of a failure, with the way to it.
func (l *link) explained() string {
	if len(l.path) == 1 || strings.Contains(l.outcome.Message, " → ") {
		return l.outcome.Message
	}
	names := make([]string, 0, len(l.path))
	for _, h := range l.path[1:] {
		names = append(names, h.name)
	}
	return "required by " + strings.Join(names, " → ") + ": " + l.outcome.Message
}

func tooLong() string {
	return fmt.Sprintf("No versions that fit were found within %d steps, which is the limit. Narrow the ranges of versions, or install some of the dependencies by hand.", limits.DependencySteps)
}

func (s *search) awaitedNames() []string { return slices.Sorted(maps.Keys(s.awaited)) }
