package registry

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/limits"
)

// parse parses an image reference and returns the one to pull, after overrides.
func (p *Puller) parse(written string) (name.Reference, error) {
	ref, hosts := p.opts.ImagePrefixes.Apply(written), p.opts.RegistryHosts
	if p.access.Exact {
		ref, hosts = written, nil
	}

	fail := func(details, remedy string) error {
		return &PullError{Ref: safeRef(written), Reason: ReasonInvalidReference, Details: details, Remedy: remedy}
	}
	const form = "Write it as host/path:tag or host/path@sha256:…"
	switch {
	case ref == "":
		return nil, fail("it is empty", form)
	case len(ref) > limits.ReferenceBytes:
		return nil, fail(fmt.Sprintf("it has %d bytes; the limit is %d", len(ref), limits.ReferenceBytes), form)
	case strings.Contains(ref, "://"):
		return nil, fail("it starts with a scheme", form)
	}

	if host, _, ok := strings.Cut(ref, "/"); ok && strings.Contains(host, "@") {
		return nil, fail("it contains credentials", "Put them into a pull secret.")
	}

	parsed, err := name.ParseReference(ref)
	if err == nil {
		parsed, err = hosts.redirect(ref, parsed)
	}
	if err != nil {
		return nil, fail("it cannot be parsed", form)
	}
	if problem, remedy := checkRepository(parsed.Context()); problem != "" {
		return nil, fail(problem, remedy)
	}
	if p.insecure[parsed.Context().RegistryStr()] {
		return name.ParseReference(parsed.Name(), name.Insecure)
	}

	return parsed, nil
}

// redirected names the reference that was pulled, if an override changed it.
func (p *Puller) redirected(written string) string {
	parsed, err := p.parse(written)
	if err != nil {
		return ""
	}
	if plain, err := name.ParseReference(written); err == nil && plain.Name() == parsed.Name() {
		return ""
	}
	return fmt.Sprintf(" (pulled as %q, by an override of the manager)", safeRef(parsed.Name()))
}

// checkRepository rejects names that the parser accepts, but that a request or a reader would
// misinterpret.
func checkRepository(repo name.Repository) (problem, remedy string) {
	host, port, hasPort := strings.Cut(repo.RegistryStr()[strings.LastIndexByte(repo.RegistryStr(), ']')+1:], ":")
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "its host is not ASCII", "Write the host as DNS has it (xn--…)."
	}
	if _, err := strconv.ParseUint(port, 10, 16); hasPort && (err != nil || port[0] == '0') {
		return fmt.Sprintf("it has the port %q", port), "Write a port from 1 to 65535."
	}

	for segment := range strings.SplitSeq(repo.RepositoryStr(), "/") {
		switch segment {
		case ".", "..":
			return "its path leads elsewhere", "Write the path without dots."
		case "":
			return "its path has an empty segment", "Write one slash between two segments."
		}
	}

	return "", ""
}

// digest matches the text after an at sign that does not end credentials.
var digest = regexp.MustCompile(`^sha[0-9]+:[0-9a-zA-Z]*$`)

// safeRef returns a reference for messages, cut and without credentials.
func safeRef(ref string) string {
	if host, rest, ok := strings.Cut(ref, "@"); ok && !digest.MatchString(rest) {
		ref = host[:strings.LastIndex(host, "/")+1] + "…@" + rest
	}
	return limits.Cut(ref, 200)
}
