package objecttemplates

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var rendersTotal = prometheus.NewDesc("lockstep_objecttemplate_renders_total",
	"How often this process rendered the template.", []string{"pko_name", "pko_namespace"}, nil)

// metrics reads the templates from the cache when they are collected: there is no series of a deleted one.
type metrics struct {
	reader client.Reader
	memory *memory
}

// Describe names the metrics.
func (m *metrics) Describe(out chan<- *prometheus.Desc) { out <- rendersTotal }

// Collect reads the templates of both scopes.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	for _, tmpl := range listTemplates(m.reader) {
		m.memory.Lock()
		st := m.memory.states[keyOf(tmpl)]
		if st != nil && st.uid == tmpl.GetUID() {
			out <- prometheus.MustNewConstMetric(rendersTotal, prometheus.CounterValue, float64(st.renders), tmpl.GetName(), tmpl.GetNamespace())
		}
		m.memory.Unlock()
	}
}
