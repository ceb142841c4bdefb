package limits

import "time"

// Limits of fetching repositories.
const (
	RepositoryBytes           = 64 << 20        // of all YAML and JSON files of a repository, which are in memory together: some 50,000 versions with schemas
	RepositoryFiles           = 150_000         // of a repository: 100,000 versions in a file each
	RepositoryEntries         = 300_000         // of an archive or a tree: as many files that are not read
	DownloadBytes             = 256 << 20       // of one file on a web server, or one answer of a git server, compressed
	DownloadsBytes            = 960 << 20       // of all downloads of images and repositories at a time, on the disk: in volumes of 1 GiB, beside the cache of images
	DownloadsOfNamespaceBytes = ImageBytes      // of these, for one namespace
	GitBytes                  = 64 << 20        // of all objects of a commit, which are in memory together, and of the pack that they come in
	GitObjects                = 300_000         // of a commit: files and folders
	GitRefs                   = 100_000         // of a git repository
	SSHKeyRounds              = 256             // of bcrypt, by which a key is encrypted: two seconds of a processor, which no context ends; ssh-keygen has 16 to 24
	GitRefsBytes              = 16 << 20        // of the list of them
	FetchTime                 = 5 * time.Minute // of one fetch
	RepositoryValidator       = 4096            // bytes of a validator that the status takes
	ValidatorBytes            = 1 << 10         // of an ETag, which is kept in a status
)
