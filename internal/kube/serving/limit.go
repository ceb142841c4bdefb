package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// Limit returns a listener that keeps so many connections at a time.
func Limit(listener net.Listener, most int) net.Listener {
	return &limited{Listener: listener, most: most}
}

type limited struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*conn // oldest first
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l}
	if oldest := l.add(c); oldest != nil {
		_ = oldest.Close()
	}

	return c, nil
}

// add returns the connection to close in favour of a further one, or the further one itself if
// handlers hold all others.
func (l *limited) add(c *conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	if len(l.open) <= l.most {
		return nil
	}
	return l.open[slices.IndexFunc(l.open, func(c *conn) bool { return !c.held })]
}

type conn struct {
	net.Conn
	listener *limited
	held     bool // by a handler; the listener's mutex guards it
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.open = slices.DeleteFunc(c.listener.open, func(other *conn) bool { return other == c })
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

func (c *conn) hold(held bool) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.held = held
}

type connKey struct{}

// Connected is the ConnContext of a server whose handlers call Hold.
func Connected(ctx context.Context, connection net.Conn) context.Context {
	if secure, is := connection.(*tls.Conn); is {
		connection = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, connection)
}

// Hold returns a handler whose connection stays open while it answers. Put it behind the check of
// who asks.
func Hold(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, limited := r.Context().Value(connKey{}).(*conn); limited {
			c.hold(true)
			defer c.hold(false)
		}
		handler.ServeHTTP(w, r)
	})
}
