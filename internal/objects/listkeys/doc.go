// Package listkeys identifies the elements of lists, so that an element of one list is
// found in another one. The diff of plan, the three-way merge and the prediction of
// writes share it; package drift, which has the keys from managedFields, shares the
// defaults.
//
// A name comes first: it is what people call an element, and the API server keeps names unique also where it merges by
// other fields, such as ports of a Service. Then come the keys of the schema (x-kubernetes-list-map-keys) where they are
// known, and a table that has those of Kubernetes' own kinds.
package listkeys
