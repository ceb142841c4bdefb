package limits

// Limits of metrics.
const (
	MetricKinds      = 500 // kinds with series; a cluster serves fewer
	MetricLabelBytes = 253 // value of a label
)
