// Package listkeys identifies the elements of lists, so that an element of one list can be found in
// another. The diff of plan and the prediction of writes share it. Package drift takes its keys
// from managedFields and shares only the defaults.
//
// The name comes first: people refer to elements by name, and the API server keeps names unique
// even in lists that it merges by other fields, such as the ports of a Service. Next come the
// schema's keys (x-kubernetes-list-map-keys), if they are known, and then a table with the keys of
// Kubernetes' own kinds.
package listkeys
