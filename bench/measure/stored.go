package measure

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/sandbox"
)

var ownKinds = []schema.GroupVersionResource{
	own("packages"), own("objectdeployments"), own("objectsets"), own("objectslices"),
}

func own(resource string) schema.GroupVersionResource {
	return corev1alpha1.GroupVersion.WithResource(resource)
}

// withStored adds to the measurement of one package the largest object of our own kinds, as JSON,
// and the number of slices written.
func (c *Cluster) withStored(m Measurement) Measurement {
	c.tb.Helper()
	if c.Packages > 1 {
		return m
	}

	m.Slices = c.Slices()
	client, err := dynamic.NewForConfig(c.Config())
	must(c.tb, err)
	name, largest, written := "", 0, 0
	for _, resource := range ownKinds {
		list, err := client.Resource(resource).Namespace(namespace).List(c.tb.Context(), metav1.ListOptions{})
		must(c.tb, err)
		for i := range list.Items {
			raw, err := json.Marshal(&list.Items[i])
			must(c.tb, err)
			if len(raw) > largest {
				name, largest = list.Items[i].GetKind()+" "+list.Items[i].GetName(), len(raw)
			}
		}
	}

	slice := all(byManager, sandbox.ByVerb("create"), sandbox.ByResource(own("objectslices").GroupResource().String()))
	for _, e := range m.Entries {
		if slice(e) {
			written++
		}
	}

	m.Figures = map[string]float64{MeasureLargest: float64(largest) / kibibyte, MeasureSlices: float64(written)}
	if m.Slices > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("%d slices, %d of them written; the largest object is %s with %.1f KiB", m.Slices, written, name, float64(largest)/kibibyte))
	}

	return m
}
