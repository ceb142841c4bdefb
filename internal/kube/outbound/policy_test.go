package outbound

import (
	"net/netip"
	"testing"

	"lockstep.run/lockstep/test/require"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	networks, err := ParseNetworks("10.1.0.0/16, fd12::/16,192.168.0.7")
	require.NoError(t, err)
	all, err := ParseNetworks(AllNetworks)
	require.NoError(t, err)
	for _, test := range []struct {
		reason, address     string
		policy              Policy
		cluster, namespaced Refusal
	}{
		{"the internet", "93.184.216.34", Policy{}, "", ""},
		{"a private address", "10.0.0.1", Policy{}, "", RefusedPrivate},
		{"a private network that is allowed", "10.1.2.3", Policy{Private: networks}, "", ""},
		{"a neighbour", "10.2.0.1", Policy{Private: networks}, "", RefusedPrivate},
		{"a single address", "192.168.0.7", Policy{Private: networks}, "", ""},
		{"its neighbour", "192.168.0.8", Policy{Private: networks}, "", RefusedPrivate},
		{"of IPv6", "fd12::1", Policy{Private: networks}, "", ""},
		{"all of them", "10.9.9.9", Policy{Private: all}, "", ""},
		{"all, of IPv6", "fd00::1", Policy{Private: all}, "", ""},
		{"by NAT64", "64:ff9b::a01:1", Policy{Private: networks}, "", ""},
		{"by NAT64, a neighbour", "64:ff9b::a02:1", Policy{Private: networks}, "", RefusedPrivate},
		{"by 6to4, a neighbour", "2002:a02:1::", Policy{Private: networks}, "", RefusedPrivate},
		{"by NAT64 of a site, a neighbour", "64:ff9b:1::a02:1", Policy{Private: networks}, "", RefusedPrivate},
		{"loopback", "127.0.0.1", Policy{Private: all}, RefusedLocal, RefusedLocal},
		{"loopback by 6to4", "2002:7f00:1::1", Policy{Private: all}, RefusedLocal, RefusedLocal},
		{"metadata", "169.254.169.254", Policy{Private: all}, RefusedLocal, RefusedLocal},
		{"metadata within private networks", "fd00:ec2::254", Policy{Private: all}, RefusedLocal, RefusedLocal},
		{"loopback of tests", "127.0.0.1", Policy{Local: true}, "", ""},
		{"private addresses are not local", "10.0.0.1", Policy{Local: true}, "", RefusedPrivate},
	} {
		a := Of(netip.MustParseAddr(test.address))
		if got := test.policy.Refuses(a, false); got != test.cluster {
			t.Errorf("%s, of the cluster: %q", test.reason, got)
		}
		if got := test.policy.Refuses(a, true); got != test.namespaced {
			t.Errorf("%s, of a namespace: %q", test.reason, got)
		}
	}
	for _, bad := range []string{"10.0.0.1/8", "host", "10.0.0.0/33", "::ffff:10.0.0.0/104", "fe80::1%eth0", "10.0.0.0/8;all"} {
		if n, err := ParseNetworks(bad); err == nil {
			t.Errorf("%s: %v", bad, n)
		}
	}
	if n, err := ParseNetworks(""); err != nil || n != nil {
		t.Error(n, err)
	}
}
