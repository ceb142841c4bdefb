package limits

// Limits of the metrics of the manager.
const (
	MetricKinds      = 500 // a cluster serves fewer
	MetricLabelBytes = 253 // of a value of a label: a name in full, and an image with a usual repository and a digest
)
