package outbound

import "testing"

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		address          string
		server, internal bool
	}{
		{"93.184.216.34:443", true, false},
		{"[2606:2800:220:1::1]:443", true, false},
		{"10.96.0.1:443", true, true},
		{"192.168.1.1:443", true, true},
		{"[fd12::1]:443", true, true},
		{"100.64.0.1:443", true, true},
		{"127.0.0.1:80", true, true},
		{"127.9.9.9:80", true, true},
		{"[::1]:80", true, true},
		{"[::ffff:127.0.0.1]:80", true, true},
		{"[64:ff9b::7f00:1]:80", true, true},
		{"[64:ff9b:1::a00:1]:80", true, true},      // NAT64 of a site, by a prefix of 96 bits
		{"[64:ff9b:1:a00:0:100::]:80", true, true}, // by one of 48 bits: 10.0.0.1
		{"[64:ff9b:1::808:808]:80", true, false},
		{"[64:ff9b:1:808:8:800::]:80", true, false},
		{"[64:ff9b:1::7f00:1]:80", true, true},
		{"[64:ff9b:1::a9fe:a9fe]:80", false, false},
		{"[64:ff9b:1:a9fe:a9:fe00::]:80", false, true},
		{"[64:ff9b:1::]:80", false, false},
		{"[2002:a00:1::1]:80", true, true}, // 6to4
		{"[2002:7f00:1::]:80", true, true},
		{"[2002:a9fe:a9fe::1]:80", false, false},
		{"[2002:5db8:d822::1]:80", true, false},
		{"198.18.0.1:80", true, true},
		{"240.0.0.1:80", true, true},
		{"[fec0::1]:80", true, true},
		{"[2001:db8::1]:80", true, true},
		{"[2001:0:5ef5:79fd::1]:80", true, true}, // Teredo
		{"169.254.169.254:80", false, false},
		{"[::ffff:169.254.169.254]:80", false, false},
		{"[64:ff9b::a9fe:a9fe]:80", false, false},
		{"[fe80::1]:80", false, true},
		{"[fe80::1%eth0]:80", false, true},
		{"[fd00:ec2::254]:80", false, true},
		{"168.63.129.16:80", false, false},
		{"100.100.100.200:80", false, true},
		{"0.0.0.0:80", false, false},
		{"0.1.2.3:80", false, false},
		{"[::]:80", false, true},
		{"224.0.0.1:80", false, false},
		{"[ff02::1]:80", false, true},
		{"255.255.255.255:80", false, true},
		{"192.0.0.192:80", false, true},
	} {
		a, err := ParseAddrPort(test.address)
		if err != nil || a.IsServer() != test.server || a.IsInternal() != test.internal {
			t.Errorf("%s: server %v, internal %v, %v", test.address, a.IsServer(), a.IsInternal(), err)
		}
	}
	for _, loopback := range []string{"127.0.0.1:80", "[::1]:80", "[64:ff9b::7f00:1]:80", "[64:ff9b:1::7f00:1]:80", "[2002:7f00:1::]:80", "[::ffff:127.1.1.1]:80"} {
		if a, err := ParseAddrPort(loopback); err != nil || !a.IsLoopback() {
			t.Errorf("%s: %v", loopback, err)
		}
	}
	if _, err := ParseAddrPort("host:80"); err == nil {
		t.Error("a name is not an address")
	}
}
