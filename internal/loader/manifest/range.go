package manifest

import "github.com/Masterminds/semver/v3"

// ParseRange reads a range of versions in all spellings of manifests.
func ParseRange(text string) (*semver.Constraints, error) { return parseRange(text) }
