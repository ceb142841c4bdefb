package outbound

import (
	"net/netip"
	"slices"
)

// Address is an IP address that is about to be dialled, after the resolution of names.
type Address struct{ netip.Addr }

// ParseAddrPort reads an address with a port. IPv4 addresses in IPv6 form become IPv4 addresses.
func ParseAddrPort(hostport string) (Address, error) {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return Address{}, err
	}
	return Of(at.Addr()), nil
}

// Of returns the address that packets to ip reach if ip has one meaning.
func Of(ip netip.Addr) Address {
	ip = ip.WithZone("").Unmap()
	switch {
	case nat64.Contains(ip):
		return Address{embedded(ip, 12, 13, 14, 15)}
	case sixToFour.Contains(ip):
		return Address{embedded(ip, 2, 3, 4, 5)}
	}
	return Address{ip}
}

var (
	// nat64 translates IPv4 addresses (RFC 6052); localNAT64 translates a site's, with prefixes of
	// any length (RFC 8215).
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	// sixToFour tunnels to IPv4 addresses (RFC 3056).
	sixToFour = netip.MustParsePrefix("2002::/16")
	// globalUnicast are the only addresses of IPv6 that are given out.
	globalUnicast = netip.MustParsePrefix("2000::/3")
	// thisNetwork is the host itself on Linux (RFC 1122).
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
	// private are networks in addition to RFC 1918 that are not routed on the internet, and that
	// clouds use for pods.
	private = []netip.Prefix{
		netip.MustParsePrefix("100.64.0.0/10"),   // of providers (RFC 6598)
		netip.MustParsePrefix("192.0.0.0/24"),    // of protocols (RFC 6890)
		netip.MustParsePrefix("192.0.2.0/24"),    // of documentation (RFC 5737)
		netip.MustParsePrefix("192.88.99.0/24"),  // of 6to4 relays (RFC 7526)
		netip.MustParsePrefix("198.18.0.0/15"),   // of benchmarks (RFC 2544)
		netip.MustParsePrefix("198.51.100.0/24"), // of documentation
		netip.MustParsePrefix("203.0.113.0/24"),  // of documentation
		netip.MustParsePrefix("240.0.0.0/4"),     // reserved (RFC 1112)
		netip.MustParsePrefix("2001::/23"),       // of protocols, Teredo among them (RFC 2928)
		netip.MustParsePrefix("2001:db8::/32"),   // of documentation (RFC 3849)
	}
	// metadata are services of clouds that hand out credentials and are not at link-local
	// addresses.
	metadata = []netip.Addr{
		netip.MustParseAddr("fd00:ec2::254"),   // Amazon
		netip.MustParseAddr("fd00:ec2::23"),    // Amazon, of pods
		netip.MustParseAddr("fd20:ce::254"),    // Google
		netip.MustParseAddr("168.63.129.16"),   // Microsoft
		netip.MustParseAddr("100.100.100.200"), // Alibaba
		netip.MustParseAddr("192.0.0.192"),     // Oracle
	}
)

// embedded returns the IPv4 address in four bytes of an IPv6 address.
func embedded(ip netip.Addr, at ...int) netip.Addr {
	b, found := ip.As16(), [4]byte{}
	for i, n := range at {
		found[i] = b[n]
	}
	return netip.AddrFrom4(found)
}

// meanings returns the addresses that the address can lead to. The length of a prefix of local
// NAT64 is not known, so every valid length counts.
func (a Address) meanings() []netip.Addr {
	if !localNAT64.Contains(a.Addr) {
		return []netip.Addr{a.Addr}
	}

	var found []netip.Addr
	for _, at := range [][]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}} {
		if v4 := embedded(a.Addr, at...); !thisNetwork.Contains(v4) {
			found = append(found, v4)
		}
	}

	if found == nil {
		found = []netip.Addr{netip.IPv4Unspecified()}
	}
	return found
}

// IsServer reports whether the address can belong to a server, elsewhere or on loopback: it is not
// link-local, unspecified, multicast or the address of a metadata service.
func (a Address) IsServer() bool {
	return !slices.ContainsFunc(a.meanings(), func(ip netip.Addr) bool {
		return ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || thisNetwork.Contains(ip) || ip == broadcast || slices.Contains(metadata, ip)
	})
}

// IsLoopback reports whether the address is one of the host itself.
func (a Address) IsLoopback() bool { return slices.ContainsFunc(a.meanings(), netip.Addr.IsLoopback) }

// IsInternal reports whether the address is on loopback or within a private network: not one of the
// internet.
func (a Address) IsInternal() bool {
	return slices.ContainsFunc(a.meanings(), func(ip netip.Addr) bool {
		return ip.IsPrivate() || ip.IsLoopback() || ip.Is6() && !globalUnicast.Contains(ip) ||
			slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(ip) })
	})
}
