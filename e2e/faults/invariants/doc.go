// Package invariants judges what the engine did, by the API server's audit log and by the
// state at the end, and never by the manager's own words. The numbers of the invariants
// are those of docs/development/invariants.md.
//
// A test describes a Step: the content of the revision before and of the desired one, the
// objects that others change meanwhile, and the requests that were logged. Judge returns
// the violations; none is a pass.
//
//	install := invariants.Step{Name: "install", Manager: user, To: v1, Writes: entries}
//	upgrade := invariants.Step{Name: "upgrade", Manager: user, From: v1, To: v2, Writes: entries}
//	deletion := invariants.Step{Name: "delete", Manager: user, From: v2, Writes: entries}
//	for _, v := range upgrade.Judge() { t.Error(v) }
//
//	Order        1  phases are written in order, each after the gates of those before
//	Removals     2  nothing is deleted that stays, or that others control
//	             6  obsolete objects are deleted in reverse order, after new ones are written
//	Writers      3  once a newer revision wrote an object, no older one does
//	Compare      4  the end is that of a run without a fault (Look, Same)
//	Rest         5  converged means no request; a restart makes no write
//	Ownership    6  an archived revision owns nothing, nothing obsolete is left
//
// The judges do not know the injected faults. A fault may repeat or lose a request, but
// it excuses no write out of order and no wrong deletion; what it excuses, as a second
// identical write, is no violation to begin with.
package invariants
