package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/ui/guard"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/internal/ui/watches"
)

const (
	pageHeaderBytes  = 16 << 10         // of a request; browsers send one or two KiB
	pageWriteTimeout = 30 * time.Second // of an answer, and of each piece of a stream
	pageConnections  = 64               // a browser opens six for a host
	pageStreams      = 12               // two browsers' worth
	pagePlans        = 2                // at a time: each has the images of what it compares in memory
)

// server answers the requests of the browser that is signed in.
type server struct {
	cluster *cluster.Cluster
	board   *watches.Board
	details *watches.Details
	offers  *watches.Catalogue
	guard   *guard.Guard
	// ctx ends with the command.
	ctx context.Context
	// changes: packages may be paused and retried.
	changes bool
	// notes of every page, beside those of the board.
	notes []string
	// quiet are streams for what commands print beside their result.
	quiet   command.Command
	streams chan struct{}
	// plans are those that are made at a time.
	plans chan struct{}
}

// newServer is for a page at an address; closed is called after too many wrong codes.
func newServer(ctx context.Context, cl *cluster.Cluster, host string, changes bool, closed func()) *server {
	s := &server{
		cluster: cl, ctx: ctx, changes: changes, quiet: command.Command{Streams: genericiooptions.NewTestIOStreamsDiscard()}, streams: make(chan struct{}, pageStreams), plans: make(chan struct{}, pagePlans),
		board: watches.Start(ctx, cl), details: watches.NewDetails(ctx, cl),
	}
	s.offers = watches.NewCatalogue(ctx, cl, s.board)
	s.guard = guard.New(host, page.Door{}, s.routes(), closed)
	return s
}

// serve answers on a listener until ctx ends.
func (s *server) serve(listener net.Listener) error {
	h := &http.Server{
		Handler: s.guard, ReadHeaderTimeout: pageReadTimeout, ReadTimeout: pageReadTimeout, WriteTimeout: pageWriteTimeout,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: pageHeaderBytes, BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	stop := context.AfterFunc(s.ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(&bounded{Listener: listener, places: make(chan struct{}, pageConnections)}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// bounded is a listener with so many connections at a time.
type bounded struct {
	net.Listener
	places chan struct{}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	b.places <- struct{}{}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &boundedConn{Conn: conn, places: b.places}, nil
}

type boundedConn struct {
	net.Conn
	places chan struct{}
	once   sync.Once
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.once.Do(func() { <-c.places })
	return c.Conn.Close()
}
