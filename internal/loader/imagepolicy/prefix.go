package imagepolicy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/limits"
)

// ParsePrefix returns a prefix of repositories as references are compared with it.
func ParsePrefix(written string) (string, error) {
	switch {
	case written == "":
		return "", errors.New("it is empty")
	case len(written) > limits.ReferenceBytes:
		return "", fmt.Errorf("it has %d bytes; the limit is %d", len(written), limits.ReferenceBytes)
	case strings.Contains(written, "://"):
		return "", errors.New("it begins with a scheme; write HOST or HOST/PATH")
	case strings.ContainsAny(written, "@* "):
		return "", errors.New("it is no prefix of whole segments; write HOST or HOST/PATH")
	}
	host, path, _ := strings.Cut(strings.TrimSuffix(written, "/"), "/")
	if !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "", fmt.Errorf("%q is no host of a registry; write HOST or HOST/PATH, such as docker.io/%s", host, written)
	}
	if _, err := name.NewRegistry(host); err != nil {
		return "", fmt.Errorf("%q is no host of a registry", host)
	}
	if path == "" {
		return canonicalHost(host), nil
	}
	for segment := range strings.SplitSeq(path, "/") {
		if _, err := name.NewRepository("localhost/" + segment); err != nil {
			return "", fmt.Errorf("%q is no segment of the path of an image", segment)
		}
	}
	return canonicalHost(host) + "/" + path, nil
}

// dockerHub is the host that all names of Docker Hub lead to.
const dockerHub = "index.docker.io"

// canonicalHost is one form of all spellings that lead to the same registry by name.
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

// split returns the repository of a reference in the form that prefixes have, and what follows it as it is written. A path with empty
// segments is not split: some registries merge slashes, and others do not.
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
