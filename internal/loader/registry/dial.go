package registry

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"

	"lockstep.run/lockstep/internal/loader/outbound"
)

// dialer connects for pulls from one registry. One at a public address must not lead requests to private ones; none
// may reach link-local addresses, where clouds have their metadata. The check is made on the resolved address.
type dialer struct {
	registry string
	timeout  time.Duration

	mu sync.Mutex
	// proxies by host:port, which the administrator configured.
	proxies map[string]bool
	// private is set while the registry itself is at a private address.
	private bool
	renew   func()
}

var proxyPorts = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}

func (d *dialer) allowProxy(proxy *url.URL) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proxies == nil {
		d.proxies = map[string]bool{}
	}
	d.proxies[net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), proxyPorts[proxy.Scheme], "80"))] = true
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nd := net.Dialer{
		Timeout: d.timeout, KeepAlive: 30 * time.Second,
		Control: func(_, resolved string, _ syscall.RawConn) error { return d.check(address, resolved) },
	}
	return nd.DialContext(ctx, network, address)
}

func (d *dialer) check(address, resolved string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proxies[address] {
		return nil
	}
	ip, err := outbound.ParseAddrPort(resolved)
	if err != nil {
		return err
	}
	host, private := hostname(address), ip.IsInternal()
	switch {
	case !ip.IsServer():
		return failf(ReasonForbiddenAddress, "", "%s is at %s, which no registry is", host, ip)
	case host == d.registry:
		if d.private && !private {
			d.renew() // what was reached behind the former address
		}
		d.private = private
	case private && !d.private:
		return failf(ReasonForbiddenAddress, "", "the registry %s is public and sends the request to %s, which is at the private address %s", d.registry, host, ip)
	}
	return nil
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}
