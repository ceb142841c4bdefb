package outbound

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// metadataNames are the names of the services in metadata and of link-local ones. They resolve only
// within clouds.
var metadataNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}

// linkLocal is the address that metadataNames resolve to.
var linkLocal = netip.MustParseAddr("169.254.169.254")

// addressesOf returns the addresses that the host of a URL means without the DNS, or nil: literal
// addresses, the forms that inet_aton(3) reads, and fixed names (RFC 6761).
func addressesOf(host string) ([]Address, error) {
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("the host %.100q is not ASCII: write it as DNS has it (xn--…)", host)
	}

	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return []Address{Of(ip)}, nil
	}
	switch {
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return []Address{{netip.AddrFrom4([4]byte{127, 0, 0, 1})}}, nil
	case slices.Contains(metadataNames, host):
		return []Address{{linkLocal}}, nil
	case !isNumeric(host):
		return nil, nil
	}

	ip, ok := parseNumbers(host)
	if !ok {
		return nil, fmt.Errorf("the host %.100q is neither a name nor an address", host)
	}

	return []Address{Of(ip)}, nil
}

// isNumeric reports whether a host ends in a number, as no name does
// (https://url.spec.whatwg.org/#ends-in-a-number-checker).
func isNumeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// parseNumbers reads one to four numbers, each decimal, octal with a leading 0 or hexadecimal with
// 0x. The last one fills all remaining bytes.
func parseNumbers(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}

	var all uint64
	for i, part := range parts {
		n, ok := parseNumber(part)
		limit := uint64(1) << 8
		if i == len(parts)-1 {
			limit = 1 << (8 * (5 - len(parts)))
		}
		if !ok || n >= limit {
			return netip.Addr{}, false
		}
		all = all*limit + n
	}

	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

func parseNumber(text string) (uint64, bool) {
	base := 10
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		text, base = hex, 16
		if text == "" {
			return 0, true // as inet_aton has it
		}
	} else if len(text) > 1 && text[0] == '0' {
		base = 8
	}

	if strings.HasPrefix(text, "+") || strings.Contains(text, "_") {
		return 0, false
	}

	n, err := strconv.ParseUint(text, base, 32)
	return n, err == nil
}
