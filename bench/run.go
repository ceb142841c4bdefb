package main

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	namespace = "bench"
	// quiet is how long the manager sends nothing when a scenario is over. It is
	// longer than the interval to which statuses are coalesced.
	quiet = 3 * time.Second
)

// bench is a sandbox with a manager in which the scenarios of a workload run.
type bench struct {
	*harness.Env
	workload
	tb      testing.TB
	audit   *sandbox.Audit
	watcher client.WithWatch
	manager *harness.Manager
	// images is the manager's cache, kept over a restart as by a volume.
	images string
	idle   time.Duration
}

// measurement is what was observed of one scenario.
type measurement struct {
	count  count
	span   time.Duration
	cpu    time.Duration
	memory memory
}

// runWorkload measures the wanted scenarios on a sandbox of their own, and returns
// the version of its API server beside.
func runWorkload(tb testing.TB, w workload, o options, progress io.Writer) (result, string) {
	tb.Helper()
	fmt.Fprintf(progress, "%s of %d objects: starting a sandbox\n", plural(w.Packages, "package"), w.Objects)
	b := &bench{Env: harness.New(tb), workload: w, tb: tb, images: tb.TempDir(), idle: o.rest}
	var err error
	b.audit, err = b.Audit()
	must(tb, err)
	b.watcher, err = client.NewWithWatch(b.Config(), client.Options{Scheme: b.Client.Scheme()})
	must(tb, err)
	versions, err := discovery.NewDiscoveryClientForConfig(b.Config())
	must(tb, err)
	kubernetes, err := versions.ServerVersion()
	must(tb, err)

	fmt.Fprintln(progress, "measuring the bare API server")
	res := result{workload: w, Raw: measureRaw(tb, b.Env, b.audit, w.total())}
	b.Namespace(tb, namespace)
	b.startManager()
	b.settle(0)
	for i, s := range scenarios {
		if !o.scenarios[s.name] && (i > 0 || !o.beyondInstall()) {
			continue
		}
		fmt.Fprintln(progress, "measuring", s.name)
		m := s.run(b)
		if o.scenarios[s.name] {
			res.Rows = append(res.Rows, newRow(s.name, w, res.Raw, m))
		}
	}
	return res, kubernetes.GitVersion
}

func (b *bench) startManager() {
	b.manager = b.StartManager(b.tb, "--log-level", "info", "--cache-dir", b.images)
}

// observe measures what act does, which returns when its effect is there, with
// the audit entries of cause and effect.
func (b *bench) observe(act func() (cause, effect sandbox.Filter)) measurement {
	return b.measure(func(mark sandbox.Position) ([]sandbox.Entry, time.Duration) {
		cause, effect := act()
		b.settle(mark)
		entries := b.since(mark)
		took, err := span(entries, cause, effect)
		must(b.tb, err)
		return entries, took
	})
}

// measure counts the manager's requests, processor time and memory around act.
func (b *bench) measure(act func(sandbox.Position) ([]sandbox.Entry, time.Duration)) measurement {
	mark, err := b.audit.Mark(b.tb.Context())
	must(b.tb, err)
	var before time.Duration
	pid := b.manager.PID()
	if !b.manager.Exited() {
		before, err = readCPU(pid)
		must(b.tb, err)
	}
	entries, took := act(mark)
	if b.manager.PID() != pid {
		before = 0
	}
	after, err := readCPU(b.manager.PID())
	must(b.tb, err)
	mem, err := readMemory(b.manager.PID())
	must(b.tb, err)
	return measurement{count: tally(entries, harness.ManagerUser()), span: took, cpu: after - before, memory: mem}
}

// settle waits until the manager is quiet.
func (b *bench) settle(since sandbox.Position) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(b.tb.Context(), b.timeout())
	defer cancel()
	_, err := b.audit.Settled(ctx, since, quiet, byManager, sandbox.Not(sandbox.ByVerb("watch")), sandbox.Not(sandbox.ByResource("leases.coordination.k8s.io")))
	must(b.tb, err)
}

func (b *bench) since(mark sandbox.Position) []sandbox.Entry {
	b.tb.Helper()
	entries, err := b.audit.Since(b.tb.Context(), mark)
	must(b.tb, err)
	return entries
}

// timeout is generous: a run that is slow is a result, one that hangs is none.
func (b *bench) timeout() time.Duration {
	return 2*time.Minute + time.Duration(b.total())*20*time.Millisecond
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func mustNotFind(tb testing.TB, err error) {
	tb.Helper()
	if !apierrors.IsNotFound(err) {
		tb.Fatalf("got %v, want not found", err)
	}
}
