package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"lockstep.run/lockstep/e2e/harness"
)

// Gateway is the way of a manager to the API server.
type Gateway struct {
	env    *harness.Env
	direct string // kubeconfig of the manager without a gateway
	target *url.URL
	to     http.RoundTripper

	mu    sync.Mutex
	lanes int
}

// New returns a gateway to the sandbox's API server.
func New(tb testing.TB, env *harness.Env) *Gateway {
	tb.Helper()
	target, err := url.Parse(env.Server())
	check(tb, err)
	authority := env.Config().CAData
	if len(authority) == 0 {
		authority, err = os.ReadFile(env.Config().CAFile)
		check(tb, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		tb.Fatal("the sandbox's authority cannot be read")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	tb.Cleanup(transport.CloseIdleConnections)
	return &Gateway{env: env, direct: env.ManagerKubeconfig, target: target, to: transport}
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

// process is one manager; wanted tells that its end was asked for.
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

// Stop ends the manager in good order. It may be called twice.
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

// Restart ends the present manager in good order; another one is started.
func (c *Crew) Restart() {
	c.mu.Lock()
	present := c.processes[len(c.processes)-1]
	present.wanted = true
	c.mu.Unlock()
	present.Stop()
}

// ends notes that the end of a process is wanted.
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
			l.drain()
		case <-c.stop:
			c.ends(l.manager)
			l.manager.Stop()
			l.drain()
			return
		}
	}
}

// quiet leaves it to the test to show the logs of its managers.
type quiet struct{ testing.TB }

// Failed says that there is nothing to show.
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
	l := &lane{Crew: c, started: make(chan struct{}), next: map[string]Decision{}}
	l.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(c.target)
			r.Out.Host = c.target.Host
		},
		Transport: c.to, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	l.server = httptest.NewUnstartedServer(l)
	l.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	l.server.EnableHTTP2 = true
	l.server.StartTLS() // client-go sends no token in the clear
	path, err := c.kubeconfig(l.server)
	if err != nil {
		return nil, err
	}
	c.env.ManagerKubeconfig = path
	l.manager = &process{Manager: c.env.LaunchManager(tb, c.args...)}
	c.mu.Lock()
	c.processes = append(c.processes, l.manager)
	c.mu.Unlock()
	close(l.started)
	return l, nil
}

// kubeconfig writes that of the manager with another server.
func (g *Gateway) kubeconfig(server *httptest.Server) (string, error) {
	cfg, err := clientcmd.LoadFromFile(g.direct)
	if err != nil {
		return "", err
	}
	for _, cluster := range cfg.Clusters {
		cluster.Server, cluster.CertificateAuthority = server.URL, ""
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lanes++
	path := filepath.Join(g.env.DataDir(), fmt.Sprintf("lane-%d.kubeconfig", g.lanes))
	return path, clientcmd.WriteToFile(*cfg, path)
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
