package harness

import "fmt"

// Definition returns the YAML of a CustomResourceDefinition without a schema, for a kind with a
// status. The scope is Namespaced or Cluster.
func Definition(group, kind, plural, version, scope string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[1]s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[1]s
  names: {kind: %[2]s, plural: %[3]s}
  scope: %[5]s
  versions:
  - name: %[4]s
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, kind, plural, version, scope)
}
