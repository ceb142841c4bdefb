package measure

import (
	"cmp"
	"context"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	namespace = "bench"
	// clients is how many requests of others are in flight at once.
	clients = 16
)

// Options say how to measure.
type Options struct {
	// Raw measures the bare API server before the manager starts.
	Raw bool
	// Quiet is how long the manager sends nothing when a scenario is over. It has
	// to be longer than the interval to which statuses are coalesced; the default
	// is 3 seconds.
	Quiet time.Duration
	// Rest is the length of the scenario Rest, and of the wait before the memory
	// of History is read.
	Rest time.Duration
	// Profile is a folder for profiles of the manager during installs and upgrades,
	// and for lists of its requests in every scenario; empty means none.
	Profile string
	// MemoryLimit is GOMEMLIMIT of the manager; the default is that of config/manager.
	MemoryLimit string
	// Report is told what begins.
	Report func(what string)
}

// Cluster is a sandbox with a manager in which the scenarios of a workload run.
type Cluster struct {
	*harness.Env
	Workload
	// Raw is what the bare API server needs, where it was asked for.
	Raw RawTimes

	tb      testing.TB
	o       Options
	audit   *sandbox.Audit
	watcher client.WithWatch
	manager *harness.Manager
	// images is the manager's cache, kept over a restart as by a volume.
	images string
	// pprof is the address of the manager's profiles.
	pprof string
	// metrics is the address of its metrics.
	metrics string
	// installed is the release that the packages are at; tag is the number of its images.
	installed release
	tag       int
	// source is what the repository is fetched from.
	source *source
	// mark is where the entries of the running scenario begin.
	mark sandbox.Position
}

// Measurement has the observations of one scenario.
type Measurement struct {
	Count Count
	// Span is the time from the cause to the effect.
	Span time.Duration
	// Served says which part of it was the API server's.
	Served Served
	// CPU is the processor time of the manager until it was quiet again.
	CPU    time.Duration
	Memory Memory
	// Slices is how many slices there were: after an install, or before a delete.
	Slices int
	// Stored is what our own kinds took, of one package.
	Stored *Stored
	// Background is what the manager did after the effect, of the scenarios that
	// leave work for later.
	Background *Background
	// Transitions is set by the scenario of that name.
	Transitions *TransitionTimes
	// Scrapes are set by the scenario Scrape.
	Scrapes *Scrapes
	// Bytes are set by the scenario Publish.
	Bytes *Bytes
	// Neighbours is set by the scenario Neighbour.
	Neighbours []NeighbourTimes
	// Profile is where the manager's processor time went, where that was asked for.
	Profile []ProfileShare
	// Entries are the requests of everyone.
	Entries []sandbox.Entry

	// began is when the cause was.
	began time.Time
}

// Background is work that no rollout waits for.
type Background struct {
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
}

// Start starts a sandbox and a manager, both for as long as the test lasts.
func Start(tb testing.TB, w Workload, o Options) *Cluster {
	tb.Helper()
	o.Quiet = cmp.Or(o.Quiet, 3*time.Second)
	if o.Report == nil {
		o.Report = func(string) {}
	}
	o.Report("starting a sandbox")
	// The memory of the API server is never what bounds a workload.
	parts := []sandbox.Option{sandbox.WithMemoryLimit("8GiB")}
	if w.Kind != Deployments {
		parts = append(parts, sandbox.WithoutNodes())
	}
	c := &Cluster{Env: harness.New(tb, parts...), Workload: w, o: o, tb: tb, images: tb.TempDir(), installed: firstRelease}
	var err error
	c.audit, err = c.Audit()
	must(tb, err)
	c.watcher, err = client.NewWithWatch(c.ownConnection(), client.Options{Scheme: c.Client.Scheme()})
	must(tb, err)
	if o.Raw && w.Kind != Offers {
		o.Report("measuring the bare API server")
		c.Raw = c.measureRaw(w.Total())
	}
	c.Namespace(tb, namespace)
	if w.Kind == Gates {
		c.defineGates()
	}
	c.Env.MemoryLimit = o.MemoryLimit
	c.startManager()
	c.waitQuiescent()
	return c
}

