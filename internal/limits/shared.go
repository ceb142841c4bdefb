package limits

import "fmt"

// Share is a resource of all namespaces. None can take so much of it that others wait for longer
// than one piece of its work.
type Share struct {
	Of string
	// All is the bound in sum, One the bound of one namespace.
	All, One string
	// Full is the effect on a namespace that would exceed them.
	Full string
	// Made are the places in the code that keep it, as folder.name.
	Made []string
}

const (
	waits = "it waits"
	lru   = "the least recently used entry is dropped"
	rest  = "twice the remaining memory"
)

// Shared are all of them. A test fails for a semaphore, a cache or a map in the code of the manager
// that is not in a row.
func Shared() []Share {
	return []Share{
		{"downloads of images and repositories on the disk", mebibytes(DownloadsBytes), mebibytes(DownloadsOfNamespaceBytes), "an image waits; a repository is fetched again later", []string{"loader/registry.NewDisk"}},
		{"images in the cache on the disk", "1 GiB", "the same", lru, nil},
		{"sessions with registries for pulls, tags and signatures", text(PullsInFlight), text(PullsOfNamespace), waits, []string{"loader/registry.pulls"}},
		{"loads from one registry", text(LoadsPerHostInAll), text(LoadsPerHost), waits, []string{"controllers/packages/load.hosts"}},
		{"unpacking images and archives, reading git repositories", fmt.Sprintf("%d each; 1 for git", UnpacksInFlight), "the same", waits, []string{"loader/registry.unpacks", "catalog/fetch.unpacks", "catalog/fetch.gitReads"}},
		{"loading packages after their download", fmt.Sprintf("%d short ones and %d long ones", LoadsShort, LoadsLong), fmt.Sprintf("%d short ones and 1 long one", LoadsShort), waits + "; a short load that takes more than " + LoadShort.String() + " is repeated as a long one", []string{"controllers/packages/load.rendering"}},
		{"fetching repositories", "8 short ones and 4 long ones; 4 from one host", "8 short ones and 1 long one; 1 from one host", waits, []string{"controllers/repositories.fetches", "controllers/repositories.hosts"}},
		{"memory for large work, such as loading a package", "a quarter of GOMEMLIMIT", "the same", waits, nil},
		{"memory for rendered packages, revisions, offers, sources, and large texts and records in the caches", "three eighths of GOMEMLIMIT", rest, "the object has a condition that names the limit", nil},
		{"memory for targets", "a third of GOMEMLIMIT", rest, "`TargetConnected` is False with `LimitExceeded`", nil},
		{"decoding large answers of targets", "2", "1", waits + ", up to 10s", []string{"inputs/targets.large"}},
		{"reconciles of Packages", text(PackageWorkers), text(PackageShare), waits, nil},
		{"reconciles of ObjectTemplates", "8", "4", waits, nil},
		{"reconciles of deployments and sets, of phases, and of catalogues", fmt.Sprintf("%d, %d and 4", DeploymentWorkers, PhaseWorkers), "the same", waits, nil},
		{"reconciles of owners with the same target", "4", "the same", waits, []string{"controllers/objectdeployments/lanes.run"}},
		{"resolutions of dependencies; releases of dependencies", fmt.Sprintf("%d; %d", ResolutionsAtOnce, ReleasesAtOnce), "1; 1", waits + "; one CPU computes no resolutions, and each ends after " + text(ResolutionStepsNamespaced) + " steps", []string{"controllers/packages.resolutions", "controllers/packages.releases", "controllers/packages.computing"}},
		{"writes to the cluster, and to one target", fmt.Sprintf("%d, and %d", WritesInFlight, TargetWritesInFlight), fmt.Sprintf("%d, and %d", WritesOfNamespace, TargetWritesInFlight), waits, []string{"engine.places"}},
		{"listing or reading sources", "4", "the same", waits + ", up to 5s", []string{"inputs/sources.starts"}},
		{"large texts of Packages and repositories in the caches", "the memory above", rest, "the object is cached without its texts", nil},
		{"large records of live objects, at most 256 KiB each", "the memory above", rest, "its probes are Unknown, and it is read again later", nil},
		{"pages of lists of 1 to 16 MiB", text(LargePages), "not counted", "a page waits; a larger one is split", []string{"cluster/reflector.places"}},
		{"connections to each port of the manager", "64", "not counted", "the oldest idle one is closed", nil},
		{"wake-ups by Packages and offers", "all namespaces, by objects of the cluster", "only that namespace", "other namespaces are not woken", nil},
		{"answers of the API server about permissions, verifications of images, and connections to registries", "fixed numbers", "the same", lru, []string{"inputs/sources.answers", "loader/registry.verifications", "loader/registry.guards"}},
	}
}

func text(n int) string { return fmt.Sprint(n) }

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
