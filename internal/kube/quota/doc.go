// Package quota has the account of the bytes that the manager may hold for what others give it: one for loading packages, reading
// repositories and git, and what stays: revisions, what repositories offer, and the content of sources of templates.
//
//	GOMEMLIMIT ─┬─ a quarter: work, one large piece at a time, in turn by namespace      Memory.Acquire
//	            ├─ three eighths: what stays, by namespace                               Memory.Hold
//	            └─ the rest: the engine itself, small pieces of work, and garbage
//
// Weights are of live memory, estimated; garbage comes on top of it, which GOMEMLIMIT
// bounds. Memory that stays is shared by dynamic thresholds (Choudhury, Hahne: Dynamic
// Queue Length Thresholds in a Shared-Memory ATM Switch): a namespace may hold twice the
// memory that is left for all. So it has two thirds where it is alone, and later ones
// find room. A quarter is left for cluster-scoped owners. Little is always allowed.
//
// Invariants: the memory that stays exceeds its budget by the small allowances of
// namespaces alone, and by objects that were there before this process; a namespace is
// refused for what it holds itself, before any that holds less.
package quota
