// Command compare measures the requests that Helm 4 and Flux' kustomize-controller send to an API
// server for the same objects as Lockstep: install, an upgrade of one object, nothing to do, one
// object that drifted, delete. Each tool works as its own user, and the audit log counts the
// requests of that user, except watches and Leases.
//
//	./task compare -- --objects 50,1000
//
// Helm is built from the module in operate, kustomize-controller from the module in tools/compare.
// Lockstep's figures come from the command bench. The parts:
//
//   - main.go: sizes, tools, the table;
//   - measure.go: a control plane, and the requests of one user;
//   - programs.go: the other programs;
//   - helm.go, flux.go, lockstep.go: the steps with each tool.
package main
