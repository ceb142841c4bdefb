package transport_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// often is how often a run says how far it is.
const often = 15 * time.Second

// progress logs how far a run is, with -v, until stop is called: where one hangs, or is
// ended from outside, the last line says where.
func (r *run) progress(t *testing.T) (stop func()) {
	if !testing.Verbose() {
		return func() {}
	}
	t.Logf("begins at %s; %s", time.Now().Format(time.TimeOnly), r.soFar())
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(often)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				t.Log(r.soFar())
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// soFar says where the packages of a run are, and how many faults were met.
func (r *run) soFar() string {
	at := map[string]int{}
	met := r.director.met()
	planned := met + len(r.director.left())
	for _, l := range r.lives {
		stage, hits := l.at()
		at[stage]++
		met += hits
		for _, faults := range l.plan {
			planned += len(faults)
		}
	}
	var places []string
	if at[""] > 0 {
		places = append(places, fmt.Sprintf("%d about to begin", at[""]))
	}
	for _, s := range r.scenario.stages {
		if at[s.name] > 0 {
			places = append(places, fmt.Sprintf("%d in %s", at[s.name], s.name))
		}
	}
	return fmt.Sprintf("%d packages (%s): %d faults met, of %d planned here; %d in runs before, of %d planned in all; %d violations; %s elapsed",
		len(r.lives), strings.Join(places, ", "), met, planned, len(r.hits), r.planned, r.brokenSoFar(), time.Since(r.begun).Round(time.Second))
}

func (r *run) brokenSoFar() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.violations)
}

// at returns the stage that a package is in, and how many faults it has met.
func (l *life) at() (stage string, hits int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ledger.stage != nil {
		stage = l.ledger.stage.name
	}
	return stage, len(l.hits)
}

// met returns how many faults of starts happened.
func (d *director) met() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.hits)
}
