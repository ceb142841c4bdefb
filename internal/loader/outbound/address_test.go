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
		{"169.254.169.254:80", false, false},
		{"[::ffff:169.254.169.254]:80", false, false},
		{"[64:ff9b::a9fe:a9fe]:80", false, false},
		{"[fe80::1]:80", false, false},
		{"[fe80::1%eth0]:80", false, false},
		{"[fd00:ec2::254]:80", false, true},
		{"168.63.129.16:80", false, false},
		{"100.100.100.200:80", false, true},
		{"0.0.0.0:80", false, false},
		{"0.1.2.3:80", false, false},
		{"[::]:80", false, false},
		{"224.0.0.1:80", false, false},
		{"[ff02::1]:80", false, false},
		{"255.255.255.255:80", false, false},
	} {
		a, err := ParseAddrPort(test.address)
		if err != nil || a.IsServer() != test.server || a.IsInternal() != test.internal {
			t.Errorf("%s: server %v, internal %v, %v", test.address, a.IsServer(), a.IsInternal(), err)
		}
	}
	if _, err := ParseAddrPort("host:80"); err == nil {
		t.Error("a name is no address")
	}
}
