package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep.run/lockstep/bench/measure"
)

// preset is a workload with a name.
type preset struct {
	name      string
	about     string
	workload  measure.Workload
	scenarios []string
	// rest is the length of the scenario rest; memory is read after a minute.
	rest time.Duration
	// byDefault means that it is measured if no workload is named.
	byDefault bool
}

// usual are the scenarios of every package that is not of a special kind.
var usual = []string{measure.Rest, measure.Drift, measure.Recreate, measure.Upgrade, measure.Restart, measure.Delete}

// rolls are scenarios with more revisions.
var rolls = []string{measure.UpgradeAll, measure.Raise, measure.RaiseAll, measure.History}

var presets = []preset{
	{"50", "50 objects in 5 phases", measure.Workload{Objects: 50, Phases: 5, Packages: 1}, slices.Concat(usual, rolls[:3]), 20 * time.Second, true},
	{"1000", "1,000 objects in 10 phases", measure.Workload{Objects: 1000, Phases: 10, Packages: 1}, slices.Concat(usual, rolls), time.Minute, true},
	{"100x10", "100 packages of 10 objects, together", measure.Workload{Objects: 10, Phases: 2, Packages: 100}, usual, 20 * time.Second, true},
	{"10000", "10,000 objects in 10 phases", measure.Workload{Objects: 10000, Phases: 10, Packages: 1}, append(usual, measure.History), time.Minute, true},
	{"20000", "20,000 objects with 20 MiB of YAML in 10 phases", measure.Workload{Objects: 20000, Phases: 10, Packages: 1, Bytes: 800}, usual, time.Minute, false},
	{"1000x10", "1,000 packages of 10 objects, together", measure.Workload{Objects: 10, Phases: 2, Packages: 1000}, []string{measure.Rest, measure.History, measure.Restart, measure.Missed, measure.Delete}, time.Minute, true},
	{"phases", "200 transitions from one phase to the next", measure.Workload{Objects: 105, Phases: 21, Packages: 10, Kind: measure.Gates}, nil, time.Minute, true},
	{"neighbour", "50 packages of 5 objects next to one of 10,000 that fail to become ready", measure.Workload{Objects: 10000, Phases: 1, Packages: 1, Kind: measure.Unready}, nil, time.Minute, false},
	{"repository", "1,000 packages of 20 versions in one repository", measure.Workload{Objects: 20, Phases: 1, Packages: 1000, Kind: measure.Offers}, []string{measure.Refresh, measure.NewVersion, measure.Restart}, time.Minute, true},
}

// choose returns the presets with these names. "all" means all, and an empty list the defaults.
func choose(names []string) ([]preset, error) {
	var chosen []preset
	for _, p := range presets {
		if slices.Contains(names, "all") || len(names) == 0 && p.byDefault {
			chosen = append(chosen, p)
		}
	}

	if len(chosen) > 0 {
		return chosen, nil
	}

	for _, name := range names {
		i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown workload %q; --help lists them", name)
		}
		chosen = append(chosen, presets[i])
	}

	return chosen, nil
}

// plan returns the scenarios to run, in their order: the workload's first one, and the requested
// ones.
func (p preset) plan() ([]measure.Scenario, error) {
	w := p.workload
	if w.Objects < 1 || w.Phases < 1 || w.Packages < 1 || w.Objects%w.Phases != 0 {
		return nil, fmt.Errorf("cannot spread %d objects evenly over %d phases in %d packages", w.Objects, w.Phases, w.Packages)
	}

	var plan []measure.Scenario
	possible := w.Scenarios()
	for i, s := range possible {
		if i == 0 || slices.Contains(p.scenarios, s.Name) {
			plan = append(plan, s)
		}
	}

	for _, name := range p.scenarios {
		if !slices.ContainsFunc(possible, func(s measure.Scenario) bool { return s.Name == name }) {
			return nil, fmt.Errorf("workload %s cannot be measured in a scenario %q", p.name, name)
		}
	}

	return plan, nil
}

func describePresets() string {
	var b strings.Builder
	for _, p := range presets {
		star := " "
		if p.byDefault {
			star = "*"
		}
		fmt.Fprintf(&b, " %s %-11s %s\n", star, p.name, p.about)
	}
	return b.String()
}

func describeScenarios() string {
	var b strings.Builder
	for _, s := range measure.Scenarios() {
		fmt.Fprintf(&b, "   %-11s %s\n", s.Name, s.About)
	}
	return b.String()
}
