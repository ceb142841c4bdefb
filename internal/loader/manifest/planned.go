package manifest

import "regexp"

// planned are fields that the format is going to have. Until then they are
// refused by name, because a package that states them relies on them.
var planned = regexp.MustCompile(`^spec\.(` +
	`packageName|release|provides|permissions|successDelaySeconds` +
	`|dependencies\[\d+\]\.(name|optional|package|api)` +
	`)$`)

func isPlanned(path string) bool { return planned.MatchString(path) }
