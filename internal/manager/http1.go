package manager

import (
	"net"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/limits"
)

// http1Config returns config for a client that does not watch: each request has a connection of its
// own, over HTTP/1.1, because requests over one HTTP/2 connection wait for each other. HTTP/2
// detects a lost server by pings; here the timeout does. It keeps the protocols and the dialer of
// config.
func http1Config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Timeout = limits.WriteTimeout
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{"http/1.1"} // RFC 7301
	}
	if config.Dial == nil {
		// Clients of one dialer share connections, and keep 25 of them open.
		config.Dial = (&net.Dialer{Timeout: limits.DialTimeout}).DialContext
	}
	return config
}

// closeIdle closes idle connections of such clients, which take about 40 KiB each.
func closeIdle(mgr ctrl.Manager, writer *apply.Writer) {
	utilnet.CloseIdleConnectionsFor(mgr.GetHTTPClient().Transport)
	writer.CloseIdleConnections()
}
