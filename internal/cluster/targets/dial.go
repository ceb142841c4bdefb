package targets

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/outbound"
)

// addressError is why an address is not connected to.
type addressError struct{ host string }

// Error names host and remedy.
func (e *addressError) Error() string {
	return fmt.Sprintf("the server %s is at a loopback, link-local or metadata address, where no target may be: "+
		"name the address that others reach it by, or start the manager with --allow-local-targets", e.host)
}

// dialer connects to one server, or to it through a proxy of the manager's environment.
type dialer struct {
	allowLocal bool

	mu      sync.Mutex
	proxies map[string]bool // by host:port
}

// newTransport returns the transport of a kubeconfig. It is not shared, so that it can be closed.
func newTransport(config *rest.Config, allowLocal bool) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, refuse("", "has certificates that cannot be used", "give them in PEM")
	}
	d := &dialer{allowLocal: allowLocal, proxies: map[string]bool{}}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy: d.proxy, DialContext: d.dial, TLSClientConfig: tlsConfig,
		TLSHandshakeTimeout: limits.ConnectTimeout, ResponseHeaderTimeout: limits.TargetRequestTimeout,
		MaxResponseHeaderBytes: limits.ResponseHeaderBytes, MaxIdleConnsPerHost: limits.TargetWritesInFlight, IdleConnTimeout: 90 * time.Second,
	}), nil
}

func (d *dialer) proxy(r *http.Request) (*url.URL, error) {
	if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
		if err := d.check(r.URL.Hostname(), outbound.Of(ip)); err != nil {
			return nil, err
		}
	}
	proxy, err := http.ProxyFromEnvironment(r)
	if err == nil && proxy != nil {
		ports := map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}
		d.mu.Lock()
		d.proxies[net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), ports[proxy.Scheme], "80"))] = true
		d.mu.Unlock()
	}
	return proxy, err
}

// dial connects, unless the address is one that no target may have. The check is made on
// the address that was resolved, so that another answer of the DNS changes nothing.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: limits.ConnectTimeout, KeepAlive: 30 * time.Second}
	d.mu.Lock()
	trusted := d.proxies[address]
	d.mu.Unlock()
	if !trusted {
		nd.Control = func(_, resolved string, _ syscall.RawConn) error {
			ip, err := outbound.ParseAddrPort(resolved)
			if err != nil {
				return err
			}
			return d.check(address, ip)
		}
	}
	return nd.DialContext(ctx, network, address)
}

// check refuses addresses of the manager's own pod and node, and of the services of
// clouds. Private ones are allowed, since most API servers have them: what answers there
// has a certificate that the kubeconfig vouches for.
func (d *dialer) check(host string, ip outbound.Address) error {
	if d.allowLocal || ip.IsServer() && !ip.IsLoopback() {
		return nil
	}
	return &addressError{host}
}
