package measure

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Stored is what the objects of our own kinds take.
type Stored struct {
	// Largest names the largest one, and LargestBytes is its size as JSON.
	Largest      string `json:"largest"`
	LargestBytes int64  `json:"largestBytes"`
	// SlicesWritten in the scenario.
	SlicesWritten int `json:"slicesWritten"`
}

func (m Measurement) stored() Stored {
	if m.Stored == nil {
		return Stored{}
	}
	return *m.Stored
}

// withStored adds what one package takes to a measurement.
func (c *Cluster) withStored(m Measurement) Measurement {
	c.tb.Helper()
	if c.Packages > 1 {
		return m
	}
	m.Slices = c.Slices()
	m.Stored = &Stored{}
	client, err := dynamic.NewForConfig(c.Config())
	must(c.tb, err)
	for _, resource := range []schema.GroupVersionResource{ownPackages, ownDeployments, ownSlices, ownRevisions} {
		list, err := client.Resource(resource).Namespace(namespace).List(c.tb.Context(), metav1.ListOptions{})
		must(c.tb, err)
		for i := range list.Items {
			raw, err := json.Marshal(&list.Items[i])
			must(c.tb, err)
			if size := int64(len(raw)); size > m.Stored.LargestBytes {
				m.Stored.Largest, m.Stored.LargestBytes = list.Items[i].GetKind()+" "+list.Items[i].GetName(), size
			}
		}
	}
	slice := all(byManager, sandbox.ByVerb("create"), sandbox.ByResource(ownSlices.GroupResource().String()))
	for _, e := range m.Entries {
		if slice(e) {
			m.Stored.SlicesWritten++
		}
	}
	return m
}
