package measure

import "slices"

// The names of the scenarios.
const (
	// Install is from the first package's creation to the last rollout.
	Install = "install"
	// Rest is a while without changes.
	Rest = "rest"
	// Drift is another client's change of a field of one object.
	Drift = "drift"
	// Recreate is another client's delete of one object.
	Recreate = "recreate"
	// Upgrade is a new revision with a change of one object in each package.
	Upgrade = "upgrade"
	// UpgradeAll is a new revision with a change of every object.
	UpgradeAll = "upgrade-all"
	// Raise is Upgrade with a raised spec.version.
	Raise = "raise"
	// RaiseAll is UpgradeAll with a raised spec.version.
	RaiseAll = "raise-all"
	// History is ten more revisions, one after the other.
	History = "history"
	// Restart replaces a process that stopped gracefully.
	Restart = "restart"
	// Missed is another client's change of a field of one object before such a process starts.
	Missed = "missed"
	// Delete deletes all packages.
	Delete = "delete"
	// Transitions is an install during which another client opens phase after phase.
	Transitions = "transitions"
	// Neighbour is the install of small packages next to a large one.
	Neighbour = "neighbour"
	// Publish adds a repository.
	Publish = "publish"
	// Refresh is a while without changes in the source of the repository.
	Refresh = "refresh"
	// NewVersion adds a version of one package to the repository.
	NewVersion = "new-version"
)

// Scenario is a scenario with packages.
type Scenario struct {
	Name string
	// About describes the scenario in a few words.
	About string
	run   func(*Cluster) Measurement
}

// scenarios are in the order they run in.
var scenarios = []Scenario{
	{Install, "the packages are created", (*Cluster).install},
	{Publish, "a repository is added", (*Cluster).publish},
	{Transitions, "another client opens one phase after the other", (*Cluster).transitions},
	{Neighbour, "50 small packages are installed alone and next to a large one", (*Cluster).neighbour},
	{Rest, "the manager is idle for a while", (*Cluster).rest},
	{Refresh, "the source of the repository is fetched again, unchanged", (*Cluster).refresh},
	{NewVersion, "the repository has a new version of one package", (*Cluster).newVersion},
	{Drift, "another client changes a field of one object", (*Cluster).drift},
	{Recreate, "another client deletes one object", (*Cluster).recreate},
	{Upgrade, "a new image with a change of one object in each package", (*Cluster).upgrade},
	{UpgradeAll, "a new image with a change of every object", (*Cluster).upgradeAll},
	{Raise, "as upgrade, with a raised spec.version", (*Cluster).raise},
	{RaiseAll, "as upgrade-all, with a raised spec.version", (*Cluster).raiseAll},
	{History, "ten more revisions, as upgrade", (*Cluster).history},
	{Restart, "the manager stops gracefully and a new one starts", (*Cluster).restart},
	{Missed, "another client changes a field of one object between two managers", (*Cluster).missed},
	{Delete, "the packages are deleted", (*Cluster).delete},
}

// special are the scenarios of workloads of special kinds.
var special = map[string][]string{
	Gates: {Transitions}, Unready: {Neighbour}, Offers: {Publish, Refresh, NewVersion, Restart},
}

// Scenarios returns all scenarios in the order they run in.
func Scenarios() []Scenario { return slices.Clone(scenarios) }

// Scenarios returns the scenarios for the workload, in their order. The first one starts from
// nothing; all others need its result.
func (w Workload) Scenarios() []Scenario {
	own := special[w.Kind]
	return slices.DeleteFunc(Scenarios(), func(s Scenario) bool {
		if own != nil {
			return !slices.Contains(own, s.Name)
		}
		return slices.Contains([]string{Publish, Transitions, Neighbour, Refresh, NewVersion}, s.Name)
	})
}

// Run plays the scenario and measures it.
func (s Scenario) Run(c *Cluster) Measurement {
	c.tb.Helper()
	m := s.run(c)
	c.heap(s.Name)
	return m
}

// ByName returns a scenario.
func ByName(name string) (Scenario, bool) {
	i := slices.IndexFunc(scenarios, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return scenarios[i], true
}
