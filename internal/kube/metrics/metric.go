package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"lockstep.run/lockstep/internal/limits"
)

// Stability is the promise about later versions of a metric.
type Stability string

const (
	// Stable metrics are removed only after two minor versions of notice.
	Stable Stability = "stable"
	// Alpha metrics can change name and labels in any minor version.
	Alpha Stability = "alpha"
)

// Metric is one metric.
type Metric struct {
	Name, Help string
	Type       prometheus.ValueType
	// Histogram makes it a histogram and overrides Type.
	Histogram bool
	Labels    []string
	Stability Stability

	desc *prometheus.Desc
}

var all []*Metric

// All returns every metric by name.
func All() []*Metric {
	return slices.SortedFunc(slices.Values(all), func(a, b *Metric) int { return cmp.Compare(a.Name, b.Name) })
}

func define(name string, typ prometheus.ValueType, help string, labels []string) *Metric {
	m := &Metric{Name: name, Help: help, Type: typ, Labels: labels, Stability: Stable, desc: prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, m)
	return m
}

func gauge(name, help string, labels ...string) *Metric {
	return define(name, prometheus.GaugeValue, help, labels)
}

func counter(name, help string, labels ...string) *Metric {
	return define(name, prometheus.CounterValue, help, labels)
}

func (m *Metric) alpha() *Metric {
	m.Stability = Alpha
	return m
}

// Value returns a series of a gauge or counter, with bounded values of its labels.
func (m *Metric) Value(value float64, labels ...string) prometheus.Metric {
	bounded := make([]string, len(labels))
	for i, label := range labels {
		bounded[i] = Bound(label)
	}
	return prometheus.MustNewConstMetric(m.desc, m.Type, value, bounded...)
}

// TypeName is the type as Prometheus writes it.
func (m *Metric) TypeName() string {
	switch {
	case m.Histogram:
		return "histogram"
	case m.Type == prometheus.CounterValue:
		return "counter"
	}
	return "gauge"
}

// Bound returns a value of a label that is valid and no longer than limits.MetricLabelBytes.
func Bound(value string) string {
	return limits.Cut(strings.ToValidUTF8(value, "\uFFFD"), limits.MetricLabelBytes-len("…"))
}

// Describe sends the descriptions of metrics.
func Describe(out chan<- *prometheus.Desc, metrics ...*Metric) {
	for _, m := range metrics {
		out <- m.desc
	}
}
