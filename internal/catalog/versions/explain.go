package versions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// explainChosen is stable: it changes only with the chosen version, and with the reasons that
// exclude higher ones.
func (s *selection) explainChosen(i int) string {
	text := s.candidates[i].Version + " is the highest version"
	if s.constraint.text != "" {
		text += " within " + quoted(s.constraint.text)
	}
	if retracted := s.candidates[i].Retracted; retracted != "" {
		text += "; it is retracted: " + shortened(retracted)
	}
	if higher := s.nearest(1, func(j int) bool { return s.compare(j, i) > 0 && s.isUnexpected(j) }); len(higher) > 0 {
		text += "; " + higher[0]
	}
	return text
}

// isUnexpected reports whether a candidate was rejected for a reason other than the selection
// itself.
func (s *selection) isUnexpected(i int) bool {
	if s.considered[i].Why == "" {
		return false
	}
	switch s.filters[s.stage[i]].name {
	case FilterVersion, FilterPrereleases, FilterConstraint:
		return false
	}
	return s.isWithin(i)
}

// isWithin reports whether a candidate is within the constraint, even if an earlier filter rejected
// it.
func (s *selection) isWithin(i int) bool {
	at := slices.IndexFunc(s.filters, func(f filter) bool { return f.name == FilterConstraint })
	return s.stage[i] > at || s.stage[i] < at && s.parsed[i] != nil && s.constraint.contains(s.parsed[i])
}

// explainNone explains, filter by filter, how many versions remained, and names the nearest ones.
func (s *selection) explainNone(remaining []Remaining) string {
	var steps []string
	for _, r := range remaining {
		steps = append(steps, fmt.Sprintf("%d %s", r.Left, s.step(r.Filter)))
	}
	text := fmt.Sprintf("no %s fits: of %d, these are left: %s", s.noun, len(s.candidates), strings.Join(steps, ", "))
	if nearest := s.nearest(limits.NearestVersions, func(int) bool { return true }); len(nearest) > 0 {
		text += "; nearest: " + strings.Join(nearest, ", ")
	}
	// Only the missing setting for prereleases excludes such a version.
	wouldFit := func(c Considered) bool {
		return s.filters[s.stage[c.Index]].name == FilterPrereleases && s.isWithin(c.Index)
	}
	if s.request.Selection.Prereleases == nil && slices.ContainsFunc(s.considered, wouldFit) {
		text += "; to let prereleases take part, set " + s.field + ".prereleases: {}"
	}
	return text + s.stays()
}

// explainDowngrade explains why the highest version that fits is not chosen.
func (s *selection) explainDowngrade(i int) string {
	version := s.candidates[i].Version
	fate := "is no longer offered"
	for _, c := range s.considered {
		if s.parsed[c.Index] != nil && Compare(s.parsed[c.Index], s.lastParsed) == 0 {
			fate = c.Why
		}
	}
	return fmt.Sprintf("%s is the highest version that fits, lower than %s, which was chosen before and %s; to go down to it, set spec.downgradePolicy: Allow",
		version, s.last, fate) + s.stays()
}

// stays describes the fate of the installed version.
func (s *selection) stays() string {
	if s.request.Installed == "" {
		return ""
	}
	return "; " + shortened(s.request.Installed) + " stays installed"
}

// step describes the versions that passed a filter.
func (s *selection) step(f Filter) string {
	switch f {
	case FilterVersion:
		return "as semantic versions"
	case FilterPrereleases:
		return "after prereleases"
	case FilterPlatforms:
		return "for this platform"
	case FilterKubernetes:
		return "for Kubernetes " + s.request.Platform.Kubernetes
	case FilterOpenShift:
		return "for OpenShift " + s.request.Platform.OpenShift
	case FilterManager:
		return "for Lockstep " + s.request.Platform.Manager
	case FilterConstraint:
		return "within " + quoted(s.constraint.text)
	case FilterAPI:
		return "that provide " + s.request.API.String()
	case FilterInstallable:
		return "that can be installed"
	}

	return "without retracted ones"
}

// nearest describes a few of the rejected candidates: first those within the constraint, then those
// that passed most filters, starting with the highest.
func (s *selection) nearest(n int, among func(i int) bool) []string {
	rank := make([]int, len(s.candidates))
	var best []int // sorted
	for i := range s.candidates {
		if s.considered[i].Why == "" || !among(i) {
			continue
		}
		rank[i] = s.stage[i]
		if s.isWithin(i) {
			rank[i] += len(s.filters)
		}
		at, _ := slices.BinarySearchFunc(best, i, func(a, b int) int { return cmp.Or(rank[b]-rank[a], s.compare(b, a)) })
		if at < n {
			best = slices.Insert(best, at, i)
			best = best[:min(n, len(best))]
		}
	}

	var texts []string
	for _, i := range best {
		texts = append(texts, shortened(s.candidates[i].Version)+" "+s.considered[i].Why)
	}

	return texts
}
