package manager

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

const reconnectMax = 2 * time.Second // between attempts to reach the API server at start

// awaitServer returns the version of the API server once it answers. Until then the process is
// alive and not ready: a process that exits is restarted later each time, and after an outage no
// process would lead for minutes.
func awaitServer(ctx context.Context, c *Config, config *rest.Config, log logr.Logger) (string, error) {
	stop, err := serveUnready(c.ProbeAddress)
	if err != nil {
		return "", err
	}

	defer stop()
	config = rest.CopyConfig(config)
	config.Timeout = limits.WriteTimeout
	delays := wait.Backoff{Duration: limits.WatchBackoffMin, Cap: reconnectMax, Factor: 2, Jitter: 0.2, Steps: 32}
	for logged := ""; ; {
		kubernetes, err := versionOf(ctx, config)
		if err == nil {
			return kubernetes, nil
		}
		// An outage can last for hours; each reason is logged once.
		if message := err.Error(); message != logged {
			log.Info("waiting for the API server", "reason", message)
			logged = message
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(delays.Step()):
		}
	}
}

// serveUnready serves the probes of a process that is alive and not ready, until stop is called.
// Then the address is free.
func serveUnready(address string) (stop func(), err error) {
	if unused(address) {
		return func() {}, nil
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the API server has not answered this process yet; its log has the reason", http.StatusInternalServerError)
	})
	port, err := newPort("health probe", address, mux)
	if err != nil {
		return nil, err
	}

	panics.Go(context.Background(), "serving probes", func() { _ = port.Server.Serve(port.Listener) })
	return func() { _ = port.Server.Close() }, nil
}
