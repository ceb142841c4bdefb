// Package quota accounts for the memory of the manager by namespace: for loading packages, reading
// repositories and git, and for the content that stays: revisions, the offers of repositories, and
// the sources of templates.
//
//	GOMEMLIMIT ─┬─ a quarter: work, one large piece at a time, in turn by namespace      Memory.Acquire
//	            ├─ three eighths: content that stays, by namespace                               Memory.Hold
//	            └─ the rest: the engine itself, small pieces of work, and garbage
//
// Weights are of live memory, estimated; garbage comes on top of it, which GOMEMLIMIT
// bounds. Memory that stays is shared by dynamic thresholds (Choudhury, Hahne: Dynamic
// Queue Length Thresholds in a Shared-Memory ATM Switch): a namespace can hold twice the
// memory that is left for all. So it has two thirds if it is alone, and later ones
// find room. A quarter is left for cluster-scoped owners. Little is always allowed.
//
// Invariants: the memory that stays exceeds its budget only by the small allowances of
// namespaces, and by objects that existed before this process; a namespace is refused
// because of its own content, before any namespace that holds less.
package quota
