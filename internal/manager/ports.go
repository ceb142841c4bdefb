package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"lockstep.run/lockstep/internal/kube/serving"
)

// Every pod of the cluster can be a client of a port. Together they hold at most a few MiB of the
// process.
const (
	portConnections  = 64               // at a time
	portHeaderBytes  = 8 << 10          // of a request; a token has some 1 KiB
	portReadTimeout  = 5 * time.Second  // of a request, with the handshake of TLS
	portWriteTimeout = 30 * time.Second // of an answer; metrics are some MiB
	portIdleTimeout  = 2 * time.Minute  // between two requests: more than the pause between two scrapes
)

// newPort listens at an address, and returns the server of the port.
func newPort(name, address string, handler http.Handler) (*ctrlmanager.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", name, err)
	}
	return &ctrlmanager.Server{
		Name: name, Listener: serving.Limit(listener, portConnections), ShutdownTimeout: ptr.To(portReadTimeout),
		Server: &http.Server{
			Handler: handler, ConnContext: serving.Connected, MaxHeaderBytes: portHeaderBytes, ReadHeaderTimeout: portReadTimeout,
			ReadTimeout: portReadTimeout, WriteTimeout: portWriteTimeout, IdleTimeout: portIdleTimeout,
			ErrorLog: log.New(io.Discard, "", 0), // its lines report broken handshakes, which any client can cause
		},
	}, nil
}

// unused reports whether an address disables its port.
func unused(address string) bool { return address == "" || address == "0" }

// newMetrics returns the server of /metrics, by TLS with a certificate of its own if it is secure.
func newMetrics(c *Config, config *rest.Config, logger logr.Logger) (*ctrlmanager.Server, error) {
	handler, err := metricsHandler(c.MetricsSecure, config, logger)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w", err)
	}

	port, err := newPort("metrics", c.MetricsAddress, handler)
	if err != nil || !c.MetricsSecure {
		return port, err
	}

	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for metrics: %w", err)
	}

	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for metrics: %w", err)
	}

	port.Listener = tls.NewListener(port.Listener, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	return port, nil
}

// probed is a manager whose checks are served by a port of ours.
type probed struct {
	ctrl.Manager
	alive, ready healthz.Handler
}

// newProbed returns a manager that serves probes at an address, unless it is 0.
func newProbed(mgr ctrl.Manager, address string) (*probed, error) {
	p := &probed{Manager: mgr, alive: healthz.Handler{Checks: map[string]healthz.Checker{}}, ready: healthz.Handler{Checks: map[string]healthz.Checker{}}}
	if unused(address) {
		return p, nil
	}
	port, err := newPort("health probe", address, p.probes())
	if err != nil {
		return nil, err
	}
	return p, mgr.Add(port)
}

// AddHealthzCheck adds a check of /healthz, before the manager starts.
func (p *probed) AddHealthzCheck(name string, check healthz.Checker) error {
	p.alive.Checks[name] = check
	return nil
}

// AddReadyzCheck adds a check of /readyz, before the manager starts.
func (p *probed) AddReadyzCheck(name string, check healthz.Checker) error {
	p.ready.Checks[name] = check
	return nil
}

// probes serves all checks of a path together, and each by its own name below it.
func (p *probed) probes() http.Handler {
	mux := http.NewServeMux()
	for path, checks := range map[string]*healthz.Handler{"/healthz": &p.alive, "/readyz": &p.ready} {
		mux.Handle(path, http.StripPrefix(path, checks))
		mux.Handle(path+"/", http.StripPrefix(path, checks)) // one of them
	}
	return mux
}
