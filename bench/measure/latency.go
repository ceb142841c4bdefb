package measure

import (
	"fmt"
	"strings"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

// TransitionTimes are the delays between phases. All begin with the arrival of
// the request that makes the last object of a phase ready.
type TransitionTimes struct {
	Count int `json:"count"`
	// Manager is the delay to the arrival of the first write of the next phase.
	Manager Quantiles `json:"manager"`
	// Watcher is the delay to the receipt of the event by an independent watcher.
	Watcher Quantiles `json:"watcher"`
	// Write is the time that the API server needed for the request itself.
	Write Quantiles `json:"write"`
}

// Ratio is the 99th percentile of the manager's delay by that of the watcher's.
func (t TransitionTimes) Ratio() float64 {
	if t.Watcher.P99 == 0 {
		return 0
	}
	return t.Manager.P99 / t.Watcher.P99
}

// transitionTimes returns the delays from the audit log, and from the times at
// which the watcher saw each gate ready. A phase that nothing follows has none.
func transitionTimes(entries []sandbox.Entry, seen map[string]time.Time) *TransitionTimes {
	opened, first := map[string]sandbox.Entry{}, map[string]time.Time{}
	for _, e := range entries {
		if !sandbox.Writes()(e) || !succeeded(e) {
			continue
		}
		pkg, phase, ok := phaseOf(e.Object.Name)
		switch {
		case !ok:
		case byAdmin(e) && isGate(e.Object.Name) && statusOf(e):
			opened[e.Object.Name] = e
		case byManager(e):
			key := phaseKey(pkg, phase)
			if at, known := first[key]; !known || e.Received.Before(at) {
				first[key] = e.Received
			}
		}
	}
	var manager, watcher, write []time.Duration
	for name, e := range opened {
		pkg, phase, _ := phaseOf(name)
		next, begun := first[phaseKey(pkg, phase+1)]
		at, known := seen[name]
		if !begun || !known {
			continue
		}
		manager = append(manager, next.Sub(e.Received))
		watcher = append(watcher, at.Sub(e.Received))
		write = append(write, e.Done.Sub(e.Received))
	}
	if len(manager) == 0 {
		return &TransitionTimes{}
	}
	return &TransitionTimes{Count: len(manager), Manager: quantilesOf(manager), Watcher: quantilesOf(watcher), Write: quantilesOf(write)}
}

func phaseKey(pkg string, phase int) string { return fmt.Sprintf("%s/%d", pkg, phase) }

// phaseOf reads package and phase from the name of an object, as objectName
// makes it.
func phaseOf(name string) (pkg string, phase int, ok bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 4 || parts[0] != "shop" {
		return "", 0, false
	}
	if _, err := fmt.Sscanf(parts[2], "%d", &phase); err != nil {
		return "", 0, false
	}
	return parts[0] + "-" + parts[1], phase, true
}
