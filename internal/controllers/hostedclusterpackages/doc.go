// Package hostedclusterpackages reconciles HostedClusterPackages: a Package of the same name in the namespace of the
// control plane of each of HyperShift's hosted clusters that is selected. The steps have a file each:
//
//	gather     the hosted clusters, as package environment knows them, and Packages become a snapshot (template.go: what differs from the template)
//	decide     which Packages to create, update and remove (pure; partition.go: in which order)
//	record     the queue of updates is in status.processing before the first of them is sent
//	act        server-side applies without force, and deletions
//	report     the status (status.go, pure) and events
//
// What the steps know, decide and remember is in state.go, which every file stands on; reconcile.go has their order.
//
// Invariants:
//
//   - At most maxUnavailable Packages are updated at a time, and none that is available while as many are not, for
//     whatever reason. One that is not available yet, or again, keeps its place in the queue.
//   - A group is started when the updates of all groups before it have ended, and one of each has succeeded.
//   - While it is not known which hosted clusters there are, nothing is written. That their kind is not served says
//     nothing of the Packages.
//   - Only Packages that the HostedClusterPackage controls are changed or removed, and of these only fields that the
//     template names. What the API server refuses is on the status, and delays no other Package.
//
// Requests of one update: the apply, and a status for the queue and one each time that a count changes, at most one a
// second. At rest there are none.
package hostedclusterpackages
