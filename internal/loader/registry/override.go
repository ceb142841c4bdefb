package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Override redirects image references that start with From.
type Override struct{ From, To string }

// Overrides redirect image references to mirrors. The longest matching From wins.
type Overrides []Override

// ParseOverrides parses from=to pairs separated by commas, like the flags of Package Operator.
func ParseOverrides(text string) (Overrides, error) {
	var o Overrides
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		from, to, ok := strings.Cut(pair, "=")
		if from, to = strings.TrimSpace(from), strings.TrimSpace(to); !ok || from == "" || to == "" {
			return nil, fmt.Errorf("%q: want FROM=TO, separated by commas", pair)
		}
		if slices.ContainsFunc(o, func(other Override) bool { return other.From == from }) {
			return nil, fmt.Errorf("%q is listed twice", from)
		}
		o = append(o, Override{From: from, To: to})
	}

	slices.SortFunc(o, func(a, b Override) int {
		return cmp.Or(cmp.Compare(len(b.From), len(a.From)), cmp.Compare(a.From, b.From))
	})
	return o, nil
}

// ParseHostOverrides parses Overrides of registries: each To is a host.
func ParseHostOverrides(text string) (Overrides, error) {
	o, err := ParseOverrides(text)
	for _, host := range o {
		if _, err := name.NewRegistry(host.To); err != nil {
			return nil, fmt.Errorf("%q: want a host, with its port if it has one, such as localhost:5000", host.To)
		}
	}
	return o, err
}

// Apply replaces the prefix of a reference.
func (o Overrides) Apply(ref string) string {
	for _, override := range o {
		if rest, ok := strings.CutPrefix(ref, override.From); ok {
			return override.To + rest
		}
	}
	return ref
}

// redirect replaces the registry of a parsed reference. From matches whole segments here, so that
// an entry for example.com does not apply to example.community.
func (o Overrides) redirect(ref string, parsed name.Reference) (name.Reference, error) {
	for _, override := range o {
		rest, ok := strings.CutPrefix(ref, override.From)
		if !ok || rest != "" && !strings.ContainsAny(rest[:1], "/:@") && !strings.HasSuffix(override.From, "/") {
			continue
		}
		separator := ":"
		if _, byDigest := parsed.(name.Digest); byDigest {
			separator = "@"
		}
		return name.ParseReference(override.To + "/" + parsed.Context().RepositoryStr() + separator + parsed.Identifier())
	}
	return parsed, nil
}
