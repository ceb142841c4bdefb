package measure

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/e2e/harness"
)

// Gates are custom resources that are ready when their status reports it.
var (
	gateKind     = schema.GroupVersionKind{Group: "bench.lockstep.run", Version: "v1", Kind: "Gate"}
	gateListKind = schema.GroupVersionKind{Group: "bench.lockstep.run", Version: "v1", Kind: "GateList"}
)

const gateDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gates.bench.lockstep.run
spec:
  group: bench.lockstep.run
  scope: Namespaced
  names: {kind: Gate, listKind: GateList, plural: gates, singular: gate}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const gateProbes = `  availabilityProbes:
  - selector: {kind: {group: bench.lockstep.run, kind: Gate}}
    probes:
    - condition: {type: Ready, status: "True"}
`

func gate(name, phase string) string {
	return fmt.Sprintf("apiVersion: bench.lockstep.run/v1\nkind: Gate\nmetadata:\n  name: %s\n  annotations: {package-operator.run/phase: %s}\nspec: {size: 1}\n", name, phase)
}

// isGate reports whether an object is the gate, which is its phase's first object.
func isGate(name string) bool { return strings.HasSuffix(name, "-000") }

// defineGates waits until gates are served.
func (c *Cluster) defineGates() {
	c.tb.Helper()
	crd := &unstructured.Unstructured{}
	must(c.tb, yaml.Unmarshal([]byte(gateDefinition), crd))
	c.Create(c.tb, crd)
	harness.Eventually(c.tb, c.timeout(), "gates to be served", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gateListKind)
		return c.Client.List(ctx, list)
	})
}
