// Schemas makes the file of internal/cluster/schemas/bundled: the schemas of the kinds
// of Kubernetes, from api/openapi-spec/v3 of the module k8s.io/kubernetes in the
// version that the sandbox runs. Of 12 MB of JSON are left, once each, the
// definitions without descriptions; the values that fields may have come from
// the generated code of the same module, because the documents leave them out.
//
//	go run ./hack/schemas --out internal/cluster/schemas/bundled/kubernetes.json.gz
//
// The same module gives the same bytes.
package main
