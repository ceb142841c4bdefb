// Package invariants judges the engine by the API server's audit log and by the final
// state, and never by the manager's own words. docs/development/invariants.md numbers the
// invariants.
//
// A test describes a Step: the content of the previous and of the desired revision, the
// objects that other clients change meanwhile, and the logged requests. Judge returns the
// violations; the step passes if there are none.
//
//	install := invariants.Step{Name: "install", Manager: user, To: v1, Writes: entries}
//	upgrade := invariants.Step{Name: "upgrade", Manager: user, From: v1, To: v2, Writes: entries}
//	deletion := invariants.Step{Name: "delete", Manager: user, From: v2, Writes: entries}
//	for _, v := range upgrade.Judge() { t.Error(v) }
//
//	Order        1  phases are written in order, each after the gates of those before
//	Removals     2  objects that stay, or have a foreign controller, are not deleted
//	             6  obsolete objects are deleted in reverse order, after new ones are written
//	Writers      3  once a newer revision wrote an object, no older one does
//	Compare      4  the final state is the same as without a fault (Look, Same)
//	Rest         5  converged means no request; a restart makes no write
//	Ownership    6  an archived revision owns nothing, nothing obsolete is left
//
// The judges do not know the injected faults. A fault can repeat or lose a request, but it
// does not excuse a write out of order or a wrong deletion. The only effect that it excuses
// is a second identical write, which is not a violation anyway.
package invariants
