// Package hostedclusterpackages reconciles HostedClusterPackages: a Package of the same name in the
// namespace of the control plane of each of HyperShift's hosted clusters that is selected. The
// steps have a file each:
//
//	gather     the hosted clusters, as package environment knows them, and Packages become a snapshot (template.go: differences from the template)
//	decide     which Packages to create, update and remove (pure; partition.go: their order)
//	record     the queue of updates is in status.processing before the first of them is sent
//	act        server-side applies without force, and deletions
//	report     the status (status.go, pure) and events
//
// state.go has the knowledge, the decisions and the memory of the steps, and every file uses it;
// reconcile.go has their order.
//
// Invariants:
//
//   - At most maxUnavailable Packages are updated at a time. An available Package is not updated
//     while that many are unavailable for any reason. A Package that is not available yet, or
//     again, keeps its place in the queue.
//   - A group is started when the updates of all groups before it have ended, and one of each has
//     succeeded.
//   - While the hosted clusters are unknown, it does not write. Their kind not being served does
//     not mean that the Packages are unwanted.
//   - It changes or removes only Packages that the HostedClusterPackage controls, and only fields
//     that the template names. If the API server refuses a write, the status reports it, and other
//     Packages are not delayed.
//
// Requests of one update: the apply, and a status for the queue and one each time that a count
// changes, at most one a second. At rest there are none.
package hostedclusterpackages
