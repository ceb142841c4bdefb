package manifest

import "github.com/Masterminds/semver/v3"

// ParseRange reads a range of versions as manifests state it, in all spellings
// that they may use. Its length is bounded.
func ParseRange(text string) (*semver.Constraints, error) { return parseRange(text) }
