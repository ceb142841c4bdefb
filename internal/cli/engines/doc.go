// Package engines computes the patches that hand a cluster over between Package Operator and this
// engine, while neither runs.
//
//	to this engine      the parts of Package Operator's own package lose it as their owner,
//	                    so that its removal deletes none of them
//	to Package Operator the newest revision that contains an object controls it, and its number
//	                    is in the object's revision annotation; revisions match the selector of
//	                    their deployment; finalizers that only this engine removes are dropped
//
// The results only patch metadata, and UID and resourceVersion guard each patch. An object in the
// right state needs no patch, so both directions can be repeated at any time. The package has no
// client: the caller reads and writes.
package engines
