package limits

// Limits of the metrics of the manager. Values beyond them are counted without names.
const (
	// MetricPackages have all of their series, which are twelve at most: 60,000 series, as many as a small cluster itself has.
	// Further ones have three each.
	MetricPackages = 5_000
	// MetricPackagesNamed have series at all: as many series again.
	MetricPackagesNamed = 25_000
	// MetricRepositories and MetricTemplates have series: six and one each.
	MetricRepositories = 1_000
	MetricTemplates    = 5_000
	// MetricSets that stand alone have series, two each.
	MetricSets = 5_000
	// MetricRevisions of a deployment have series: the one in charge, and the one that takes over.
	MetricRevisions = 2
	// MetricKinds have a series: a cluster serves fewer.
	MetricKinds = 500
	// MetricScrapes are answered at a time, further ones with 503: one of 25,000 packages allocates 50 MiB. Prometheus has
	// one underway, a second one is that of another replica.
	MetricScrapes = 2
	// MetricLabelBytes are kept of a value of a label: a name in full, and an image with a usual repository and a digest.
	MetricLabelBytes = 253
)
