package transport_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/faults/gateway"
)

// report prints how the faults are spread, and fails where they are too few.
func (s *suite) report(t *testing.T) {
	stages := []string{startStage}
	for _, stage := range s.scenario.stages {
		stages = append(stages, stage.name)
	}
	t.Logf("LOCKSTEP_SEED=%d\n%d faults, %d of them on writes, by type and stage:\n%s", s.seed, len(s.hits), s.onWrites(),
		table(s.hits, stages, func(f fault) (row, column string) { return string(f.Fault), f.stage }))
	t.Logf("by kind of position and stage:\n%s", table(s.hits, stages, func(f fault) (row, column string) { return f.kind, f.stage }))
	for _, f := range slices.Concat(s.missed, s.starts) {
		t.Logf("never met: %s", f)
	}
}

// table counts faults by two of their properties.
func table(faults []fault, columns []string, of func(fault) (row, column string)) string {
	counts := map[string]map[string]int{}
	total := map[string]int{}
	for _, f := range faults {
		row, column := of(f)
		if counts[row] == nil {
			counts[row] = map[string]int{}
		}
		counts[row][column]++
		total[column]++
	}
	var b strings.Builder
	line := func(name string, counts map[string]int) {
		sum := 0
		fmt.Fprintf(&b, "  %-46s", name)
		for _, column := range columns {
			fmt.Fprintf(&b, "%9d", counts[column])
			sum += counts[column]
		}
		fmt.Fprintf(&b, "%9d\n", sum)
	}
	fmt.Fprintf(&b, "  %-46s", "")
	for _, column := range append(slices.Clone(columns), "all") {
		fmt.Fprintf(&b, "%9s", column)
	}
	b.WriteByte('\n')
	for _, row := range slices.Sorted(maps.Keys(counts)) {
		line(row, counts[row])
	}
	line("all", total)
	return b.String()
}

// enough checks that every kind of write met every fault, and that the faults
// are as many as promised.
func (s *suite) enough(t *testing.T) {
	writes, _, _, _ := s.split()
	met := map[string]bool{}
	for _, f := range s.hits {
		met[f.kind+": "+string(f.Fault)] = true
	}
	for _, p := range writes {
		for _, f := range slices.Concat(gateway.OnWrites(), gateway.OnProcesses()) {
			if pair := p.kind + ": " + string(f); !met[pair] {
				met[pair] = true
				t.Errorf("never injected: %s", pair)
			}
		}
	}
	if len(s.hits) < wantAll || s.onWrites() < wantWrites {
		t.Errorf("%d faults, %d of them on writes; want %d and %d", len(s.hits), s.onWrites(), wantAll, wantWrites)
	}
}

func (s *suite) onWrites() int {
	n := 0
	for _, f := range s.hits {
		if !f.reads() && !f.watches() {
			n++
		}
	}
	return n
}

// listPositions prints where faults can be injected.
func (s *suite) listPositions(t *testing.T) {
	var b strings.Builder
	kinds := map[string][]string{}
	for _, p := range s.positions {
		key := p.stage + ": " + p.kind
		kinds[key] = append(kinds[key], p.which)
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		which := kinds[key]
		if strings.HasPrefix(which[0], "#") {
			which = []string{fmt.Sprintf("#1 to #%d", len(which))}
		}
		fmt.Fprintf(&b, "  %s %s\n", key, strings.Join(which, ", "))
	}
	writes, reads, watches, starts := s.split()
	t.Logf("%d positions: %d of writes, %d of reads, %d of events of watches, %d of reads of a start\n%s",
		len(s.positions), len(writes), len(reads), len(watches), len(starts), b.String())
}

// slowest prints how long the stages of a run took.
func (r *run) slowest(t *testing.T) {
	var all []string
	total := time.Duration(0)
	n := 0
	for _, l := range r.lives {
		for i, took := range l.took {
			total += took
			n++
			if took > 10*time.Second {
				s := r.scenario.stages[i].name
				all = append(all, fmt.Sprintf("%5.1fs %s %v", took.Seconds(), l.namespace, l.plan[s]))
			}
		}
	}
	if n > 0 {
		t.Logf("%d stages took %.1f s on average; those over 10 s:\n  %s", n, total.Seconds()/float64(n), strings.Join(all, "\n  "))
	}
}
