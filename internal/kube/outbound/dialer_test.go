package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// names replaces the DNS of the manager's pod.
func names(_ context.Context, host string) ([]netip.Addr, error) {
	known := map[string]string{
		"public.example": "93.184.216.34", "private.example": "10.0.0.1", "rebound.example": "169.254.169.254",
		"loopback.example": "127.0.0.1", "mapped.example": "2002:a9fe:a9fe::1",
	}
	if host == "both.example" {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("169.254.169.254")}, nil
	}
	if ip := known[host]; ip != "" {
		return []netip.Addr{netip.MustParseAddr(ip)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

var errRefused = errors.New("refused")

func strict(_ string, a Address, _ bool) error {
	if refused := (Policy{}).Refuses(a, true); refused != "" {
		return fmt.Errorf("%w: %s", errRefused, refused)
	}
	return nil
}

// A host is resolved and checked before a proxy is asked.
func TestHostsBeforeAProxy(t *testing.T) {
	t.Parallel()
	proxy := &url.URL{Scheme: "http", Host: "proxy.example:3128"}
	d := &Dialer{Check: strict, Lookup: names, ProxyOf: func(*http.Request) (*url.URL, error) { return proxy, nil }}
	for host, allowed := range map[string]bool{
		"public.example": true, "only-the-proxy-knows.example": true, "93.184.216.34": true, "1572395042": true,
		"private.example": false, "rebound.example": false, "loopback.example": false, "mapped.example": false, "both.example": false,
		"localhost": false, "LOCALHOST.": false, "a.localhost": false, "metadata.google.internal": false, "metadata.google.internal.": false, "Metadata": false,
		"127.0.0.1": false, "127.1": false, "127.0.1": false, "127.0.0.1.": false, "0": false, "0x7f.1": false, "0X7F000001": false,
		"2130706433": false, "017700000001": false, "0177.0.0.1": false, "2852039166": false, "0xa9fea9fe": false, "169.254.43518": false,
		"0251.0376.0251.0376": false, "0xa9.254.0251.254": false, "10.1": false, "999.1.1.1": false, "1.2.3.4.5": false, "4294967296": false, "08.1.1.1": false,
		"[::1]": false, "[2002:a9fe:a9fe::1]": false, "[64:ff9b::a9fe:a9fe]": false, "[64:ff9b:1::a9fe:a9fe]": false, "[::ffff:10.0.0.1]": false,
		"１６９.254.169.254": false, "bücher.example": false,
	} {
		for _, scheme := range []string{"http", "https"} {
			r := (&http.Request{URL: &url.URL{Scheme: scheme, Host: host + ":80"}}).WithContext(t.Context())
			got, err := d.Proxy(r)
			if (err == nil) != allowed || allowed && got != proxy {
				t.Errorf("%s://%s: %v, %v", scheme, host, got, err)
			}
		}
	}
}

// Without a proxy the address is checked as it is dialled; proxies themselves are the
// administrator's.
func TestDial(t *testing.T) {
	t.Parallel()
	reached := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	require.NoError(t, err)
	var proxy *url.URL
	d := &Dialer{Check: strict, Lookup: names, ProxyOf: func(*http.Request) (*url.URL, error) { return proxy, nil }}
	transport := &http.Transport{Proxy: d.Proxy, DialContext: d.Dial}
	t.Cleanup(transport.CloseIdleConnections)
	c := http.Client{Transport: transport}
	get := func(address string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := c.Do(r)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	if err := get(s.URL); !errors.Is(err, errRefused) || reached != 0 {
		t.Errorf("a loopback address: %v, %d requests", err, reached)
	}
	proxy = at
	if err := get("http://public.example/"); err != nil || reached != 1 {
		t.Errorf("by a proxy: %v, %d requests", err, reached)
	}
	if err := get("http://rebound.example/"); !errors.Is(err, errRefused) || reached != 1 {
		t.Errorf("a metadata address by a proxy: %v, %d requests", err, reached)
	}
}

// However the four bytes of an address are written, it is the same one, and no host panics.
func FuzzHost(f *testing.F) {
	f.Add(uint32(0xa9fea9fe), uint8(0), "localhost")
	f.Add(uint32(0x7f000001), uint8(5), "0x")
	f.Add(uint32(0), uint8(9), "1..2")
	f.Fuzz(func(t *testing.T, bytes uint32, form uint8, host string) {
		_, _ = addressesOf(host)
		b := [4]byte{byte(bytes >> 24), byte(bytes >> 16), byte(bytes >> 8), byte(bytes)}
		forms := []string{
			fmt.Sprint(bytes), fmt.Sprintf("0x%x", bytes), fmt.Sprintf("0%o", bytes),
			fmt.Sprintf("%d.%d.%d.%d", b[0], b[1], b[2], b[3]), fmt.Sprintf("0x%x.0%o.%d.0X%X.", b[0], b[1], b[2], b[3]),
			fmt.Sprintf("%d.%d.%d", b[0], b[1], bytes&0xffff), fmt.Sprintf("0%o.0x%x", b[0], bytes&0xffffff),
			fmt.Sprintf("::ffff:%d.%d.%d.%d", b[0], b[1], b[2], b[3]), fmt.Sprintf("64:ff9b::%x:%x", bytes>>16, bytes&0xffff),
			fmt.Sprintf("2002:%x:%x::1", bytes>>16, bytes&0xffff),
		}
		text := forms[int(form)%len(forms)]
		got, err := addressesOf(text)
		if want := Of(netip.AddrFrom4(b)); err != nil || !slices.Equal(got, []Address{want}) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	})
}

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
		require.Equal(t, test.cluster, test.policy.Refuses(a, false), fmt.Sprintf("%s, of the cluster", test.reason))
		require.Equal(t, test.namespaced, test.policy.Refuses(a, true), fmt.Sprintf("%s, of a namespace", test.reason))
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

func TestRedact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Get https://u:p@host/x?sig=1: EOF":                                                    "Get https://…@host/x?… EOF",
		"socks5://u:p@host: EOF":                                                               "socks5://…@host: EOF",
		"sent Bearer abc.def and geheim12":                                                     "sent Bearer … and …",
		"read tcp 10.0.0.1:41234->10.0.0.2:443: read: connection reset by peer":                "read tcp 10.0.0.2:443: read: connection reset by peer",
		"read tcp [fd00::1]:41234->[fd00::2]:443: i/o timeout":                                 "read tcp [fd00::2]:443: i/o timeout",
		"lookup a.example on 10.0.0.10:53: read udp 10.0.0.1:55123->10.0.0.10:53: i/o timeout": "lookup a.example on 10.0.0.10:53: read udp 10.0.0.10:53: i/o timeout",
		"the \x1b[2J server says: a->b":                                                        "the  [2J server says: a->b",
	} {
		require.Equal(t, want, Redact(text, "geheim12"), text)
	}
}
