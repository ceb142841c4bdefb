package measure

import (
	"fmt"
	"strings"
	"time"

	"lockstep.run/lockstep/e2e/sandbox"
)

// TransitionTimes are the delays between phases. All start with the arrival of the request that
// makes the last object of a phase ready.
type TransitionTimes struct {
	Count int
	// Manager is the delay until the first write of the next phase arrives, Watcher until an
	// independent watcher receives the event, and Write until the request itself is answered.
	Manager, Watcher, Write Quantiles
}

// Ratio is the 99th percentile of the manager's delay relative to the watcher's.
func (t TransitionTimes) Ratio() float64 {
	if t.Watcher.P99 == 0 {
		return 0
	}
	return t.Manager.P99 / t.Watcher.P99
}

// notes describes the delays in words.
func (t TransitionTimes) notes() []string {
	notes := []string{fmt.Sprintf("%d transitions, from the arrival of the request that makes the last object of a phase ready; p99 is %.2f times the watcher's", t.Count, t.Ratio())}
	for _, until := range []struct {
		what string
		q    Quantiles
	}{{"the request is answered", t.Write}, {"an independent watcher has the event", t.Watcher}, {"the first write of the next phase arrives", t.Manager}} {
		notes = append(notes, fmt.Sprintf("until %s: p50 %.1f, p90 %.1f, p99 %.1f, longest %.1f ms", until.what, until.q.P50, until.q.P90, until.q.P99, until.q.Max))
	}
	return notes
}

// transitionTimes returns the delays from the audit log, and from the times at which the watcher
// saw each gate ready. The last phase has none.
func transitionTimes(entries []sandbox.Entry, seen map[string]time.Time) TransitionTimes {
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
		return TransitionTimes{}
	}

	return TransitionTimes{Count: len(manager), Manager: quantilesOf(manager), Watcher: quantilesOf(watcher), Write: quantilesOf(write)}
}

func phaseKey(pkg string, phase int) string { return fmt.Sprintf("%s/%d", pkg, phase) }

// phaseOf parses package and phase from the name of an object, as objectName makes it.
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
