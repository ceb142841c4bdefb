package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Authorities are PEM files with additional certificate authorities, by registry. Like Proxies,
// they apply to everything that a pull from the registry reaches, such as its token service and its
// storage, except to hosts that are named themselves.
type Authorities map[string]string

// Proxies are the proxies of registries; nil means a direct connection. Other registries use the
// environment's.
type Proxies map[string]*url.URL

// ParseAuthorities parses HOST[:PORT]=FILE.
func ParseAuthorities(pairs []string) (Authorities, error) {
	return parseSettings(pairs, "HOST[:PORT]=FILE", "; put all certificates into one file", func(file string) (string, error) { return file, nil })
}

// ParseProxies parses HOST[:PORT]=URL, or HOST[:PORT]=direct for no proxy. Its errors contain no
// URL.
func ParseProxies(pairs []string) (Proxies, error) {
	return parseSettings(pairs, "HOST[:PORT]=URL, or HOST[:PORT]="+directly, "", parseProxy)
}

// parseSettings parses settings of single registries. Its errors leave out the part that might be a
// URL.
func parseSettings[V any](pairs []string, want, remedy string, parse func(text string) (V, error)) (map[string]V, error) {
	var settings map[string]V
	for _, pair := range pairs {
		host, text, _ := strings.Cut(strings.TrimSpace(pair), "=")
		reg, err := name.NewRegistry(host)
		switch {
		case err != nil || host == "":
			return nil, errors.New("want " + want)
		case text == "":
			return nil, fmt.Errorf("%s: want %s", host, want)
		}
		host = settingKey(reg.RegistryStr())
		if _, twice := settings[host]; twice {
			return nil, fmt.Errorf("%s is listed twice%s", host, remedy)
		}
		if settings == nil {
			settings = map[string]V{}
		}
		if settings[host], err = parse(text); err != nil {
			return nil, fmt.Errorf("%s: %w", host, err)
		}
	}

	return settings, nil
}

// directly is the proxy of registries without one.
const directly = "direct"

// proxySchemes are the schemes that Go's transport supports.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// parseProxy parses the URL of a proxy. It returns nil for a direct connection.
func parseProxy(text string) (*url.URL, error) {
	if text == directly {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || !slices.Contains(proxySchemes, u.Scheme) || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("want a proxy such as http://proxy.example:3128, by %s, or %s", strings.Join(proxySchemes, ", "), directly)
	}
	return u, nil
}

// settingKey is a host with its port, unless that is HTTPS's.
func settingKey(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ":443")
}

// hostOfSetting returns the host with the setting for a request of a pull from a registry.
func hostOfSetting[V any](settings map[string]V, registry, host string) (string, bool) {
	for _, key := range []string{settingKey(host), settingKey(registry)} {
		if _, ok := settings[key]; ok {
			return key, true
		}
	}
	return "", false
}

// Has reports whether a registry has its own certificate authorities.
func (a Authorities) Has(registry string) bool {
	_, ok := a[settingKey(registry)]
	return ok
}

// proxyOf returns the proxy function for pulls from a registry.
func (o *Options) proxyOf(registry string) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if key, ok := hostOfSetting(o.Proxies, registry, r.URL.Host); ok {
			return o.Proxies[key], nil
		}
		return o.Proxy(r)
	}
}

// proxyRemedy is the remedy for an error of a proxy.
const proxyRemedy = "Check the proxy, which --registry-proxy or HTTPS_PROXY names."

// checkAnswer returns why a proxy does not connect to a host, without quoting its answer.
func checkAnswer(proxy, host string, status int) *failure {
	if status == http.StatusOK {
		return nil
	}
	failed := failf(ReasonUnreachable, proxyRemedy, "the proxy %s answers %d %s for %s", proxy, status, http.StatusText(status), host)
	failed.temporary = true
	return failed
}
