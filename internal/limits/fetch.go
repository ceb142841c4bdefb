package limits

import "time"

// Limits of fetching repositories.
const (
	RepositoryBytes   = 64 << 20        // of all YAML and JSON files of a repository, which are in memory together: some 50,000 versions with schemas
	RepositoryFiles   = 150_000         // of a repository: 100,000 versions in a file each
	RepositoryEntries = 300_000         // of an archive or a tree: as many files that are not read
	DownloadBytes     = 256 << 20       // of one file on a web server, or one answer of a git server, compressed
	FetchTime         = 5 * time.Minute // of one fetch
	ValidatorBytes    = 1 << 10         // of an ETag, which is kept in a status
)
