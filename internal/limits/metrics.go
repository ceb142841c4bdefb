package limits

// Limits of the metrics of the manager. Values beyond them are counted without names.
const (
	MetricPackages      = 5_000  // with all of their series, twelve at most: 60,000 series, as many as a small cluster itself has; further ones have three each
	MetricPackagesNamed = 25_000 // with series at all, as many series again; after those with all, ones that are not available come first
	MetricRepositories  = 1_000  // with six series each
	MetricTemplates     = 5_000  // with one each
	MetricSets          = 5_000  // that stand alone, with two each
	MetricRevisions     = 2      // of a deployment: the one in charge, and the one that takes over
	MetricKinds         = 500    // a cluster serves fewer
	// at a time, further ones are answered with 503: one of 25,000 packages allocates 50 MiB.
	// Prometheus has one underway, a second one is that of another replica
	MetricScrapes    = 2
	MetricLabelBytes = 253 // of a value of a label: a name in full, and an image with a usual repository and a digest
)
