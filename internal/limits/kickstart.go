package limits

import "time"

// Limits of repositories of packages.
const (
	// RepositoryVersions is how many versions one entry of a repository has.
	RepositoryVersions = 1000
	// Repositories that one manifest names; each is a file or an image to read.
	Repositories = 100
)

// Limits of what a package is begun from.
const (
	// KickstartBytes is the size of all input; the definitions of large operators are a few
	// MiB.
	KickstartBytes = 32 << 20
	// KickstartFiles is how many files of folders and patterns are read.
	KickstartFiles = 10_000
	// KickstartTimeout is how long one URL may take as a whole.
	KickstartTimeout = time.Minute
)
