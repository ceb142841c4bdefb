package cluster

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"lockstep.run/lockstep/sandbox/internal/program"
)

// componentStartLimit bounds the wait for a component that was started again.
const componentStartLimit = 60 * time.Second

// serveControl opens the endpoint that other processes use to get the supervisor's state, and to
// stop and start single components. It is on loopback and requires a token that only the state file
// contains.
func (s *supervisor) serveControl() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("opening the control endpoint: %w", err)
	}

	s.mu.Lock()
	s.control = listener
	s.mu.Unlock()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.info())
	})
	mux.HandleFunc("POST /components/{name}/{action}", s.handleComponent)
	server := &http.Server{Handler: s.authorized(mux), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return nil
}

func (s *supervisor) authorized(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "this control endpoint belongs to another sandbox", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *supervisor) handleComponent(w http.ResponseWriter, r *http.Request) {
	name, action := r.PathValue("name"), r.PathValue("action")
	c := s.component(name)
	if c == nil {
		http.Error(w, fmt.Sprintf("sandbox %s has no component %q", s.options.Name, name), http.StatusNotFound)
		return
	}

	var err error
	switch action {
	case "start":
		err = s.startComponent(r.Context(), c)
	case "stop":
		c.stop(stopLimits[name])
	case "kill":
		c.stop(0)
	default:
		http.Error(w, fmt.Sprintf("unknown action %q", action), http.StatusNotFound)
		return
	}

	if stateErr := s.writeState(); err == nil {
		err = stateErr
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *supervisor) component(name string) *component {
	for _, c := range s.components {
		if c.name == name {
			return c
		}
	}
	return nil
}

// startComponent starts c and waits until it works. It does not wait if that is impossible: for an
// API server without etcd, or a client without API server.
func (s *supervisor) startComponent(ctx context.Context, c *component) error {
	ctx, cancel := context.WithTimeoutCause(ctx, componentStartLimit, fmt.Errorf("not within %s", componentStartLimit))
	defer cancel()
	if err := c.start(); err != nil {
		return err
	}

	needs := map[string]string{program.APIServer: program.Etcd}
	if isClient(c.name) {
		needs[c.name] = program.APIServer
	}

	for name := c.name; needs[name] != ""; name = needs[name] {
		if s.component(needs[name]).status().State != StateRunning {
			return nil
		}
	}

	return s.await(ctx, c.name)
}
