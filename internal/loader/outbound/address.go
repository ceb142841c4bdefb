package outbound

import (
	"net/netip"
	"slices"
)

// Address is an IP address that is about to be dialled, after the resolution of names.
type Address struct{ netip.Addr }

// ParseAddrPort reads an address with a port. IPv4 addresses in the forms of IPv6 are those that they lead to.
func ParseAddrPort(hostport string) (Address, error) {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return Address{}, err
	}
	return Of(at.Addr()), nil
}

// Of returns the address that packets to ip reach.
func Of(ip netip.Addr) Address {
	return Address{translated(ip.WithZone("").Unmap())}
}

var (
	// shared is the address space of providers (RFC 6598).
	shared = netip.MustParsePrefix("100.64.0.0/10")
	// nat64 translates IPv4 addresses (RFC 6052).
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	// thisNetwork is the host itself on Linux (RFC 1122).
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
	// metadata are services of clouds that hand out credentials and are not at link-local addresses.
	metadata = []netip.Addr{
		netip.MustParseAddr("fd00:ec2::254"),   // Amazon
		netip.MustParseAddr("fd00:ec2::23"),    // Amazon, of pods
		netip.MustParseAddr("fd20:ce::254"),    // Google
		netip.MustParseAddr("168.63.129.16"),   // Microsoft
		netip.MustParseAddr("100.100.100.200"), // Alibaba
		netip.MustParseAddr("192.0.0.192"),     // Oracle
	}
)

// translated returns the IPv4 address behind NAT64, or the address itself.
func translated(ip netip.Addr) netip.Addr {
	if !nat64.Contains(ip) {
		return ip
	}
	b := ip.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// IsServer reports whether a server elsewhere may be at the address, or on loopback: it is not link-local, unspecified,
// multicast or that of a metadata service.
func (a Address) IsServer() bool {
	return !a.IsLinkLocalUnicast() && !a.IsMulticast() && !a.IsUnspecified() && !thisNetwork.Contains(a.Addr) &&
		a.Addr != broadcast && !slices.Contains(metadata, a.Addr)
}

// IsInternal reports whether the address is on loopback or within a private network.
func (a Address) IsInternal() bool {
	return a.IsPrivate() || a.IsLoopback() || shared.Contains(a.Addr)
}
