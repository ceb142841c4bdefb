package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	// wantKills is how many kills there are at least.
	wantKills = 50
	// wantEach is how often each kind of write is hit at least.
	wantEach = 2
	// perStage is how many kills one stage of one run takes at most.
	perStage = 4
	// maxRuns bounds the runs in which strikes that missed are tried again.
	maxRuns = 20
	// maxFailed is after how many runs that went wrong the test gives up.
	maxFailed = 3
	// patience is how long a stage takes at most to end, with its restarts.
	patience = 45 * time.Second
)

// trial is the whole test.
type trial struct {
	env      *harness.Env
	gateway  *gateway
	scenario *scenario
	audit    *sandbox.Audit
	random   *rand.Rand
	// reference is how each stage ends without a kill, and writes are the kinds of
	// its writes in their order.
	reference map[string]snapshot
	writes    map[string][]string
	// queue are strikes that are still to happen.
	queue []strike
	hits  []hit
}

func TestCrashesEndAsIfNothingHappened(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("LOCKSTEP_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		check(t, err)
	}
	t.Logf("LOCKSTEP_SEED=%d", seed)
	env := harness.New(t, sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer, sandbox.ControllerManager))
	operate(t, env)
	audit, err := env.Audit()
	check(t, err)
	tr := &trial{
		env: env, gateway: newGateway(t, env), scenario: newScenario(t, env), audit: audit,
		random: rand.New(rand.NewPCG(seed, 0)), reference: map[string]snapshot{}, writes: map[string][]string{},
	}
	if !t.Run("reference", tr.refer) {
		return
	}
	tr.enqueue()
	failed := 0
	for i := range maxRuns {
		if len(tr.queue) == 0 && len(tr.hits) >= wantKills {
			break
		}
		tr.refill()
		if !t.Run(fmt.Sprintf("run-%02d", i), func(t *testing.T) { tr.run(t, i) }) {
			if failed++; failed == maxFailed {
				t.Fatalf("%d runs ended in another way; giving up", failed)
			}
		}
	}
	tr.judge(t)
}

// refer goes through all stages without a kill.
func (tr *trial) refer(t *testing.T) {
	namespaces := tr.namespaces(t, "reference")
	tr.gateway.launch(t, "--leader-elect=false")
	for _, s := range tr.scenario.stages {
		mark := tr.begin(t, s, namespaces)
		harness.Eventually(t, patience, s.name+" to end", func(ctx context.Context) error { return tr.ended(ctx, s, namespaces) })
		_, err := tr.audit.Settled(t.Context(), mark, 3*time.Second, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(),
			func(e sandbox.Entry) bool { return e.Object.Resource != "leases" })
		check(t, err)
		for i, ns := range namespaces {
			state, err := look(t.Context(), tr.env, ns)
			check(t, err)
			if i == 0 {
				tr.reference[s.name] = state
			} else if diff := cmp.Diff(tr.reference[s.name], state); diff != "" {
				t.Errorf("two runs without a kill differ at the end of %s, so that nothing can be compared:\n%s", s.name, diff)
			}
			readHistory(t, tr.audit, mark, s, ns).judge(t)
		}
		tr.writes[s.name] = tr.gateway.seen()
	}
}

