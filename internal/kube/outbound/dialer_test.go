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
