package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// Gateway connects a manager to its API server, and optionally to another cluster's.
type Gateway struct {
	env    *harness.Env
	direct string // kubeconfig of the manager without a gateway
	upstream
	// other leads to another cluster; nil for none.
	other *lane

	mu    sync.Mutex
	lanes int
}

// upstream is an API server behind the gateway; other means that it is not the manager's own.
type upstream struct {
	target *url.URL
	to     http.RoundTripper
	other  bool
}

func newUpstream(tb testing.TB, sb *sandbox.Sandbox) upstream {
	tb.Helper()
	target, err := url.Parse(sb.Server())
	require.NoError(tb, err)
	authority := sb.Config().CAData
	if len(authority) == 0 {
		authority, err = os.ReadFile(sb.Config().CAFile)
		require.NoError(tb, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		tb.Fatal("the sandbox's authority cannot be read")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	tb.Cleanup(transport.CloseIdleConnections)
	return upstream{target: target, to: transport}
}

// New returns a gateway to the sandbox's API server.
func New(tb testing.TB, env *harness.Env) *Gateway {
	tb.Helper()
	return &Gateway{env: env, direct: env.ManagerKubeconfig, upstream: newUpstream(tb, env.Sandbox)}
}

// Other opens a connection to another cluster, and returns its address and authority. The address
// stays the same when the manager is restarted.
func (g *Gateway) Other(tb testing.TB, sb *sandbox.Sandbox) (server string, authority []byte) {
	tb.Helper()
	up := newUpstream(tb, sb)
	up.other = true
	g.other = newLane(up)
	g.other.dead = true
	tb.Cleanup(g.other.server.Close)
	return g.other.server.URL, certificate(g.other.server)
}

// Crew is a manager that is started again whenever it ends, until the test does.
type Crew struct {
	*Gateway
	director Director
	args     []string
	// before runs ahead of each start.
	before func()

	stop chan struct{}
	done chan struct{}

	mu        sync.Mutex
	processes []*process // in the order of their starts
}

// process is one manager; wanted means that a test or a fault ended it.
type process struct {
	*harness.Manager
	wanted bool
}

// Start keeps a manager running, behind the gateway, for the time of the test.
// before runs ahead of every start.
func (g *Gateway) Start(tb testing.TB, director Director, before func(), args ...string) *Crew {
	tb.Helper()
	c := &Crew{Gateway: g, director: director, args: args, before: before, stop: make(chan struct{}), done: make(chan struct{})}
	go c.supervise(tb)
	tb.Cleanup(c.Stop)
	return c
}

// Stop ends the manager in an orderly way. It can be called more than once.
func (c *Crew) Stop() {
	c.mu.Lock()
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.mu.Unlock()
	<-c.done
}

// Restart ends the current manager in an orderly way; another one is started.
func (c *Crew) Restart() {
	c.mu.Lock()
	present := c.processes[len(c.processes)-1]
	present.wanted = true
	c.mu.Unlock()
	present.Stop()
}

// ends notes that a process ends on purpose.
func (c *Crew) ends(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.wanted = true
}

// supervise starts the manager again when it has ended.
func (c *Crew) supervise(tb testing.TB) {
	defer close(c.done)
	for {
		c.before()
		l, err := c.launch(quiet{tb})
		if err != nil {
			tb.Errorf("cannot start a manager: %v", err)
			return
		}
		select {
		case <-l.manager.Done():
			c.drain(l)
		case <-c.stop:
			c.ends(l.manager)
			l.manager.Stop()
			c.drain(l)
			return
		}
	}
}

// drain ends the lanes of a manager that has ended.
func (c *Crew) drain(l *lane) {
	l.drain()
	l.server.Close()
	if other := c.Gateway.other; other != nil {
		other.drain()
	}
}

// quiet leaves it to the test to show the logs of its managers.
type quiet struct{ testing.TB }

// Failed always returns false, so that no log is shown.
func (quiet) Failed() bool { return false }

// Unasked returns the last lines of each manager's log that ended without being
// killed or stopped.
func (c *Crew) Unasked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var last []string
	for _, p := range c.processes {
		if p.Exited() && !p.wanted {
			lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
			last = append(last, strings.Join(lines[max(0, len(lines)-5):], "\n"))
		}
	}
	return last
}

// Log returns the lines of all managers' logs that contain the text.
func (c *Crew) Log(text string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for _, p := range c.processes {
		for line := range strings.Lines(p.Log()) {
			if strings.Contains(line, text) {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	return found
}

// launch starts a manager that reaches the API server through a lane of its own.
func (c *Crew) launch(tb testing.TB) (*lane, error) {
	l := newLane(c.upstream)
	lanes := []*lane{l}
	if c.Gateway.other != nil {
		lanes = append(lanes, c.Gateway.other)
	}
	for _, one := range lanes {
		one.reset(c)
	}
	path, err := c.kubeconfig(l.server)
	if err != nil {
		return nil, err
	}
	c.env.ManagerKubeconfig = path
	l.manager = &process{Manager: c.env.LaunchManager(tb, c.args...)}
	c.mu.Lock()
	c.processes = append(c.processes, l.manager)
	c.mu.Unlock()
	for _, one := range lanes {
		one.manager = l.manager
		close(one.started)
	}
	return l, nil
}

// kubeconfig writes the manager's kubeconfig with another server.
func (g *Gateway) kubeconfig(server *httptest.Server) (string, error) {
	cfg, err := clientcmd.LoadFromFile(g.direct)
	if err != nil {
		return "", err
	}
	for _, cluster := range cfg.Clusters {
		cluster.Server, cluster.CertificateAuthority = server.URL, ""
		cluster.CertificateAuthorityData = certificate(server)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lanes++
	path := filepath.Join(g.env.DataDir(), fmt.Sprintf("lane-%d.kubeconfig", g.lanes))
	return path, clientcmd.WriteToFile(*cfg, path)
}

func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
