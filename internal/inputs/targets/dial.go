package targets

import (
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
)

// addressError is why a connection to an address is refused.
type addressError struct {
	host    string
	refused outbound.Refusal
}

// Error names the host and the remedy.
func (e *addressError) Error() string {
	if e.refused == outbound.RefusedPrivate {
		return fmt.Sprintf("the server %s is at a private address, which is not allowed for targets of a namespace. %s", e.host, outbound.PrivateRemedy)
	}
	return fmt.Sprintf("the server %s is at a loopback, link-local or metadata address, which is not allowed for targets: "+
		"name the address that others reach it by, or start the manager with --allow-local-targets", e.host)
}

// newTransport returns the transport for a kubeconfig. namespaced means that it belongs to an
// object in a namespace. It connects only to one server, directly or through a proxy of the
// manager's environment. It is not shared, so that it can be closed.
func newTransport(config *rest.Config, policy outbound.Policy, namespaced bool) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, refuse("", "has certificates that cannot be used", "give them in PEM")
	}

	d := &outbound.Dialer{ProxyOf: http.ProxyFromEnvironment, Check: func(hostport string, ip outbound.Address, _ bool) error {
		host, _, err := net.SplitHostPort(hostport)
		if err != nil {
			return err
		}
		if refused := policy.Refuses(ip, namespaced); refused != "" {
			return &addressError{host, refused}
		}
		return nil
	}}

	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy: d.Proxy, DialContext: d.Dial, TLSClientConfig: tlsConfig,
		TLSHandshakeTimeout: limits.ConnectTimeout, ResponseHeaderTimeout: limits.TargetRequestTimeout,
		MaxResponseHeaderBytes: limits.ResponseHeaderBytes, MaxIdleConnsPerHost: limits.TargetWritesInFlight, IdleConnTimeout: 90 * time.Second,
	}), nil
}
