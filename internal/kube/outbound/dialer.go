package outbound

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // for the image and for many CI images, which have no certificates on disk

	"lockstep.run/lockstep/internal/limits"
)

const proxyLookupTimeout = 2 * time.Second // for a name before the proxy is asked: the DNS of a network with a proxy might only know its own names

// Dialer connects to servers and to proxies. It is safe for concurrent use.
type Dialer struct {
	// Timeout is limits.ConnectTimeout by default.
	Timeout time.Duration
	// Check refuses the address that a host with its port was resolved to. A proxy might resolve
	// the host to another address, so the check cannot replace rules of the proxy.
	Check func(hostport string, a Address, proxied bool) error
	// ProxyOf returns the proxy of a request; nil for none.
	ProxyOf func(*http.Request) (*url.URL, error)
	// Lookup is net.DefaultResolver's by default.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	mu sync.Mutex
	// proxies by host:port, which the administrator configured.
	proxies map[string]bool
}

var ports = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}

func hostport(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), ports[u.Scheme], "80"))
}

// Proxy returns the proxy of a request, whose host is resolved and checked before the proxy is
// asked.
func (d *Dialer) Proxy(r *http.Request) (*url.URL, error) {
	if d.ProxyOf == nil {
		return nil, nil
	}

	proxy, err := d.ProxyOf(r)
	if err != nil || proxy == nil {
		return nil, err
	}
	addresses, err := d.resolve(r.Context(), r.URL.Hostname())
	if err != nil {
		return nil, err
	}

	for _, a := range addresses {
		if err := d.Check(hostport(r.URL), a, true); err != nil {
			return nil, err
		}
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proxies == nil {
		d.proxies = map[string]bool{}
	}
	d.proxies[hostport(proxy)] = true

	return proxy, nil
}

// resolve returns the addresses of a host; none if only the proxy might know them.
func (d *Dialer) resolve(ctx context.Context, host string) ([]Address, error) {
	known, err := addressesOf(host)
	if err != nil || known != nil {
		return known, err
	}
	ctx, cancel := context.WithTimeout(ctx, proxyLookupTimeout)
	defer cancel()
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}

	found, err := lookup(ctx, host)
	if err != nil {
		return nil, nil // a network with a proxy might only know the names of the cluster
	}
	addresses := make([]Address, len(found))
	for i, ip := range found {
		addresses[i] = Of(ip)
	}

	return addresses, nil
}

// Dial connects to a proxy, or to a host that the check permits. It checks the resolved address and
// connects to the same one, so a second answer of the DNS has no effect.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: cmp.Or(d.Timeout, limits.ConnectTimeout), KeepAlive: 30 * time.Second}
	d.mu.Lock()
	trusted := d.proxies[address]
	d.mu.Unlock()
	if !trusted {
		nd.Control = func(_, resolved string, _ syscall.RawConn) error {
			ip, err := ParseAddrPort(resolved)
			if err != nil {
				return err
			}
			return d.Check(address, ip, false)
		}
	}

	return nd.DialContext(ctx, network, address)
}
