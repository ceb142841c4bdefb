package registry

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/limits"
)

// parse reads an image reference. Short names are Docker Hub's, as everywhere.
func (p *Puller) parse(ref string) (name.Reference, error) {
	fail := func(details, remedy string) error {
		return &PullError{Ref: safeRef(ref), Reason: ReasonInvalidReference, Details: details, Remedy: remedy}
	}
	const form = "Write it as host/path:tag or host/path@sha256:…"
	switch {
	case ref == "":
		return nil, fail("it is empty", form)
	case len(ref) > limits.ReferenceBytes:
		return nil, fail(fmt.Sprintf("it has %d bytes; the limit is %d", len(ref), limits.ReferenceBytes), form)
	case strings.Contains(ref, "://"):
		return nil, fail("it begins with a scheme", form)
	}
	if host, _, ok := strings.Cut(ref, "/"); ok && strings.Contains(host, "@") {
		return nil, fail("it contains credentials", "Put them into a pull secret.")
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, fail("it cannot be parsed", form)
	}
	if p.insecure[parsed.Context().RegistryStr()] {
		return name.ParseReference(ref, name.Insecure)
	}
	return parsed, nil
}

// digest is what may follow an at sign that is not one of credentials.
var digest = regexp.MustCompile(`^sha[0-9]+:[0-9a-zA-Z]*$`)

// safeRef returns what of a reference may be shown: not what stands before an
// at sign in the host, and no more than fits.
func safeRef(ref string) string {
	if host, rest, ok := strings.Cut(ref, "@"); ok && !digest.MatchString(rest) {
		if i := strings.LastIndex(host, "/"); i >= 0 {
			host = host[:i+1]
		} else {
			host = ""
		}
		ref = host + "…@" + rest
	}
	if len(ref) > 200 {
		ref = strings.ToValidUTF8(ref[:200], "") + "…"
	}
	return ref
}
