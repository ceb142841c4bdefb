package limits

import "time"

// Limits of the resolution of dependencies.
const (
	ResolutionSteps           = 10_000_000 // steps of one search; 1,000 packages with 20 versions take 2 million, less than a second
	ResolutionStepsNamespaced = 1_000_000  // steps for namespaced packages, because their users share the CPUs
	ResolutionsAtOnce         = 6          // internal: namespaces resolved at a time; each occupies one of limits.PackageWorkers
	ReleasesAtOnce            = 2          // internal: deleted packages whose dependencies are released at a time
	UpgradesTogether          = 8          // packages that are upgraded together because none of them can be upgraded alone
)

// Pauses before the dependencies of a new Package are resolved, so that those that are applied
// together are resolved together.
const (
	ResolutionPause    = time.Second     // since the last new Package of the scope: kubectl apply creates many a second
	ResolutionPauseMax = 5 * time.Second // in all, however many come, and however long their images take
)
