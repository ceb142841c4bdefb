package measure

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	namespace = "bench"
	// clients is the number of parallel requests of other clients.
	clients = 16
)

// Options configure a measurement.
type Options struct {
	// Raw measures the bare API server before the manager starts.
	Raw bool
	// Quiet is the time without requests of the manager that ends a scenario. It has to be longer
	// than the interval for coalescing statuses; the default is 3 seconds.
	Quiet time.Duration
	// Rest is the length of the scenario Rest, and of the wait before the memory
	// of History is read.
	Rest time.Duration
	// Profile is a folder for profiles of the manager; empty disables them.
	Profile string
	// MemoryLimit is GOMEMLIMIT of the manager; the default is the one in config/manager.
	MemoryLimit string
	// Report is called when a step starts.
	Report func(what string)
}

// Cluster is a sandbox with a manager that runs the scenarios of a workload.
type Cluster struct {
	*harness.Env
	Workload
	// Raw has the times of the bare API server, if requested.
	Raw RawTimes

	tb      testing.TB
	o       Options
	audit   *sandbox.Audit
	watcher client.WithWatch
	manager *harness.Manager
	// images is the manager's cache. Like a volume, it survives a restart.
	images string
	// pprof is the address of the manager's profiles.
	pprof string
	// installed is the current release of the packages; tag is the number of its images.
	installed release
	tag       int
	// source is the source of the repository.
	source *source
	// mark is the position of the running scenario's first entry.
	mark sandbox.Position
}

// Measurement has the observations of one scenario.
type Measurement struct {
	Count Count
	// Span is the time from the cause to the effect.
	Span time.Duration
	// CPU is the manager's processor time until it was quiet again.
	CPU    time.Duration
	Memory Memory
	// Slices is the number of slices after an install, or before a delete.
	Slices int
	// Background is the manager's work after the effect.
	Background Background
	// Figures are further values with limits, by measure.
	Figures map[string]float64
	// Notes are further results in words.
	Notes []string
	// Entries are the requests of all clients.
	Entries []sandbox.Entry
}

// Memory is the memory of a process in MiB. RssAnon is its own memory. Most is its peak since the
// start, including the pages of its binary.
type Memory struct{ RssAnon, Most float64 }

// Background is work that no rollout waits for.
type Background struct {
	Requests int
	Seconds  float64
}

// Start starts a sandbox and a manager for the duration of the test.
func Start(tb testing.TB, w Workload, o Options) *Cluster {
	tb.Helper()
	o.Quiet = cmp.Or(o.Quiet, 3*time.Second)
	if o.Report == nil {
		o.Report = func(string) {}
	}

	o.Report("starting a sandbox")
	// The memory of the API server must never limit a workload.
	c := &Cluster{Env: harness.New(tb, sandbox.WithMemoryLimit("8GiB"), sandbox.WithoutNodes()), Workload: w, o: o, tb: tb, images: tb.TempDir(), installed: firstRelease}
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

// Kubernetes returns the version of the API server.
func (c *Cluster) Kubernetes() string {
	c.tb.Helper()
	versions, err := discovery.NewDiscoveryClientForConfig(c.Config())
	must(c.tb, err)
	version, err := versions.ServerVersion()
	must(c.tb, err)
	return version.GitVersion
}

// ownConnection returns a configuration whose clients share no connection with others, because each
// has its own dialer.
func (c *Cluster) ownConnection() *rest.Config {
	config := c.Config()
	config.Dial = (&net.Dialer{}).DialContext
	return config
}

func (c *Cluster) startManager() {
	args := []string{"--log-level", "info", "--cache-dir", c.images, "--metrics-bind-address", harness.Address(c.tb)}
	if c.Kind == Offers { // makes intervals ten times as short
		args = append(args, "--allow-local-sources", "--pace", "0.1")
	}
	if c.o.Profile != "" {
		c.pprof = harness.Address(c.tb)
		args = append(args, "--pprof-bind-address", c.pprof)
	}
	c.manager = c.StartManager(c.tb, args...)
}

// observe measures act. act returns when its effect is visible, with the audit entries of cause and
// effect.
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
		before, err = processorTime(pid)
		must(c.tb, err)
	}

	entries, s := act()
	if c.manager.PID() != pid {
		before = 0
	}

	after, err := processorTime(c.manager.PID())
	must(c.tb, err)
	memory, err := memoryOf(c.manager.PID())
	must(c.tb, err)
	return Measurement{
		Count: Tally(entries, harness.ManagerUser()), Span: s.Took(), CPU: after - before, Memory: memory, Entries: entries, Background: backgroundOf(entries, s),
	}
}

