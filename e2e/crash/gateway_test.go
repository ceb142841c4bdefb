package crash_test

import (
	"bytes"
	"context"
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
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"lockstep.run/lockstep/e2e/harness"
)

// strike is a kill at a chosen write.
type strike struct {
	// stage and kind of the write; kind any is every kind.
	stage, kind string
	// nth counts the writes of that kind from when the strike is armed, from 1.
	nth int
	// after tells that the write takes effect, but the manager does not live to
	// see the answer.
	after bool
}

const anyKind = "any"

func (s strike) String() string {
	when := "before"
	if s.after {
		when = "after"
	}
	return fmt.Sprintf("%s: %s write %d of kind %q", s.stage, when, s.nth, s.kind)
}

// hit is a strike that happened, with the write that it met.
type hit struct {
	strike
	met  string
	name string
}

// gateway is the way of the manager to the API server. Each manager process has
// a lane of its own, so that nothing of a dead one arrives late.
type gateway struct {
	env    *harness.Env
	direct string // kubeconfig of the manager without a gateway
	target *url.URL
	to     http.RoundTripper
	ledger *ledger

	mu sync.Mutex
	// writes are those of the stage in their order, by kind.
	writes []string
	lanes  int
}

func newGateway(t *testing.T, env *harness.Env) *gateway {
	t.Helper()
	target, err := url.Parse(env.Server())
	check(t, err)
	authority := env.Config().CAData
	if len(authority) == 0 {
		authority, err = os.ReadFile(env.Config().CAFile)
		check(t, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("the sandbox's authority cannot be read")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &gateway{env: env, direct: env.ManagerKubeconfig, target: target, to: transport, ledger: newLedger()}
}

// enter begins a stage and forgets the writes of the one before.
func (g *gateway) enter(s stage) {
	g.ledger.enter(s)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = nil
}

// seen returns the kinds of the stage's writes in their order.
func (g *gateway) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.writes...)
}

// lane carries one manager process.
type lane struct {
	*gateway
	server  *httptest.Server
	proxy   *httputil.ReverseProxy
	manager *harness.Manager
	started chan struct{}

	mu      sync.Mutex
	dead    bool
	armed   *strike
	counted int
	struck  chan hit
	flights sync.WaitGroup
}

// launch starts a manager that reaches the API server through a lane.
func (g *gateway) launch(t *testing.T, args ...string) *lane {
	t.Helper()
	l := &lane{gateway: g, started: make(chan struct{}), struck: make(chan hit, 1)}
	l.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(g.target)
			r.Out.Host = g.target.Host
		},
		Transport: g.to, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		// A watch that ends with its manager is no news.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	l.server = httptest.NewUnstartedServer(l)
	l.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	l.server.EnableHTTP2 = true
	l.server.StartTLS() // client-go sends no token in the clear
	t.Cleanup(l.close)
	g.env.ManagerKubeconfig = g.kubeconfig(t, l.server)
	l.manager = g.env.LaunchManager(t, args...)
	close(l.started)
	return l
}

// kubeconfig writes that of the manager with another server.
func (g *gateway) kubeconfig(t *testing.T, server *httptest.Server) string {
	t.Helper()
	cfg, err := clientcmd.LoadFromFile(g.direct)
	check(t, err)
	for _, cluster := range cfg.Clusters {
		cluster.Server, cluster.CertificateAuthority = server.URL, ""
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	g.lanes++
	path := filepath.Join(g.env.DataDir(), fmt.Sprintf("lane-%d.kubeconfig", g.lanes))
	check(t, clientcmd.WriteToFile(*cfg, path))
	return path
}

func (l *lane) close() {
	l.server.CloseClientConnections()
	l.server.Close()
}

// arm chooses the write at which the manager is killed; struck tells of it.
func (l *lane) arm(s strike) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.counted = &s, 0
}

// disarm takes the strike back, and tells whether it happened already.
func (l *lane) disarm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = nil
	return l.dead
}

// drain waits until what the dead manager had sent is decided.
func (l *lane) drain() {
	l.flights.Wait()
	l.close()
}

// ServeHTTP passes a request on. Writes are carried to their end even if the
// manager does not live to see it.
func (l *lane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		l.proxy.ServeHTTP(w, r)
		return
	}
	if !l.takeOff() {
		panic(http.ErrAbortHandler)
	}
	defer l.flights.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // killed while it was sending: the write was never sent
	}
	q := parse(r, body)
	kind := l.ledger.kind(q)
	l.note(kind)
	s, now := l.due(kind)
	if now && !s.after {
		l.kill(s, kind, q)
	}
	answer := httptest.NewRecorder()
	out := r.WithContext(context.WithoutCancel(r.Context()))
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	l.proxy.ServeHTTP(answer, out)
	if answer.Code < http.StatusMultipleChoices && !q.dryRun {
		l.ledger.took(q)
	}
	if now {
		l.kill(s, kind, q)
	}
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (l *lane) takeOff() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	l.flights.Add(1)
	return true
}

func (l *lane) note(kind string) {
	if kind == "" {
		return
	}
	l.gateway.mu.Lock()
	defer l.gateway.mu.Unlock()
	l.writes = append(l.writes, kind)
}

// due tells whether the write is the chosen one.
func (l *lane) due(kind string) (strike, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed == nil || kind == "" || l.dead || l.armed.kind != anyKind && l.armed.kind != kind {
		return strike{}, false
	}
	if l.counted++; l.counted < l.armed.nth {
		return strike{}, false
	}
	s := *l.armed
	l.armed = nil
	return s, true
}

// kill ends the manager and leaves the request without an answer.
func (l *lane) kill(s strike, kind string, q request) {
	<-l.started
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.manager.Kill()
	l.struck <- hit{strike: s, met: kind, name: q.resource + " " + q.namespace + "/" + q.name}
	panic(http.ErrAbortHandler)
}
