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

// report logs the number of injected faults and the missed ones.
func (s *suite) report(t *testing.T) {
	t.Logf("LOCKSTEP_SEED=%d\n%d faults, %d of them on writes, in %s",
		s.seed, len(s.hits), s.onWrites(), time.Since(s.begun).Round(time.Second))
	for _, f := range slices.Concat(s.missed, s.starts) {
		t.Logf("never met: %s", f)
	}
}

// enough checks that every kind of write and every fault of a write occurred. If everything
// is swept, every combination must have occurred.
func (s *suite) enough(t *testing.T) {
	met := map[string]bool{}
	for _, f := range s.hits {
		met[kindOf(f)], met[faultOf(f)], met[pair(f.kind, f.Fault)] = true, true, true
	}
	want := map[string]bool{}
	writes, _, _, _ := s.split()
	for _, p := range writes {
		if s.there != nil && !p.there() {
			continue
		}
		for _, f := range slices.Concat(gateway.OnWrites(), s.onProcesses()) {
			want[p.kind], want[string(f)] = true, s.there == nil || s.everything || slices.Contains(s.onProcesses(), f)
			if s.everything {
				want[pair(p.kind, f)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if want[name] && !met[name] {
			t.Errorf("never injected: %s", name)
		}
	}
	if s.there == nil && (len(s.hits) < wantAll || s.onWrites() < wantWrites) {
		t.Errorf("%d faults, %d of them on writes; want %d and %d", len(s.hits), s.onWrites(), wantAll, wantWrites)
	}
}

func pair(kind string, f gateway.Fault) string { return kind + ": " + string(f) }

func (s *suite) onWrites() int {
	n := 0
	for _, f := range s.hits {
		if f.writes() {
			n++
		}
	}
	return n
}

// listPositions prints the positions for faults.
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