// Kubernetes is the version of the API server.
func (c *Cluster) Kubernetes() string {
	c.tb.Helper()
	versions, err := discovery.NewDiscoveryClientForConfig(c.Config())
	must(c.tb, err)
	version, err := versions.ServerVersion()
	must(c.tb, err)
	return version.GitVersion
}

// ownConnection is a configuration whose clients share no connection with others:
// a dialer of its own gives a client connections of its own.
func (c *Cluster) ownConnection() *rest.Config {
	config := c.Config()
	config.Dial = (&net.Dialer{}).DialContext
	return config
}

func (c *Cluster) startManager() {
	c.metrics = harness.Address(c.tb)
	args := []string{"--log-level", "info", "--cache-dir", c.images, "--metrics-bind-address", c.metrics}
	if c.Kind == Offers { // an interval is a tenth of what it says
		args = append(args, "--allow-local-sources", "--pace", "0.1")
	}
	if c.o.Profile != "" {
		c.pprof = harness.Address(c.tb)
		args = append(args, "--pprof-bind-address", c.pprof)
	}
	c.manager = c.StartManager(c.tb, args...)
}

// observe measures what act does, which returns when its effect is there, with
// the audit entries of cause and effect.
func (c *Cluster) observe(act func() (cause, effect sandbox.Filter)) Measurement {
	c.tb.Helper()
	return c.measure(func() ([]sandbox.Entry, Span) {
		cause, effect := act()
		c.waitQuiescent()
		entries := c.since()
		s, err := span(entries, cause, effect)
		must(c.tb, err)
		return entries, s
	})
}

// measure counts the manager's requests, processor time and memory around act.
func (c *Cluster) measure(act func() ([]sandbox.Entry, Span)) Measurement {
	c.tb.Helper()
	var err error
	c.mark, err = c.audit.Mark(c.tb.Context())
	must(c.tb, err)
	var before time.Duration
	pid := c.manager.PID()
	if !c.manager.Exited() {
		before, err = readCPU(pid)
		must(c.tb, err)
	}
	entries, s := act()
	if c.manager.PID() != pid {
		before = 0
	}
	after, err := readCPU(c.manager.PID())
	must(c.tb, err)
	memory, err := readMemory(c.manager.PID())
	must(c.tb, err)
	return Measurement{
		Count: Tally(entries, harness.ManagerUser()), Span: s.Took(), Served: served(entries, s), CPU: after - before, Memory: memory, Entries: entries,
		Background: backgroundOf(entries, s), began: s.Start,
	}
}

// backgroundOf is what the manager asked for after the effect.
func backgroundOf(entries []sandbox.Entry, s Span) *Background {
	var b Background
	for _, e := range entries {
		if byManager(e) && ordinary(e) && e.Received.After(s.End) {
			b.Requests++
			b.Seconds = max(b.Seconds, e.Done.Sub(s.End).Seconds())
		}
	}
	return &b
}

// waitQuiescent waits until the manager is quiescent, as far as the running scenario goes.
func (c *Cluster) waitQuiescent() {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(c.tb.Context(), c.timeout())
	defer cancel()
	_, err := c.audit.Settled(ctx, c.mark, c.o.Quiet, byManager, ordinary)
	must(c.tb, err)
}

// since returns the requests since the running scenario began.
func (c *Cluster) since() []sandbox.Entry {
	c.tb.Helper()
	entries, err := c.audit.Since(c.tb.Context(), c.mark)
	must(c.tb, err)
	return entries
}

// timeout is generous: a run that is slow is a result, one that hangs is none.
func (c *Cluster) timeout() time.Duration {
	return 2*time.Minute + time.Duration(c.Total())*20*time.Millisecond
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
