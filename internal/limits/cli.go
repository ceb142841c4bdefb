package limits

import (
	"time"
)

// Limits of repositories of packages.
const (
	// RepositoryVersions is how many versions one entry of a repository has.
	RepositoryVersions = 1000
	// Repositories that one manifest names; each is a file or an image to read.
	Repositories = 100
)

// Limits of what a package is begun from.
const (
	// KickstartBytes is the size of all input; the definitions of large operators are a few MiB.
	KickstartBytes = 32 << 20
	// KickstartFiles is how many files of folders and patterns are read.
	KickstartFiles = 10_000
	// KickstartTimeout is how long one URL may take as a whole.
	KickstartTimeout = time.Minute
)

// Limits of --query, which is the user's own expression: wide, against what would never end.
const (
	// QueryBytes is the length of a jq expression.
	QueryBytes = 64 << 10
	// QueryTime is how long one evaluation takes.
	QueryTime = 20 * time.Second
	// QueryHeapBytes is by how much the memory of the process may grow meanwhile.
	QueryHeapBytes = 512 << 20
	// QueryOutputBytes is the size of all results as JSON.
	QueryOutputBytes = 64 << 20
)

// Limits of a package's own tests.
const (
	// FixtureDiffBytes is the size of two files whose difference is shown.
	FixtureDiffBytes = 4 << 20
	// SchemaFileBytes is the size of a JSON Schema out of a file or a URL.
	SchemaFileBytes = 8 << 20
	// SchemaDownloads is how many URLs are read for one package, each within SchemaDownloadTime.
	SchemaDownloads = 200
	// SchemaDownloadTime: see SchemaDownloads.
	SchemaDownloadTime = 20 * time.Second
)

// ScopeCheck bounds reading the image for its scopes in kubectl package install.
const ScopeCheck = 5 * time.Second
