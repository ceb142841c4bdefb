package applies_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

const (
	// sampled is how many random histories ./task test plays, swept how many ./task test:deep does
	// at least.
	sampled, swept = 100, 5000
	// together is how many histories are played side by side.
	together = 200
	// shownCauses is the number of causes whose failures are printed, each as a smaller history.
	shownCauses = 12
)

// TestTable plays a history for each rule.
func TestTable(t *testing.T) {
	rows := table()
	histories := make([]*history, len(rows))
	for i := range rows {
		histories[i] = rows[i].history()
	}
	failures, did := play(t, server, histories)
	for i := range rows {
		if f := failures[i]; f != nil {
			t.Errorf("%s\n%s", rows[i].name, f)
		}
	}
	t.Logf("%d rows: %s", len(rows), did)
}

// TestSample plays some random histories, the same ones each time unless LOCKSTEP_SEED is set.
func TestSample(t *testing.T) {
	playAll(t, random(seedOr(t, 1), sampled))
}

// TestSweep plays the changes from each alternative to each other one, and random histories:
// LOCKSTEP_HISTORIES of them. LOCKSTEP_SEED repeats these.
func TestSweep(t *testing.T) {
	if !harness.Deep() {
		t.Skip("LOCKSTEP_DEEP is not set")
	}
	n := swept
	if given := os.Getenv("LOCKSTEP_HISTORIES"); given != "" {
		var err error
		n, err = strconv.Atoi(given)
		require.NoError(t, err)
	}
	seed := seedOr(t, uint64(time.Now().UnixNano()))
	playAll(t, append(exchanged(), random(seed, n)...))
}

func seedOr(t *testing.T, otherwise uint64) uint64 {
	t.Helper()
	seed := otherwise
	if given := os.Getenv("LOCKSTEP_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("LOCKSTEP_SEED=%d", seed)
	return seed
}

// random returns random histories.
func random(seed uint64, n int) []*history {
	kinds := allKinds()
	all := make([]*history, n)
	for i := range all {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		all[i] = drawn(r, kinds[r.IntN(len(kinds))])
	}
	return all
}

// exchanged returns a history for each pair of alternatives, back and forth. Kinds with pods have
// the same dimensions, so only Deployments use all pairs, and the other kinds only neighbours.
func exchanged() []*history {
	var all []*history
	for _, k := range allKinds() {
		for _, d := range k.dimensions {
			n := len(d.alternatives)
			neighbours := len(k.dimensions) > 20 && k.name != "Deployment"
			for pair := range n * n {
				from, to := pair/n, pair%n
				if d.byHand || from == to || neighbours && (from+1)%n != to {
					continue
				}
				h := &history{kind: k, origin: origins[len(all)%len(origins)], events: backAndForth(d.name, from, to)}
				if h.origin != "" {
					h.version = with(d.name, from)
				}
				all = append(all, h)
			}
		}
	}
	return all
}

// playAll plays histories, and prints of each cause the smallest history that fails.
func playAll(t *testing.T, all []*history) {
	t.Helper()
	begun, did := time.Now(), counts{}
	causes := map[string][]*failure{}
	for some := range slices.Chunk(all, together) {
		failures, counted := play(t, server, some)
		did.add(counted)
		for _, f := range failures {
			causes[f.cause()] = append(causes[f.cause()], f)
		}
	}
	failed := 0
	var text strings.Builder
	names := slices.SortedFunc(maps.Keys(causes), func(a, b string) int { return cmp.Or(len(causes[b])-len(causes[a]), strings.Compare(a, b)) })
	for i, cause := range names {
		if failed += len(causes[cause]); i < shownCauses {
			fmt.Fprintf(&text, "%d × %s\n%s\n\n", len(causes[cause]), cause, shrunk(t, server, causes[cause][0]))
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d histories fail, by %d causes:\n%s", failed, len(all), len(causes), text.String())
	}
	kinds, unions, exchanges := covered(all)
	t.Logf("%d kinds, %d unions, %d exchanges of alternatives, %d histories in %s: %s", kinds, unions, exchanges, len(all), time.Since(begun).Round(time.Second), did)
}

// covered counts the kinds, the unions and the exchanges of alternatives that histories have.
func covered(all []*history) (kinds, unions, exchanges int) {
	seen := map[string]map[string]bool{"kind": {}, "union": {}, "exchange": {}}
	for _, h := range all {
		kind, _, _ := strings.Cut(h.kind.name, "/")
		seen["kind"][kind] = true
		before := choice(nil)
		for _, e := range h.events {
			if e.apply == nil {
				continue
			}
			for _, d := range h.kind.dimensions {
				from, to := before[d.name], e.apply[d.name]
				if before == nil || from == to {
					continue
				}
				seen["exchange"][fmt.Sprint(h.kind.name, d.name, from, to)] = true
				if d.union {
					seen["union"][kind+d.name] = true
				}
			}
			before = e.apply
		}
	}
	return len(seen["kind"]), len(seen["union"]), len(seen["exchange"])
}
