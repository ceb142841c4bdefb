package probes

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Needs are the fields that the probes of one kind read beyond the ones that [Trim] keeps anyway.
type Needs struct {
	// Paths are sorted keys from the root; no path is a prefix of another. A path ends at a list.
	Paths [][]string
	// Whole is set if a probe can read any field. Paths is nil then.
	Whole bool
}

// Needs returns the shared, read-only needs of a kind.
func (s *Set) Needs(gk schema.GroupKind) Needs {
	if s == nil {
		return Needs{}
	}
	return s.needs[gk]
}

// Covers reports whether an object trimmed to n has all fields that other needs.
func (n Needs) Covers(other Needs) bool {
	if n.Whole || other.Whole {
		return n.Whole
	}
	return !slices.ContainsFunc(other.Paths, func(path []string) bool {
		return !slices.ContainsFunc(n.Paths, func(kept []string) bool { return hasPrefix(path, kept) })
	})
}

// Union returns the needs of both, for a kind that several revisions probe.
func (n Needs) Union(other Needs) Needs {
	union := Needs{Paths: slices.Clone(n.Paths), Whole: n.Whole}
	union.merge(other)
	return union.normalised()
}

// add adds the paths of one probe; the empty path means the whole object.
func (n *Needs) add(paths [][]string) {
	for _, path := range paths {
		if len(path) == 0 {
			n.Whole = true
		}
		n.Paths = append(n.Paths, path)
	}
}

// merge adds the needs of another entry for the same kind. The result is normalised once, at the
// end.
func (n *Needs) merge(other Needs) {
	n.Whole = n.Whole || other.Whole
	n.Paths = append(n.Paths, other.Paths...)
}

// normalised drops paths that Trim always keeps and paths that another path includes.
func (n Needs) normalised() Needs {
	if n.Whole {
		return Needs{Whole: true}
	}

	paths := slices.DeleteFunc(slices.Clone(n.Paths), alwaysKept)
	slices.SortFunc(paths, slices.Compare[[]string])
	// In this order, every path follows its prefixes.
	kept := paths[:0]
	for _, path := range paths {
		if len(kept) == 0 || !hasPrefix(path, kept[len(kept)-1]) {
			kept = append(kept, path)
		}
	}

	if len(kept) == 0 {
		return Needs{}
	}

	return Needs{Paths: kept}
}

// hasPrefix reports whether a path is the prefix or lies below it, by whole keys.
func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}
