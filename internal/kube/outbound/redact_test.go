package outbound

import "testing"

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
		if got := Redact(text, "geheim12"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
