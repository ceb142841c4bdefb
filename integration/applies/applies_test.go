package applies_test

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
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
)

// TestTable plays a history for each rule.
func TestTable(t *testing.T) {
	rows := table()
	histories := make([]*history, len(rows))
	for i := range rows {
		histories[i] = rows[i].history()
	}
	failures, cases := play(t, server, histories)
	for i := range rows {
		if f := failures[i]; f != nil {
			t.Errorf("%s\n%s", rows[i].name, f)
		}
	}
	t.Logf("%d rows, %d outcomes compared", len(rows), cases)
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

// playAll plays histories, and prints of each cause the shortest history that fails.
func playAll(t *testing.T, all []*history) {
	t.Helper()
	begun, cases := time.Now(), 0
	causes := map[string][]*failure{}
	for some := range slices.Chunk(all, together) {
		failures, compared := play(t, server, some)
		cases += compared
		for _, f := range failures {
			causes[f.cause()] = append(causes[f.cause()], f)
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		failures := causes[cause]
		shortest := slices.MinFunc(failures, func(a, b *failure) int { return cmp.Compare(len(a.String()), len(b.String())) })
		t.Errorf("%d × %s\n%s\n", len(failures), cause, shortest)
	}
	t.Logf("%d histories, %d outcomes compared in %s", len(all), cases, time.Since(begun).Round(time.Second))
}
