package manager

import (
	"net"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/limits"
)

// apart returns config for a client that does not watch: each of its requests under
// way has a connection to itself, over HTTP/1.1. Over the one connection of HTTP/2 they
// wait for each other, and cost both sides more. Watches, which are many and mostly
// silent, stay on that one.
//
// HTTP/2 sees by itself that a server is gone; here the time that a request may take
// does. Protocols and a dialer that config names stay.
func apart(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Timeout = limits.WriteTimeout
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{"http/1.1"} // RFC 7301
	}
	if config.Dial == nil {
		// One of its own: clients of the same dialer share their connections, of which
		// those beyond 25 are closed after a request.
		config.Dial = (&net.Dialer{Timeout: limits.DialTimeout}).DialContext
	}
	return config
}

// closeIdle closes the connections of such clients that no request uses: each takes about
// 40 KiB, and the next request makes another.
func closeIdle(mgr ctrl.Manager, writer *apply.Writer) {
	utilnet.CloseIdleConnectionsFor(mgr.GetHTTPClient().Transport)
	writer.CloseIdleConnections()
}
