package outbound

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"lockstep.run/lockstep/internal/limits"
)

var (
	urlQuery    = regexp.MustCompile(`((?:https?|ssh)://[^\s"?]*)\?[^\s"]*`)
	urlUserinfo = regexp.MustCompile(`((?:https?|ssh|socks5h?)://)[^\s"/@]*@`)
	// localAddress has another port with every connection.
	localAddress = regexp.MustCompile(`[0-9A-Za-z.:%\[\]]+:\d+->`)
	credentials  = regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9._~+/=-]+`)
)

// Redact removes what [Conceal] does, and the near end of connections, and returns one short line.
func Redact(text string, secrets ...string) string {
	for _, v := range secrets {
		text = strings.ReplaceAll(text, v, "…")
	}
	text = limits.Cut(localAddress.ReplaceAllString(Conceal(text), ""), limits.RegistryErrorBytes)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) {
			return ' '
		}
		return r
	}, text)
}

// Conceal removes credentials and queries of URLs, which may be signatures, and credentials of
// HTTP.
func Conceal(text string) string {
	text = urlQuery.ReplaceAllString(text, "$1?…")
	text = urlUserinfo.ReplaceAllString(text, "$1…@")
	return credentials.ReplaceAllString(text, "$1 …")
}

// ShowURL returns a URL without credentials and query.
func ShowURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	text := shown.String()
	if u.RawQuery != "" {
		text += "?…"
	}
	return Redact(text)
}
