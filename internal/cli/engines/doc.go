// Package engines decides what it takes to hand a cluster over between Package Operator and
// this engine, while neither runs.
//
//	to this engine      the parts of Package Operator's own package lose it as their owner,
//	                    so that its removal deletes none of them
//	to Package Operator each object is controlled by the newest revision that contains it, and
//	                    says so in its revision annotation; revisions match the selector of
//	                    their deployment; without finalizers that only this engine removes
//
// The results are patches of metadata alone, each guarded by UID and resourceVersion. An
// object that is as it should be needs none, so both can be repeated at any time. The
// package has no client: the caller reads and writes.
package engines
