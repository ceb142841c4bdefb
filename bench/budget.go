package main

// workload is what is installed: packages of a number of ConfigMaps each.
type workload struct {
	// Objects of one package, in Phases of equal size.
	Objects  int `json:"objects"`
	Phases   int `json:"phases"`
	Packages int `json:"packages"`
}

// total is the number of objects of all packages.
func (w workload) total() int { return w.Objects * w.Packages }

// Measures that a limit may be set on.
const (
	measureRequests = "requests"
	measureWrites   = "writes"
	measureSeconds  = "seconds"
	measureRssAnon  = "rssAnonBytes"
)

// limit is one figure of the budget.
type limit struct {
	Measure string  `json:"measure"`
	AtMost  float64 `json:"atMost"`
}

const (
	mebibyte = 1 << 20
	// smallInstall is the number of objects up to which a package has the budget
	// of a small one.
	smallInstall = 100
)

// budget returns the limits of a scenario. Scenarios that it has no figures for,
// such as most of those with several packages, have none.
func budget(scenario string, w workload, raw rawTimes) []limit {
	n := float64(w.total())
	if w.Packages > 1 {
		switch scenario {
		case scenarioInstall:
			return []limit{{measureRequests, 2.5 * n}, {measureSeconds, 3}}
		case scenarioRest:
			return []limit{{measureRequests, 0}}
		case scenarioDrift, scenarioRecreate:
			return []limit{{measureRequests, 3}, {measureSeconds, 0.05}}
		case scenarioRestart:
			return []limit{{measureWrites, 0}, {measureSeconds, 5}}
		}
		return nil
	}
	switch scenario {
	case scenarioInstall:
		if n <= smallInstall {
			return []limit{{measureRequests, 1.3*n + 12}, {measureSeconds, 0.3}}
		}
		return []limit{{measureRequests, 1.05*n + 40}, {measureSeconds, 2 * raw.CreateSeconds}}
	case scenarioRest:
		return []limit{{measureRequests, 0}, {measureRssAnon, restMemory(w)}}
	case scenarioDrift, scenarioRecreate:
		return []limit{{measureRequests, 3}, {measureSeconds, 0.05}}
	case scenarioUpgrade:
		return []limit{{measureRequests, 2*changedObjects + 25}, {measureSeconds, 0.5}}
	case scenarioRestart:
		return []limit{{measureWrites, 0}, {measureSeconds, 5}}
	case scenarioDelete:
		return []limit{{measureRequests, 1.05*n + 40}, {measureSeconds, 1.5*raw.DeleteSeconds + 0.5}}
	}
	return nil
}

// restMemory is what the manager may hold at rest.
func restMemory(w workload) float64 {
	if w.total() <= 1000 {
		return 40 * mebibyte
	}
	return 90 * mebibyte
}

// row is the outcome of one scenario.
type row struct {
	Scenario string `json:"scenario"`
	count
	PerObject float64 `json:"requestsPerObject"`
	// Seconds from cause to effect; for rest, its length.
	Seconds float64 `json:"seconds"`
	// RawSeconds is what the bare API server needed for as many creates or deletes,
	// and Raw how many times that the scenario took; 0 where nothing compares.
	RawSeconds float64 `json:"rawSeconds,omitempty"`
	Raw        float64 `json:"ratioToRaw,omitempty"`
	// CPUSeconds of the manager, until it was quiet again.
	CPUSeconds float64 `json:"managerCPUSeconds"`
	memory
	Budget []limit `json:"budget,omitempty"`
}

// measured returns the value that a limit is on.
func (r row) measured(measure string) float64 {
	switch measure {
	case measureRequests:
		return float64(r.Requests)
	case measureWrites:
		return float64(r.Writes + r.Statuses + r.Events)
	case measureSeconds:
		return r.Seconds
	default:
		return float64(r.RssAnon)
	}
}

// limitOf returns the limit on a measure.
func (r row) limitOf(measure string) (float64, bool) {
	for _, l := range r.Budget {
		if l.Measure == measure {
			return l.AtMost, true
		}
	}
	return 0, false
}

// exceeded returns the limits that the row is over.
func (r row) exceeded() []limit {
	var over []limit
	for _, l := range r.Budget {
		if r.measured(l.Measure) > l.AtMost {
			over = append(over, l)
		}
	}
	return over
}

// newRow puts together what was measured in a scenario.
func newRow(scenario string, w workload, raw rawTimes, m measurement) row {
	r := row{
		Scenario: scenario, count: m.count, PerObject: float64(m.count.Requests) / float64(w.total()),
		Seconds: m.span.Seconds(), CPUSeconds: m.cpu.Seconds(), memory: m.memory,
		Budget: budget(scenario, w, raw),
	}
	switch scenario {
	case scenarioInstall:
		r.RawSeconds = raw.CreateSeconds
	case scenarioDelete:
		r.RawSeconds = raw.DeleteSeconds
	}
	if r.RawSeconds > 0 {
		r.Raw = r.Seconds / r.RawSeconds
	}
	return r
}
