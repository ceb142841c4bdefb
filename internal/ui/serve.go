package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/kube/serving"
	"lockstep.run/lockstep/internal/ui/guard"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/internal/ui/watches"
)

const (
	pageHeaderBytes  = 16 << 10         // of a request; browsers send one or two KiB
	pageWriteTimeout = 30 * time.Second // of an answer, and of each piece of a stream
	pageConnections  = 64               // a browser opens six for a host
	pageStreams      = 12               // enough for two browsers
)

// server answers the requests of the browser that is signed in.
type server struct {
	cluster *cluster.Cluster
	board   *watches.Board
	details *watches.Details
	guard   *guard.Guard

	// ctx ends with the command.
	ctx context.Context
	// notes on every page, in addition to the board's.
	notes   []string
	streams chan struct{}
}

// newServer returns a server for a page at an address.
func newServer(ctx context.Context, cl *cluster.Cluster, host string) *server {
	s := &server{
		cluster: cl, ctx: ctx, streams: make(chan struct{}, pageStreams),
		board: watches.Start(ctx, cl), details: watches.NewDetails(cl),
	}
	s.guard = guard.New(host, page.Door{}, serving.Hold(s.routes()))
	return s
}

// serve answers on a listener until ctx ends.
func (s *server) serve(listener net.Listener) error {
	h := &http.Server{
		Handler: s.guard, ReadHeaderTimeout: pageReadTimeout, ReadTimeout: pageReadTimeout, WriteTimeout: pageWriteTimeout,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: pageHeaderBytes, BaseContext: func(net.Listener) context.Context { return s.ctx },
		ConnContext: serving.Connected,
	}

	stop := context.AfterFunc(s.ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(serving.Limit(listener, pageConnections)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
