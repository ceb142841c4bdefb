package registry

import (
	"net"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/kube/outbound"
)

// dialer connects for pulls from one registry. A registry at a public address must not lead
// requests to private ones, and none can reach link-local addresses, where clouds have their
// metadata. It checks the resolved address.
type dialer struct {
	outbound.Dialer
	registry   string
	policy     outbound.Policy
	namespaced bool
	// named are the registries that the administrator named, with their ports. They can be at any
	// address.
	named map[string]bool

	mu sync.Mutex
	// private is set while the registry itself is at a private address.
	private bool
	renew   func()
}

// check refuses an address after it was resolved. A name alone proves nothing, because its owner
// can point it to any address between two look-ups.
func (d *dialer) check(address string, ip outbound.Address, proxied bool) error {
	host, private := hostname(address), ip.IsInternal()
	if !ip.IsServer() {
		return failf(ReasonForbiddenAddress, "", "%s is at %s, which no registry is", host, ip)
	}

	switch refused := d.policy.Refuses(ip, d.namespaced); {
	case refused == "" || d.named[address]:
	case refused == outbound.RefusedPrivate:
		return failf(ReasonForbiddenAddress, outbound.PrivateRemedy, "%s, which no image of a namespace is pulled from", refused.At(host, ip))
	default:
		return failf(ReasonForbiddenAddress, "If that is intended, start the manager with --allow-local-sources.",
			"%s, which no image is pulled from", refused.At(host, ip))
	}

	// The address is the proxy's, which the administrator named.
	if proxied {
		return nil
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case host == d.registry:
		if d.private && !private {
			d.renew() // drops connections to the former address
		}
		d.private = private
	case private && !d.private:
		return failf(ReasonForbiddenAddress, "", "the registry %s is public and sends the request to %s, which is at the private address %s", d.registry, host, ip)
	}

	return nil
}

// named returns the registries that the administrator named, with the ports that they are reached
// by.
func (o *Options) named() map[string]bool {
	found := map[string]bool{}
	add := func(host string) {
		reg, err := name.NewRegistry(host)
		if err != nil {
			return // an invalid override, which pulls report
		}
		if _, _, err := net.SplitHostPort(reg.RegistryStr()); err == nil {
			found[reg.RegistryStr()] = true
			return
		}
		plain := strings.Trim(reg.RegistryStr(), "[]")
		found[net.JoinHostPort(plain, "443")], found[net.JoinHostPort(plain, "80")] = true, true
	}

	for _, host := range o.InsecureRegistries {
		add(host)
	}

	for host := range o.Authorities {
		add(host)
	}

	for _, override := range o.RegistryHosts {
		add(override.To)
	}

	for _, override := range o.ImagePrefixes {
		host, _, _ := strings.Cut(override.To, "/")
		add(host)
	}

	return found
}

// hostname strips the port.
func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}
