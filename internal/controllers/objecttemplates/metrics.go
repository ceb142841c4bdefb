package objecttemplates

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/metrics"
)

// exporter reads the templates from the cache when they are collected, so that deleted ones have no
// series.
type exporter struct {
	reader client.Reader
	memory *memory
}

// Describe names the metrics.
func (m *exporter) Describe(out chan<- *prometheus.Desc) {
	metrics.Describe(out, metrics.TemplateRenders)
}

// Collect reads the templates of both scopes.
func (m *exporter) Collect(out chan<- prometheus.Metric) {
	all, err := listTemplates(context.Background(), m.reader)
	if err != nil {
		return // no series, rather than none of templates
	}
	for _, tmpl := range all {
		if renders, known := m.memory.rendersOf(tmpl); known {
			out <- metrics.TemplateRenders.Value(float64(renders), tmpl.GetName(), tmpl.GetNamespace())
		}
	}
}

// rendersOf returns how often a template was rendered. It does not send under the lock, because the
// receiver can be slow.
func (m *memory) rendersOf(tmpl corev1alpha1.GenericObjectTemplate) (renders int, known bool) {
	m.Lock()
	defer m.Unlock()
	st := m.states[keyOf(tmpl)]
	if st == nil || st.uid != tmpl.GetUID() {
		return 0, false
	}
	return st.renders, true
}
