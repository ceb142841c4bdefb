package outbound

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Policy decides which addresses an object can reach. The zero value permits public and
// private addresses to cluster-scoped objects, and only public ones to namespaced objects.
type Policy struct {
	// Local permits loopback, link-local and metadata addresses.
	Local bool
	// Private are the private networks that namespaced objects can reach.
	Private Networks
}

// Refusal is the reason why an address is refused; empty if it is permitted.
type Refusal string

// Refusals, in words for messages.
const (
	RefusedLocal   Refusal = "loopback or link-local"
	RefusedPrivate Refusal = "private"
)

// At describes for messages the place of a host that resolves to an address. The host can be the
// address itself.
func (r Refusal) At(host string, a Address) string {
	if host == a.String() {
		return fmt.Sprintf("%s is a %s address", host, r)
	}
	return fmt.Sprintf("%s is at the %s address %s", host, r, a)
}

// PrivateRemedy is the remedy for RefusedPrivate.
const PrivateRemedy = "If that is intended, start the manager with --allow-private-sources and its network; cluster-scoped kinds need no permission."

// Refuses returns why an object, namespaced or not, cannot reach the address.
func (p Policy) Refuses(a Address, namespaced bool) Refusal {
	switch {
	case !a.IsServer() || a.IsLoopback():
		if p.Local {
			return ""
		}
		return RefusedLocal
	case namespaced && a.IsInternal() && !p.Private.contain(a):
		return RefusedPrivate
	}

	return ""
}

// Networks are private networks.
type Networks []netip.Prefix

// AllNetworks means all networks in flags.
const AllNetworks = "all"

// ParseNetworks reads networks or addresses separated by commas, or "all".
func ParseNetworks(text string) (Networks, error) {
	var n Networks
	for one := range strings.SplitSeq(text, ",") {
		switch one = strings.TrimSpace(one); one {
		case "":
			continue
		case AllNetworks:
			n = append(n, netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))
			continue
		}
		prefix, err := parseNetwork(one)
		if err != nil {
			return nil, err
		}
		n = append(n, prefix)
	}

	return n, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if ip, wrong := netip.ParseAddr(text); wrong == nil && ip.Zone() == "" {
		prefix, err = netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	if err != nil || prefix.Addr().Is4In6() || prefix != prefix.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q: want a network such as 10.0.0.0/8 or fd00::/8, without bits of a host, an address, or %s", text, AllNetworks)
	}
	return prefix, nil
}

// Equal reports whether both are the same networks in the same order.
func (n Networks) Equal(other Networks) bool { return slices.Equal(n, other) }

// contain reports whether the address, as written or in all of its meanings, is in a network.
func (n Networks) contain(a Address) bool {
	in := func(ip netip.Addr) bool {
		return slices.ContainsFunc(n, func(p netip.Prefix) bool { return p.Contains(ip) })
	}
	return in(a.Addr) || !slices.ContainsFunc(a.meanings(), func(ip netip.Addr) bool { return !in(ip) && Address{ip}.IsInternal() })
}
