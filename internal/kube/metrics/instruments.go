package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// label is one with a fixed set of values.
type label struct {
	name   string
	values []string
}

func namesOf(labels []label) []string {
	var names []string
	for _, l := range labels {
		names = append(names, l.name)
	}
	return names
}

// combinations calls f with each combination of values. All series exist from the start, because
// Prometheus sees no increase in a series that appears with its first value.
func combinations(labels []label, f func(values ...string)) {
	if len(labels) == 0 {
		f()
		return
	}
	for _, value := range labels[0].values {
		combinations(labels[1:], func(rest ...string) { f(append([]string{value}, rest...)...) })
	}
}

var instruments []prometheus.Collector

// Instruments are the collectors of events that are counted where they happen.
func Instruments() []prometheus.Collector { return instruments }

// Counters count events.
type Counters struct{ vec *prometheus.CounterVec }

func newCounters(name, help string, labels ...label) Counters {
	counter(name, help, namesOf(labels)...)
	c := Counters{prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, namesOf(labels))}
	combinations(labels, func(values ...string) { c.vec.WithLabelValues(values...) })
	instruments = append(instruments, c.vec)
	return c
}

// Add counts one event. The table lists the valid values of labels.
func (c Counters) Add(labels ...string) { c.vec.WithLabelValues(labels...).Inc() }

// Histogram counts durations.
type Histogram struct{ vec *prometheus.HistogramVec }

func newHistogram(name, help string, buckets []float64, labels ...label) Histogram {
	counter(name, help, namesOf(labels)...).Histogram = true
	h := Histogram{prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, namesOf(labels))}
	combinations(labels, func(values ...string) { h.vec.WithLabelValues(values...) })
	instruments = append(instruments, h.vec)
	return h
}

// Observe counts a duration.
func (h Histogram) Observe(d time.Duration, labels ...string) {
	h.vec.WithLabelValues(labels...).Observe(max(d, 0).Seconds())
}
