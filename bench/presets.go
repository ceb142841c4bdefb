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
	// takes is about how long it takes on two CPUs.
	takes time.Duration
	// byDefault means that it is measured when no workload is named.
	byDefault bool
}

// every scenario that works on an installed package, in their order.
var every = []string{
	measure.Install, measure.Rest, measure.Drift, measure.Recreate, measure.Upgrade, measure.UpgradeAll, measure.Raise, measure.RaiseAll,
	measure.History, measure.Restart, measure.Delete,
}

var presets = []preset{
	{
		"50", "50 objects in 5 phases", measure.Workload{Objects: 50, Phases: 5, Packages: 1},
		without(every, measure.History), 20 * time.Second, 80 * time.Second, true,
	},
	{
		"1000", "1,000 objects in 10 phases", measure.Workload{Objects: 1000, Phases: 10, Packages: 1},
		without(every, measure.UpgradeAll, measure.Raise, measure.RaiseAll, measure.History), time.Minute, 2 * time.Minute, true,
	},
	{
		"1000-revisions", "1,000 objects in 10 phases, of which many revisions are made", measure.Workload{Objects: 1000, Phases: 10, Packages: 1},
		[]string{measure.Install, measure.Upgrade, measure.UpgradeAll, measure.Raise, measure.RaiseAll, measure.History, measure.Restart}, time.Minute, 3 * time.Minute, true,
	},
	{
		"100x10", "100 packages of 10 objects, together", measure.Workload{Objects: 10, Phases: 2, Packages: 100},
		append(without(every, measure.UpgradeAll, measure.Raise, measure.RaiseAll, measure.History), measure.Replay), 20 * time.Second, 100 * time.Second, true,
	},
	{
		"10000", "10,000 objects in 10 phases", measure.Workload{Objects: 10000, Phases: 10, Packages: 1},
		without(every, measure.UpgradeAll, measure.Raise, measure.RaiseAll), time.Minute, 6 * time.Minute, true,
	},
	{
		"20000", "20,000 objects with 20 MiB of YAML in 10 phases", measure.Workload{Objects: 20000, Phases: 10, Packages: 1, Bytes: 800},
		[]string{measure.Install, measure.Rest, measure.Drift, measure.Upgrade, measure.Restart, measure.Delete}, time.Minute, 5 * time.Minute, false,
	},
	{
		"1000x10", "1,000 packages of 10 objects, together", measure.Workload{Objects: 10, Phases: 2, Packages: 1000},
		[]string{measure.Install, measure.Rest, measure.Scrape, measure.History, measure.Restart, measure.Delete}, time.Minute, 8 * time.Minute, true,
	},
	{
		"phases", "200 transitions from one phase to the next", measure.Workload{Objects: 105, Phases: 21, Packages: 10, Kind: measure.Gates},
		[]string{measure.Transitions}, time.Minute, time.Minute, true,
	},
	{
		"1000x4", "1,000 packages of 4 objects, together", measure.Workload{Objects: 4, Phases: 2, Packages: 1000},
		append(without(every, measure.UpgradeAll, measure.Raise, measure.RaiseAll, measure.History), measure.Replay), time.Minute, 6 * time.Minute, false,
	},
	{
		"deployments", "100 Deployments with simulated pods in 5 phases", measure.Workload{Objects: 100, Phases: 5, Packages: 1, Kind: measure.Deployments},
		without(every, measure.History), 20 * time.Second, 2 * time.Minute, false,
	},
	{
		"neighbour", "50 packages of 5 objects beside one of 10,000 that fail to become ready",
		measure.Workload{Objects: 10000, Phases: 1, Packages: 1, Kind: measure.Unready}, []string{measure.Neighbour}, time.Minute, 2 * time.Minute, false,
	},
	{
		"repository", "1,000 packages of 20 versions in one repository",
		measure.Workload{Objects: 20, Phases: 1, Packages: 1000, Kind: measure.Offers}, offers, time.Minute, 90 * time.Second, true,
	},
}

// offers are the scenarios of repositories.
var offers = []string{measure.Publish, measure.Refresh, measure.NewVersion, measure.Restart}

func without(names []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(some, name) })
}

// choose returns the presets of the names; "all" is all, none is the defaults.
func choose(names []string) ([]preset, error) {
	if slices.Contains(names, "all") {
		return slices.Clone(presets), nil
	}
	var chosen []preset
	for _, p := range presets {
		if len(names) == 0 && p.byDefault {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown workload %q: want all, or some of %s", name, strings.Join(presetNames(), ", "))
		}
		chosen = append(chosen, presets[i])
	}
	return chosen, nil
}

func presetNames() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// validate refuses what cannot be measured.
func (p preset) validate() error {
	w := p.workload
	if w.Objects < 1 || w.Phases < 1 || w.Packages < 1 || w.Objects%w.Phases != 0 {
		return fmt.Errorf("cannot spread %d objects evenly over %d phases in %d packages", w.Objects, w.Phases, w.Packages)
	}
	if len(p.scenarios) == 0 {
		return fmt.Errorf("workload %s: no scenario to measure", p.name)
	}
	only := map[string][]string{measure.Gates: {measure.Transitions}, measure.Unready: {measure.Neighbour}, measure.Offers: offers}
	for _, name := range p.scenarios {
		s, known := measure.ByName(name)
		if !known {
			return fmt.Errorf("unknown scenario %q: want some of %s", name, strings.Join(scenarioNames(), ", "))
		}
		own, special := only[w.Kind]
		ordinary := slices.Contains(append(every, measure.Replay, measure.Scrape), s.Name)
		if special && !slices.Contains(own, s.Name) || !special && !ordinary {
			return fmt.Errorf("workload %s cannot be measured in scenario %s", p.name, s.Name)
		}
	}
	return nil
}

func scenarioNames() []string {
	var names []string
	for _, s := range measure.Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

// plan is the scenarios to run, in their order. What needs an install gets one,
// whether it was asked for or not.
func (p preset) plan() []measure.Scenario {
	installs := func(name string) bool { s, _ := measure.ByName(name); return s.Installs() }
	var plan []measure.Scenario
	for _, s := range measure.Scenarios() {
		asked := slices.Contains(p.scenarios, s.Name)
		first := map[bool]string{false: measure.Install, true: measure.Publish}[p.workload.Kind == measure.Offers]
		needed := s.Name == first && !slices.ContainsFunc(p.scenarios, installs)
		if asked || needed {
			plan = append(plan, s)
		}
	}
	return plan
}