// ended tells whether a stage looks complete, before its state is taken as the
// reference.
func (tr *trial) ended(ctx context.Context, s stage, namespaces []string) error {
	for _, ns := range namespaces {
		pkg := harness.Package(ns, "shop", "")
		err := tr.env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg)
		if s.name == "delete" {
			if err == nil {
				return errors.New("the package exists")
			}
			if err := client.IgnoreNotFound(err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		says := func(typ, status string) bool {
			return slices.ContainsFunc(pkg.Status.Conditions, func(c metav1.Condition) bool {
				return c.Type == typ && string(c.Status) == status && c.ObservedGeneration == pkg.Generation
			})
		}
		if !says(corev1alpha1.ConditionAvailable, "True") || !says(corev1alpha1.ConditionProgressing, "False") || says(corev1alpha1.ConditionPaused, "True") != s.paused {
			return fmt.Errorf("the package says %+v", pkg.Status)
		}
	}
	return nil
}

// namespaces makes two of them, so that one kill hits two packages at different
// moments.
func (tr *trial) namespaces(t *testing.T, run string) []string {
	t.Helper()
	names := []string{run + "-one", run + "-two"}
	for _, name := range names {
		tr.env.Namespace(t, name)
	}
	return names
}

// begin starts a stage and returns the place in the audit log before it.
func (tr *trial) begin(t *testing.T, s stage, namespaces []string) sandbox.Position {
	t.Helper()
	mark, err := tr.audit.Mark(t.Context())
	check(t, err)
	tr.gateway.enter(s)
	for _, ns := range namespaces {
		s.begin(t, tr.scenario, ns)
	}
	return mark
}

// enqueue plans strikes: each kind of write in each stage that it occurs in, once
// before and once after it takes effect, and some at any write.
func (tr *trial) enqueue() {
	for _, s := range tr.scenario.stages {
		for _, kind := range slices.Compact(slices.Sorted(slices.Values(tr.writes[s.name]))) {
			for _, after := range []bool{false, true} {
				nth := 1 + tr.random.IntN(min(count(tr.writes[s.name], kind), 8))
				tr.queue = append(tr.queue, strike{stage: s.name, kind: kind, nth: nth, after: after})
			}
		}
		tr.queue = append(tr.queue, tr.anywhere(s.name))
	}
	tr.random.Shuffle(len(tr.queue), func(i, j int) { tr.queue[i], tr.queue[j] = tr.queue[j], tr.queue[i] })
}

// anywhere is a strike at any write of a stage.
func (tr *trial) anywhere(stage string) strike {
	return strike{stage: stage, kind: anyKind, nth: 1 + tr.random.IntN(max(1, len(tr.writes[stage]))), after: tr.random.IntN(2) == 1}
}

// refill adds random strikes where the planned ones are too few.
func (tr *trial) refill() {
	for _, s := range tr.scenario.stages {
		if len(tr.queue)+len(tr.hits) < wantKills {
			tr.queue = append(tr.queue, tr.anywhere(s.name))
		}
	}
}

func count(all []string, kind string) int {
	n := 0
	for _, k := range all {
		if k == kind {
			n++
		}
	}
	return n
}

// take takes the strikes of one stage from the queue, in the order in which the
// stage comes to them.
func (tr *trial) take(s stage) []strike {
	var mine, rest []strike
	kinds := map[string]bool{}
	for _, q := range tr.queue {
		if q.stage == s.name && len(mine) < perStage && !kinds[q.kind] {
			mine, kinds[q.kind] = append(mine, q), true
		} else {
			rest = append(rest, q)
		}
	}
	tr.queue = rest
	slices.SortFunc(mine, func(a, b strike) int { return tr.at(a) - tr.at(b) })
	for i := range mine {
		if i > 0 && mine[i].kind != anyKind {
			mine[i].nth = 1 // what is left of the kind after the kill before
		}
	}
	return mine
}

// at is about where in its stage a strike comes.
func (tr *trial) at(s strike) int {
	if s.kind == anyKind {
		return s.nth
	}
	n := 0
	for i, kind := range tr.writes[s.stage] {
		if kind == s.kind {
			if n++; n == s.nth {
				return i
			}
		}
	}
	return len(tr.writes[s.stage])
}

// run goes through all stages with kills.
func (tr *trial) run(t *testing.T, number int) {
	start := time.Now()
	namespaces := tr.namespaces(t, fmt.Sprintf("run-%02d", number))
	leader := number%4 == 3
	args := "--leader-elect=" + strconv.FormatBool(leader)
	if leader {
		tr.clearLease(t)
	}
	l := tr.gateway.launch(t, args)
	expire := number == 3 // one killed leader's Lease is waited out
	for _, s := range tr.scenario.stages {
		strikes := tr.take(s)
		if len(strikes) > 0 {
			l.arm(strikes[0])
		}
		mark := tr.begin(t, s, namespaces)
		for i, next := range strikes {
			h, struck := tr.await(t, l, s, namespaces)
			if !struck {
				tr.missed(strikes[i:])
				break
			}
			t.Logf("%5.1fs killed at %s: %s", time.Since(start).Seconds(), next, h.name)
			tr.hits = append(tr.hits, h)
			l.drain()
			if leader && !expire {
				tr.clearLease(t)
			}
			expire = false
			l = tr.gateway.launch(t, args)
			if i+1 < len(strikes) {
				l.arm(strikes[i+1])
			}
		}
		tr.finish(t, s, mark, namespaces)
		t.Logf("%5.1fs %s ended as without a kill", time.Since(start).Seconds(), s.name)
	}
}

// missed puts strikes back that met no write.
func (tr *trial) missed(strikes []strike) {
	for _, s := range strikes {
		if s.kind != anyKind {
			s.nth = 1
		} else {
			s.nth = 1 + tr.random.IntN(3)
		}
		tr.queue = append(tr.queue, s)
	}
}

// await waits for the armed strike, or for the end of the stage without it.
func (tr *trial) await(t *testing.T, l *lane, s stage, namespaces []string) (hit, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case h := <-l.struck:
			return h, true
		case <-ctx.Done():
			return hit{}, false // what is wrong shows in the comparison
		case <-time.After(200 * time.Millisecond):
			if tr.same(ctx, s, namespaces) != nil {
				continue
			}
			if l.disarm() {
				return <-l.struck, true
			}
			return hit{}, false
		}
	}
}

