package measure

import "math"

// The measures that can have a limit.
const (
	// MeasureRequests counts all requests.
	MeasureRequests = "requests"
	// MeasureChanges counts writes, statuses and events.
	MeasureChanges = "writes, statuses, events"
	// MeasureSeconds is the time from cause to effect.
	MeasureSeconds = "seconds"
	// MeasureRssAnon is the manager's anonymous memory.
	MeasureRssAnon = "RssAnon, MiB"
	// MeasureCPU is the manager's processor time in seconds.
	MeasureCPU = "CPU, s"
	// MeasureP50 is the median delay between two phases, in milliseconds.
	MeasureP50 = "p50, ms"
	// MeasureP99Ratio is its 99th percentile relative to an independent watcher's.
	MeasureP99Ratio = "p99 by the watcher's"
	// MeasureLargest is the size of the largest object of our own kinds.
	MeasureLargest = "largest object, KiB"
	// MeasureSlices is the number of written slices.
	MeasureSlices = "slices written"
	// MeasureLater is the delay of a neighbour's availability, in seconds, compared with a run on
	// its own.
	MeasureLater = "seconds later than alone"
)

// Limit is one figure of the budget.
type Limit struct {
	Measure string
	AtMost  float64
}

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20
	// smallPackage is the maximum number of objects of a package with the budget of a small one.
	smallPackage = 100
	// fewObjects is the number of objects of a package below which its own requests outweigh the
	// requests for its objects.
	fewObjects = 10
	thousand   = 1000
	// largestObject is the limit, in KiB, for an object of our own kinds: a third of etcd's limit.
	largestObject = 512
	// offersMemory is the limit of the manager, in MiB, after a repository was published.
	offersMemory = 128
)

// Budget returns the limits of a scenario from docs/design/budget.md. It reads only the slices of
// the measurement, and whether there are figures of stored objects.
func Budget(scenario string, w Workload, raw RawTimes, m Measurement) []Limit {
	n, packages := float64(w.Total()), float64(w.Packages)
	switch scenario {
	case Install:
		return append(installBudget(w, raw, m.Slices), storedBudget(m, 0)...)
	case Rest:
		return []Limit{{MeasureRequests, 0}, {MeasureRssAnon, restMemory(w)}, {MeasureCPU, restCPU(w)}}
	case Drift, Recreate:
		return []Limit{{MeasureRequests, 3}, {MeasureSeconds, correctionSeconds(w)}}
	case Upgrade:
		limits := append([]Limit{{MeasureRequests, rollRequests(w, packages)}}, rollSeconds(w)...)
		return append(limits, storedBudget(m, 1)...)
	case Raise:
		return append([]Limit{{MeasureRequests, rollRequests(w, packages) + n - packages}}, rollSeconds(w)...)
	case UpgradeAll: // the first change of an object that a POST created takes two more: a read, and a patch of managedFields
		return []Limit{{MeasureRequests, rollRequests(w, n) + 2*n + float64(w.slices())}}
	case RaiseAll: // it comes after UpgradeAll; each slice is new as well
		return []Limit{{MeasureRequests, rollRequests(w, n) + float64(w.slices())}}
	case History:
		return []Limit{{MeasureRequests, float64(revisions) * rollRequests(w, packages)}, {MeasureRssAnon, historyMemory(w)}}
	case Restart:
		return []Limit{{MeasureChanges, 0}, {MeasureSeconds, 5}}
	case Missed:
		return []Limit{{MeasureSeconds, 5}}
	case Delete:
		return deleteBudget(w, raw, m.Slices)
	case Publish:
		return []Limit{{MeasureRequests, packages + 3}, {MeasureRssAnon, offersMemory}}
	case Refresh:
		return []Limit{{MeasureRequests, 0}}
	case NewVersion:
		return []Limit{{MeasureRequests, 3}, {MeasureRssAnon, offersMemory}}
	case Transitions:
		return []Limit{{MeasureP50, 20}, {MeasureP99Ratio, 5}}
	case Neighbour:
		return []Limit{{MeasureLater, 1}}
	}

	return nil
}

