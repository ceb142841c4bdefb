package limits

import "time"

// Limits of the resolution of dependencies.
const (
	ResolutionSteps           = 10_000_000 // what a search looks at: 1,000 packages of 20 versions take 2 million, all of them some tenths of a second
	ResolutionStepsNamespaced = 1_000_000  // the same for namespaced packages: users of namespaces share the processors with others
	ResolutionsAtOnce         = 6          // of namespaces, one for each; they occupy a worker while they are computed and written, of limits.PackageWorkers
	ReleasesAtOnce            = 2          // the same for what packages leave behind that are deleted
	UpgradesTogether          = 8          // packages that may move to a higher version, with which one is resolved that cannot move alone
)

// Pauses before the dependencies of a new Package are resolved, so that those that are applied together are resolved together.
const (
	ResolutionPause    = time.Second     // since the last new Package of the scope: kubectl apply creates many a second
	ResolutionPauseMax = 5 * time.Second // in all, however many come, and however long their images take
)
