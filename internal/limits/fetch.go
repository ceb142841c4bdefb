package limits

import "time"

// Limits of fetching repositories.
const (
	RepositoryBytes           = 64 << 20        // all YAML and JSON files of a repository, which are in memory together
	RepositoryFiles           = 150_000         // files of a repository
	RepositoryEntries         = 300_000         // entries of an archive or a tree, including ignored files
	DownloadBytes             = 256 << 20       // one file of a web server, or one compressed answer of a git server
	DownloadsBytes            = 960 << 20       // all current downloads of images and repositories on the disk, a volume of 1 GiB along with the image cache
	DownloadsOfNamespaceBytes = ImageBytes      // current downloads for one namespace
	GitBytes                  = 64 << 20        // all objects of a commit and their pack
	GitObjects                = 300_000         // files and folders of a commit
	GitRefs                   = 100_000         // refs of a git repository
	GitRefsBytes              = 16 << 20        // the list of refs
	FetchTime                 = 5 * time.Minute // one fetch
	RepositoryValidator       = 4096            // internal: bytes of a validator in a status
	ValidatorBytes            = 1 << 10         // internal: an ETag, which is kept in a status
)
