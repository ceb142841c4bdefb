package limits

// Limits of the metrics of the manager.
const (
	MetricRevisions = 2   // of a deployment: the one in charge, and the one that takes over
	MetricKinds     = 500 // a cluster serves fewer
	// at a time, further ones are answered with 503: one of 5,000 packages allocates 30 MiB.
	// Prometheus has one underway, a second one is that of another replica
	MetricScrapes    = 2
	MetricLabelBytes = 253 // of a value of a label: a name in full, and an image with a usual repository and a digest
)