// processorTime is the time that a process has spent on processors, both for itself and in the
// system.
func processorTime(pid int) (time.Duration, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

func memoryOf(pid int) (Memory, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, err
	}
	status, err := process.NewStatus()
	return Memory{RssAnon: float64(status.RssAnon) / mebibyte, Most: float64(status.VmHWM) / mebibyte}, err
}

// backgroundOf counts the manager's requests after the effect.
func backgroundOf(entries []sandbox.Entry, s Span) Background {
	var b Background
	for _, e := range entries {
		if byManager(e) && ordinary(e) && e.Received.After(s.End) {
			b.Requests++
			b.Seconds = max(b.Seconds, e.Done.Sub(s.End).Seconds())
		}
	}
	return b
}

// profile starts a profile of the manager's processor time, if Options name a folder, and returns a
// function that waits for its end. The length has to be chosen in advance, so it exceeds the
// scenario's.
func (c *Cluster) profile(scenario string) (wait func()) {
	c.tb.Helper()
	if c.o.Profile == "" {
		return func() {}
	}
	done := make(chan error, 1)
	go func() { done <- c.fetchProfile(fmt.Sprintf("profile?seconds=%d", 5+c.Total()/200), scenario+".cpu") }()
	time.Sleep(200 * time.Millisecond) // until it has started
	return func() { must(c.tb, <-done) }
}

// heap writes the manager's heap after a scenario. Memory was read before that, without a
// collection.
func (c *Cluster) heap(scenario string) {
	c.tb.Helper()
	if c.o.Profile != "" && !c.manager.Exited() {
		must(c.tb, c.fetchProfile("heap?gc=1", scenario+".heap"))
	}
}

// fetchProfile writes one of the manager's profiles to a file.
func (c *Cluster) fetchProfile(what, name string) error {
	resp, err := http.Get("http://" + c.pprof + "/debug/pprof/" + what)
	if err != nil {
		return err
	}

	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile %s: the manager answers %s", what, resp.Status)
	}
	if err := os.MkdirAll(c.o.Profile, 0o755); err != nil {
		return err
	}

	file, err := os.Create(filepath.Join(c.o.Profile, fmt.Sprintf("%dx%d-%s.pprof", c.Packages, c.Workload.Objects, name)))
	if err != nil {
		return err
	}

	_, err = io.Copy(file, resp.Body)
	return cmp.Or(err, file.Close())
}

// waitQuiescent waits until the manager is quiescent, considering the running scenario.
func (c *Cluster) waitQuiescent() {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(c.tb.Context(), c.timeout())
	defer cancel()
	_, err := c.audit.Settled(ctx, c.mark, c.o.Quiet, byManager, ordinary)
	must(c.tb, err)
}

// since returns the requests since the running scenario started.
func (c *Cluster) since() []sandbox.Entry {
	c.tb.Helper()
	entries, err := c.audit.Since(c.tb.Context(), c.mark)
	must(c.tb, err)
	return entries
}

// timeout is generous, because a slow run is a result and a hanging one is not.
func (c *Cluster) timeout() time.Duration {
	return 2*time.Minute + time.Duration(c.Total())*20*time.Millisecond
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