// same compares the present state with the end of the stage without a kill.
func (tr *trial) same(ctx context.Context, s stage, namespaces []string) error {
	for _, ns := range namespaces {
		state, err := look(ctx, tr.env, ns)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(tr.reference[s.name], state); diff != "" {
			return fmt.Errorf("%s is not as without a kill (-want +got):\n%s", ns, diff)
		}
	}
	return nil
}

// finish waits for the end of a stage and checks its history.
func (tr *trial) finish(t *testing.T, s stage, mark sandbox.Position, namespaces []string) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		differs := tr.same(ctx, s, namespaces)
		if ctx.Err() == nil || last == nil {
			last = differs // more telling than that time is up
		}
		return differs == nil, nil
	})
	if err != nil {
		t.Fatalf("%s does not end: %v", s.name, last)
	}
	for _, ns := range namespaces {
		readHistory(t, tr.audit, mark, s, ns).judge(t)
	}
}

// clearLease lets the next manager lead at once.
func (tr *trial) clearLease(t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}
	check(t, client.IgnoreNotFound(tr.env.Client.Delete(t.Context(), lease)))
}

// judge checks how the kills are spread.
func (tr *trial) judge(t *testing.T) {
	t.Helper()
	type tally struct {
		before, after int
		stages        map[string]bool
	}
	tallies := map[string]*tally{}
	for _, writes := range tr.writes {
		for _, kind := range writes {
			tallies[kind] = &tally{stages: map[string]bool{}}
		}
	}
	for _, h := range tr.hits {
		c := tallies[h.met]
		if c == nil {
			c = &tally{stages: map[string]bool{}}
			tallies[h.met] = c
		}
		c.stages[h.stage] = true
		if h.after {
			c.after++
		} else {
			c.before++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d kills by kind of write:\n", len(tr.hits))
	for _, kind := range slices.Sorted(maps.Keys(tallies)) {
		c := tallies[kind]
		fmt.Fprintf(&b, "  %-28s %2d kills: %d before, %d after it took effect (%s)\n", kind, c.before+c.after, c.before, c.after, strings.Join(slices.Sorted(maps.Keys(c.stages)), ", "))
		if c.before+c.after < wantEach && count(slices.Concat(slices.Collect(maps.Values(tr.writes))...), kind) > 0 {
			t.Errorf("%q was hit %d times, want %d", kind, c.before+c.after, wantEach)
		}
	}
	t.Log(b.String())
	if len(tr.hits) < wantKills {
		t.Errorf("%d kills, want %d", len(tr.hits), wantKills)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
