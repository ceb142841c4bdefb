// Command compare measures what Helm 4 and Flux' kustomize-controller ask of an API
// server for the same objects as Lockstep: install, an upgrade of one object, nothing
// to do, one object that drifted, delete. Each tool works as a user of its own, and the
// requests of that user are counted in the audit log; watches and Leases are not.
//
//	./task compare -- --objects 50,1000
//
// Helm is built from the module in operate, kustomize-controller from that in
// tools/compare; Lockstep's figures are those of the command bench. The parts:
//
//   - main.go: sizes, tools, the table;
//   - measure.go: a control plane, and the requests of one user;
//   - programs.go: the programs of the others;
//   - helm.go, flux.go, lockstep.go: the steps by each tool.
package main
