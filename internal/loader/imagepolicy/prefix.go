package imagepolicy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/limits"
)

// ParsePrefix returns a prefix of repositories in the form that references are compared in.
func ParsePrefix(written string) (string, error) {
	switch {
	case written == "":
		return "", errors.New("it is empty")
	case len(written) > limits.ReferenceBytes:
		return "", fmt.Errorf("it has %d bytes; the limit is %d", len(written), limits.ReferenceBytes)
	case strings.Contains(written, "://"):
		return "", errors.New("it starts with a scheme; write HOST or HOST/PATH")
	case strings.ContainsAny(written, "@* "):
		return "", errors.New("it is not a prefix of whole segments; write HOST or HOST/PATH")
	}

	host, path, _ := strings.Cut(strings.TrimSuffix(written, "/"), "/")
	if !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "", fmt.Errorf("%q is not a registry host; write HOST or HOST/PATH, such as docker.io/%s", host, written)
	}
	if _, err := name.NewRegistry(host); err != nil {
		return "", fmt.Errorf("%q is not a registry host", host)
	}
	if path == "" {
		return canonicalHost(host), nil
	}

	for segment := range strings.SplitSeq(path, "/") {
		if _, err := name.NewRepository("localhost/" + segment); err != nil {
			return "", fmt.Errorf("%q is not a valid segment of an image path", segment)
		}
	}

	return canonicalHost(host) + "/" + path, nil
}

// dockerHub is the host of all names of Docker Hub.
const dockerHub = "index.docker.io"

// canonicalHost returns the canonical spelling of a registry's host.
func canonicalHost(host string) string {
	bare, port := strings.ToLower(host), ""
	if colon := strings.LastIndexByte(bare, ':'); colon > strings.LastIndexByte(bare, ']') {
		bare, port = bare[:colon], strings.TrimLeft(bare[colon+1:], "0") // 0443 is dialled as 443
	}
	if bare = strings.TrimRight(bare, "."); port != "" && port != "443" {
		return bare + ":" + port
	}
	switch bare {
	case "docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		return dockerHub
	}
	return bare
}

// split returns the repository of a reference in the form of prefixes, and the rest of the
// reference as written. It does not split a path with empty segments, because registries treat
// multiple slashes differently.
func split(image string) (repository, rest string, ok bool) {
	ref, err := name.ParseReference(image)
	if err != nil || strings.Contains("/"+ref.Context().RepositoryStr()+"/", "//") {
		return "", "", false
	}

	plain, digest, byDigest := strings.Cut(image, "@")
	if colon := strings.LastIndexByte(plain, ':'); colon > strings.LastIndexByte(plain, '/') && strings.Contains(plain, "/") || !strings.Contains(plain, "/") && colon >= 0 {
		rest = plain[colon:]
	}
	if byDigest {
		rest += "@" + digest
	}

	repo := ref.Context()
	return canonicalHost(repo.RegistryStr()) + "/" + repo.RepositoryStr(), rest, true
}

// hasPrefix compares whole segments.
func hasPrefix(repository, prefix string) bool {
	rest, ok := strings.CutPrefix(repository, prefix)
	return ok && (rest == "" || rest[0] == '/')
}
