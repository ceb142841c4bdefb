package registry

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// dialer connects for one pull at a time. Redirects and token services of a registry on
// a public address must not reach a private one; link-local addresses, where
// clouds have their metadata, are for nobody. The check is made on the address
// that is connected to, after DNS.
type dialer struct {
	registry string
	timeout  time.Duration

	mu sync.Mutex
	// proxies by host:port; they are the administrator's choice.
	proxies map[string]bool
	// private is set when the registry itself is on a private address.
	private bool
	// inherited is set while private is what an earlier pull found; renew closes
	// the connections of that one.
	inherited bool
	renew     func()
}

// inherit makes the dialer that of the next pull, which goes on with the
// connections that there are. Once it connects to the registry anew, what counts
// is the address that the registry has then.
func (d *dialer) inherit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inherited = true
}

func (d *dialer) allowProxy(proxy *url.URL) {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	if port == "" {
		port = "80"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proxies == nil {
		d.proxies = map[string]bool{}
	}
	d.proxies[net.JoinHostPort(proxy.Hostname(), port)] = true
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
	at, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return err
	}
	host, ip := hostname(address), translated(at.Addr().Unmap())
	private := ip.IsPrivate() || ip.IsLoopback() || shared.Contains(ip)
	switch {
	case ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified():
		return failf(ReasonForbiddenAddress, "", "%s is at %s, which no registry is", host, ip)
	case host == d.registry && d.inherited:
		d.inherited, d.private = false, private
		d.renew()
	case host == d.registry:
		d.private = d.private || private
	case private && !d.private:
		return failf(ReasonForbiddenAddress, "", "the registry %s is public and sends the request to %s, which is at the private address %s", d.registry, host, ip)
	}
	return nil
}

// shared are addresses between a provider and its customers (RFC 6598), where some
// clouds have their metadata; nat64 is the prefix behind which networks of IPv6 alone
// have the addresses of IPv4 (RFC 6052).
var (
	shared = netip.MustParsePrefix("100.64.0.0/10")
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
)

// translated is the address of IPv4 that one of IPv6 leads to, or the address itself.
func translated(ip netip.Addr) netip.Addr {
	if !nat64.Contains(ip) {
		return ip
	}
	b := ip.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// hostname cuts off the port.
func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}