// storedBudget is the limit for one package's objects of our own kinds, and for the number of
// written slices; 0 means unlimited.
func storedBudget(m Measurement, written float64) []Limit {
	if m.Figures == nil {
		return nil
	}
	limits := []Limit{{MeasureLargest, largestObject}}
	if written > 0 {
		limits = append(limits, Limit{MeasureSlices, written})
	}
	return limits
}

func installBudget(w Workload, raw RawTimes, slices int) []Limit {
	n := float64(w.Total())
	switch {
	case w.Packages > 1 && w.Objects < fewObjects:
		return []Limit{{MeasureRequests, 5 * n}, {MeasureSeconds, 25}}
	case w.Packages > 100:
		return []Limit{{MeasureRequests, 2.5 * n}}
	case w.Packages > 1:
		return []Limit{{MeasureRequests, 2.5 * n}, {MeasureSeconds, 3}}
	case n <= smallPackage:
		return []Limit{{MeasureRequests, 1.3*n + 12}, {MeasureSeconds, 0.3}}
	default:
		return []Limit{{MeasureRequests, max(1.05*n, n+2*float64(slices)) + 40}, {MeasureSeconds, 2 * raw.CreateSeconds}}
	}
}

// correctionSeconds is the time for a correction, whose decision covers all objects.
func correctionSeconds(w Workload) float64 { return 0.05 * (1 + math.Floor(float64(w.Objects)/5000)) }

// rollRequests is the budget of a new revision of every package with this many changed objects.
func rollRequests(w Workload, changed float64) float64 { return 2*changed + float64(25*w.Packages) }

// rollSeconds is the time to roll out the revision of one package. There is no figure for more than
// a thousand objects.
func rollSeconds(w Workload) []Limit {
	if w.Packages > 1 || w.Objects > thousand {
		return nil
	}
	return []Limit{{MeasureSeconds, 0.5}}
}

// deleteBudget is the budget of a large package, and N + 2 S + 20 for all others, with the slices
// of all revisions.
func deleteBudget(w Workload, raw RawTimes, slices int) []Limit {
	n := float64(w.Total())
	if w.Packages > 1 {
		return []Limit{{MeasureRequests, n + 2*float64(slices) + 20*float64(w.Packages)}}
	}
	limits := []Limit{{MeasureRequests, max(1.05*n+40, n+2*float64(slices)+20)}}
	if n <= smallPackage {
		limits[0].AtMost = n + 2*float64(slices) + 20
	}
	if w.Bytes == 0 { // slices of large objects take longer
		limits = append(limits, Limit{MeasureSeconds, 1.5*raw.DeleteSeconds + 0.5})
	}
	return limits
}

// historyMemory is the limit of the manager, in MiB, with ten revisions of history.
func historyMemory(w Workload) float64 {
	if w.Packages >= thousand {
		return 160
	}
	return restMemory(w)
}

// restMemory is the limit of the manager at rest, in MiB.
func restMemory(w Workload) float64 {
	if w.Total() <= thousand {
		return 40
	}
	return 90
}

// restCPU is the limit of the manager's processor time at rest, in seconds. Garbage is collected
// and returned to the system once, which takes time in proportion to the objects.
func restCPU(w Workload) float64 { return 1 + math.Floor(float64(w.Total())/10_000) }

// Value returns the value of a measure.
func (m Measurement) Value(measure string) float64 {
	switch measure {
	case MeasureRequests:
		return float64(m.Count.Requests)
	case MeasureChanges:
		return float64(m.Count.Changes())
	case MeasureSeconds:
		return m.Span.Seconds()
	case MeasureRssAnon:
		return m.Memory.RssAnon
	case MeasureCPU:
		return m.CPU.Seconds()
	default:
		return m.Figures[measure]
	}
}

// Exceeded returns the limits that a measurement exceeds.
func Exceeded(limits []Limit, m Measurement) []Limit {
	var over []Limit
	for _, l := range limits {
		if m.Value(l.Measure) > l.AtMost {
			over = append(over, l)
		}
	}
	return over
}
