package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
)

// NewKeychain returns the credentials of pull secrets (.dockerconfigjson or .dockercfg). As in the
// kubelet, hosts can have wildcards within a label. The longest path wins, and then the first one.
func NewKeychain(pullSecrets ...[]byte) (authn.Keychain, error) {
	var k keychain
	for i, data := range pullSecrets {
		entries, err := parseDockerConfig(data)
		if err != nil {
			return nil, fmt.Errorf("pull secret %d: %w", i+1, err)
		}
		k = append(k, entries...)
	}
	slices.SortStableFunc(k, func(a, b credential) int { return len(b.path) - len(a.path) })
	return k, nil
}

// keychain has the entries with longer paths first.
type keychain []credential

// credential is an entry of a Docker config, for a host and a path in it.
type credential struct {
	host, path string
	auth       authn.AuthConfig
}

// parseDockerConfig parses one secret. Its errors contain no values.
func parseDockerConfig(data []byte) ([]credential, error) {
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}

	if err := json.Unmarshal(data, &config); err != nil {
		return nil, errors.New("it is not JSON")
	}

	// A .dockercfg has the entries at the top level.
	if config.Auths == nil {
		if err := json.Unmarshal(data, &config.Auths); err != nil {
			return nil, errors.New("it is not a Docker config")
		}
	}

	var out []credential
	for _, key := range slices.Sorted(maps.Keys(config.Auths)) {
		c := credential{}
		c.host, c.path = splitKey(key)
		if err := json.Unmarshal(config.Auths[key], &c.auth); err != nil && c.auth.Auth != "" {
			return nil, fmt.Errorf("the field auth of the entry for %q cannot be read", c.host)
		} else if err != nil {
			return nil, fmt.Errorf("the entry for %q cannot be read", c.host)
		}
		c.auth.Password = strings.TrimRight(c.auth.Password, "\x00")
		out = append(out, c)
	}

	return out, nil
}

// splitKey splits the key of an entry, such as https://host:5000/v1/.
func splitKey(key string) (host, path string) {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, path, _ = strings.Cut(key, "/")
	path = strings.Trim(path, "/")
	if path == "v1" || path == "v2" {
		path = ""
	}
	if host == "docker.io" || host == "registry-1.docker.io" {
		host = "index.docker.io"
	}
	return host, path
}

// Resolve implements authn.Keychain.
func (k keychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	host := target.RegistryStr()
	_, repository, _ := strings.Cut(target.String(), "/")
	for _, c := range k {
		if matchHost(c.host, host) && (c.path == "" || repository == c.path || strings.HasPrefix(repository, c.path+"/")) {
			return authn.FromConfig(c.auth), nil
		}
	}
	return authn.Anonymous, nil
}

// matchHost compares host names label by label. Ports have to be equal.
func matchHost(pattern, host string) bool {
	pattern, patternPort, _ := strings.Cut(pattern, ":")
	host, port, _ := strings.Cut(host, ":")
	patterns, labels := strings.Split(pattern, "."), strings.Split(host, ".")
	if patternPort != port || len(patterns) != len(labels) {
		return false
	}
	for i, p := range patterns {
		if ok, err := path.Match(p, labels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
