package repositories

import (
	"maps"
	"slices"
)

// noteConflicts records the conflicts of a package, which its repositories report.
func (s *reconciliation) noteConflicts(name string, conflicts map[string][]string) {
	if len(conflicts) == 0 {
		delete(s.conflicts, name)
		return
	}
	s.conflicts[name] = conflicts
}

// conflictsOf returns the versions that are not published as a repository has them; nil if that is
// unknown.
func (s *reconciliation) conflictsOf(repository string) []string {
	if s.states[repository].content == nil {
		return nil
	}
	all := []string{}
	for _, name := range slices.Sorted(maps.Keys(s.conflicts)) {
		all = append(all, s.conflicts[name][repository]...)
	}
	return all
}
