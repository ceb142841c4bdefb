package limits

import "fmt"

// Share is something that all namespaces share, of which none may take so much that others wait for longer than one piece of its work.
type Share struct {
	Of string
	// All is the bound in sum, One the bound of one namespace.
	All, One string
	// Full is what happens to a namespace that would exceed them.
	Full string
	// Made are the places in the code that keep it, as folder.name.
	Made []string
}

const (
	waits = "waits; namespaces are served in round robin"
	lru   = "the least recently used entry is dropped, and asked for again"
	rest  = "twice as much as is left"
)

// Shared are all of them. A test fails for a semaphore, a cache or a map in the code of the manager that is not in a row.
func Shared() []Share {
	return []Share{
		{"downloads of images and repositories on the disk, until they are closed", mebibytes(DownloadsBytes), mebibytes(DownloadsOfNamespaceBytes), "an image " + waits + ". A repository is fetched again later", []string{"loader/registry.NewDisk"}},
		{"images that are kept on the disk", "1 GiB", "the same", lru, nil},
		{"sessions with registries: of pulls, tags and signatures", text(PullsInFlight), text(PullsOfNamespace), waits, []string{"loader/registry.pulls"}},
		{"loads from one registry", text(LoadsPerHostInAll), text(LoadsPerHost), waits, []string{"controllers/packages/load.hosts"}},
		{"images and archives that are unpacked, git repositories that are read, keys that are decrypted", fmt.Sprintf("%d each; 1 of git and keys", UnpacksInFlight), "the same", waits, []string{"loader/registry.unpacks", "catalog/fetch.unpacks", "catalog/fetch.gitReads", "catalog/fetch.sshKeys"}},
		{"packages that are loaded after their download", fmt.Sprintf("%d short ones and %d long ones", LoadsShort, LoadsLong), fmt.Sprintf("%d short ones and 1 long one", LoadsShort), waits + ". Short work is cancelled after " + LoadShort.String() + ", and repeated as long", []string{"controllers/packages/load.rendering"}},
		{"repositories that are fetched", "8 short ones and 4 long ones; 4 of one host", "8 short ones and 1 long one; 1 of one host", waits, []string{"controllers/repositories.fetches", "controllers/repositories.hosts"}},
		{"memory for large work, such as loading a package", "a quarter of GOMEMLIMIT", "the same", waits, nil},
		{"memory for what stays: rendered packages, revisions, offers, content of sources, and large texts and records in the caches", "three eighths of GOMEMLIMIT", rest, "the object has a condition that names the limit", nil},
		{"memory for what targets say", "a third of GOMEMLIMIT", rest, "`TargetConnected` is False with `LimitExceeded`", nil},
		{"large answers of targets that are decoded", "2", "1", waits + ", 10s each", []string{"inputs/targets.large"}},
		{"reconciles of Packages", text(PackageWorkers), text(PackageShare), waits, nil},
		{"reconciles of ObjectTemplates", "8", "4", waits, nil},
		{"reconciles of deployments and sets, of phases, and of catalogues", fmt.Sprintf("%d, %d and 4", DeploymentWorkers, PhaseWorkers), "the same", waits, nil},
		{"reconciles of the owners in one target", "4", "the same", waits, []string{"controllers/objectdeployments/lanes.run"}},
		{"resolutions of dependencies; releases of these", fmt.Sprintf("%d; %d", ResolutionsAtOnce, ReleasesAtOnce), "1; 1", waits + ". All processors but one compute resolutions, and each ends after " + text(ResolutionStepsNamespaced) + " steps", []string{"controllers/packages.resolutions", "controllers/packages.releases", "controllers/packages.computing"}},
		{"writes to the cluster, and to one target", fmt.Sprintf("%d, and %d", WritesInFlight, TargetWritesInFlight), fmt.Sprintf("%d, and %d", WritesOfNamespace, TargetWritesInFlight), waits, []string{"engine.places"}},
		{"sources that are listed or read", "4", "the same", waits + ", 5s each", []string{"inputs/sources.starts"}},
		{"large texts of Packages and repositories in the caches", "the memory above", rest, "the object is kept without its texts, and read when it is reconciled", nil},
		{"large records of live objects, of which probes read at most 256 KiB each", "the memory above", rest, "its probes are Unknown, and it is read again later", nil},
		{"pages of lists of more than 1 MiB that are read, of at most 16 MiB each", text(LargePages), "of no namespace", "a page waits; a larger one is asked for in smaller ones", []string{"cluster/reflector.places"}},
		{"connections to each port of the manager", "64", "of no namespace", "the oldest one without a request is closed", nil},
		{"wake-ups by Packages and offers", "those of all namespaces, by objects of the cluster", "those of the namespace", "Packages of other namespaces stay as they are", nil},
		{"answers of the API server about permissions, verifications of images, and connections to registries", "fixed numbers", "the same", lru, []string{"inputs/sources.answers", "loader/registry.verifications", "loader/registry.guards"}},
	}
}

func text(n int) string { return fmt.Sprint(n) }

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
