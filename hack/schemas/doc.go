// Schemas makes the file of internal/cluster/schemas/bundled: the schemas of the kinds of
// Kubernetes, from api/openapi-spec/v3 of the module k8s.io/kubernetes in the version that the
// sandbox runs. It reduces 12 MB of JSON to the definitions without descriptions, each of them
// once. The possible values of fields come from the generated code of the same module, because the
// documents leave them out.
//
//	go run ./hack/schemas --out internal/cluster/schemas/bundled/kubernetes.json.gz
//
// The same module gives the same bytes.
package main
