package phases

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep.run/lockstep/internal/objects"
)

// Decide returns what to do about one object.
func Decide(c DecisionInput) Decision {
	if c.Desired == nil {
		return decideGone(c)
	}
	if c.Live.Unserved {
		return Decision{Action: Wait, Message: "the API server does not serve " + kindName(c.Desired)}
	}
	if !c.Live.Synced {
		return Decision{Action: Wait, Message: notSynced(c), Reason: c.Live.Reason}
	}

	v := decideLive(c)
	switch {
	case v.Action == Verify && c.Report && c.immutable():
		return Decision{Drift: "was changed in a field that cannot be changed back" + by(c.Live.Object)}
	case (v.Action == Change || v.Action == Verify || v.Action == Adopt && c.owns(c.Live.Object.Controller())) && c.recreates():
		if c.Spared != "" {
			f := c.Applied.Failure
			return Decision{Action: Wait, Message: f.Message + "; it is not recreated, because " + c.Spared, Reason: f.Reason, Retry: f.Until}
		}
		return Decision{Action: Recreate}
	}

	if v.writes() && c.Applied.failed(c.Desired, c.Live.Object, c.Now) {
		return pause(v, c.Applied.Failure)
	}

	return v
}

func decideLive(c DecisionInput) Decision {
	live := c.Live.Object
	switch {
	case c.Ran && (live == nil || live.Terminating):
		// A recorded success does not run again, however the Job was deleted.
		if !c.Recorded {
			return Decision{Action: Wait, Message: "has succeeded and no longer exists; that is being recorded"}
		}
		return Decision{Completed: true}
	case live == nil && c.reportsAbsence():
		return Decision{Drift: "was deleted, or lost the label " + c.Owner.Names.ManagedLabel}
	case live == nil && c.Applied.again(c.Desired):
		return correction(c, Create, "someone deletes it again and again, or removes its label "+c.Owner.Names.ManagedLabel+"; written again after a pause: find out who does")
	case live == nil:
		return Decision{Action: Create}
	case live.Terminating:
		return awaitDeletion(c, live)
	}

	if v, mine := decideOwner(c, live); !mine {
		return v
	}

	return decideContent(c, live)
}

// reportsAbsence reports whether others deleted an object, and its absence is left alone. An object
// that the engine deletes to recreate it does not count, because the engine might have been stopped
// in between.
func (c *DecisionInput) reportsAbsence() bool {
	if !c.Report {
		return false
	}
	before := c.Applied.Content.IsZero() && c.WrittenBefore && !c.Applied.Gone && !c.Desired.Recreate
	return before || c.Applied.again(c.Desired)
}

// pause replaces a write that failed until it is tried again. Labels alone do not gate anything,
// even if they are refused.
func pause(v Decision, f *Failure) Decision {
	switch {
	case v.Action == Relabel:
		return Decision{Action: None, Retry: f.Until}
	case f.Collision:
		return Decision{Action: Refuse, Message: f.Message, Retry: f.Until}
	}
	return Decision{Action: Wait, Message: f.Message, Reason: f.Reason, Retry: f.Until}
}

// Pauses before rereading an object that the watch does not show because it lacks the label of the
// watch.
const (
	leavingPause = 2 * time.Second
	foreignPause = 30 * time.Second
)

// unwatched completes a decision that only a change of the object can end. The watch shows that
// change, unless it never showed the object.
func unwatched(c DecisionInput, v Decision, pause time.Duration) Decision {
	if c.Live.Object.Watched || c.Applied.ReadAt.IsZero() {
		return v
	}
	if v.Retry = c.Applied.ReadAt.Add(pause); !c.Now.Before(v.Retry) {
		return Decision{Action: Confirm, Message: v.Message}
	}
	return v
}

// collectorPatience is the time that the garbage collector can take to delete the dependents of a
// custom resource. If it knows the resource under a version that is no longer served, it never
// releases it.
const collectorPatience = 2 * time.Minute

// awaitDeletion waits for an object that is being deleted. If the collector does not release it,
// the engine deletes it without the collector, and its dependents end afterwards.
func awaitDeletion(c DecisionInput, live *objects.Observed) Decision {
	v := unwatched(c, Decision{Action: Wait, Message: c.terminating(live)}, leavingPause)
	if v.Action != Wait || live.CollectedSince == 0 || !c.owns(c.controller(live)) {
		return v
	}

	due := time.Unix(live.CollectedSince, 0).Add(collectorPatience)
	switch {
	case c.Now.Before(due):
	case c.Desired != nil:
		return Decision{Action: Recreate}
	default:
		return Decision{Action: Delete}
	}
	if v.Retry.IsZero() || due.Before(v.Retry) {
		v.Retry = due
	}

	return v
}

// decideOwner reports whether the owner controls the live object; otherwise it applies the
// collision rules.
func decideOwner(c DecisionInput, live *objects.Observed) (Decision, bool) {
	controller := c.controller(live)
	switch {
	case c.Retained:
		return Decision{Action: Adopt}, false
	case controller == nil && (c.Applied.UID != "" && c.Applied.UID == live.UID || c.WrittenBefore && live.Wrote):
		// Our reference was removed, maybe while no manager ran. It is put back only if the owner
		// is not being deleted.
		if c.Report {
			return Decision{Drift: "lost the controller reference of this package"}, false
		}
		return correction(c, Correct, otherManager(c)+" takes the owner reference of this package off again and again; put back after a pause: let it keep references of others"), false
	case c.Desired.Owner(c.Owner).Is(controller), c.bySet(controller):
		return Decision{}, true
	case controller != nil && c.Controllers.Successors.Has(controller.UID):
		return unwatched(c, Decision{Action: Wait, Message: "handed over to " + ownerName(controller, c.Owner)}, foreignPause), false
	case c.owns(controller), c.handsOver(controller):
		return Decision{Action: Adopt}, false
	case c.Desired.Collision == objects.CollisionProtectionNone && c.Applied.again(c.Desired) && c.Applied.UID == live.UID:
		v := correction(c, Adopt, c.taker(controller)+" takes it over again and again; taken back after a pause: let only one of both have it")
		v.Foreign = true
		return v, false
	case c.Desired.Collision == objects.CollisionProtectionNone,
		c.Desired.Collision == objects.CollisionProtectionIfNoController && controller == nil,
		c.Owner.MayAdopt(live):
		return Decision{Action: Adopt, Foreign: true}, false
	}

	return unwatched(c, Decision{Action: Refuse, Message: c.refusal(controller)}, foreignPause), false
}

// bySet reports whether the set of the object's revision controls it, as an earlier engine left it.
// The next write changes the reference to the owner.
func (c *DecisionInput) bySet(controller *objects.Reference) bool {
	return controller != nil && !controller.Remote && controller.UID == c.Set && c.Set != ""
}

// handsOver reports whether a controller should hand its objects over to the owner.
func (c *DecisionInput) handsOver(controller *objects.Reference) bool {
	return controller != nil && (c.Controllers.Predecessors.Has(controller.UID) || c.Controllers.Delegated.Has(controller.UID))
}

// refusal names the controller of an object that cannot be adopted, with a remedy.
func (c *DecisionInput) refusal(controller *objects.Reference) string {
	switch {
	case !c.Desired.NeverAdopted:
		if claimed := c.Live.Object.Controller(); controller == nil && claimed != nil {
			return "names " + ownerName(claimed, c.Owner) + " in its annotation " + c.Owner.Names.OwnersAnnotation + ", which has never written it: " +
				"remove the annotation and delete or rename the object; spec.collisionProtection: IfNoController takes it over"
		}
		return Collision(controller, c.Owner)
	case controller == nil:
		return "exists already and nothing controls it: delete it, rename it, or render another name"
	}

	return "is controlled by " + ownerName(controller, c.Owner) + ": render another name, or delete it there"
}

// Collision names the controller of an object that an owner cannot adopt, with a remedy. The remedy
// is never to delete the object, because it might hold data.
func Collision(controller *objects.Reference, owner objects.Owner) string {
	if controller == nil && owner.Remote() { // in another cluster an object cannot name its adopter: see Owner.MayAdopt
		return "exists already and nothing controls it: install with --adopt (spec.collisionProtection: IfNoController) to take it over, or annotate it " +
			owner.Names.CollisionProtectionAnnotation + " in the package, or rename it"
	}
	if controller == nil {
		return "exists already and nothing controls it: take it over by kubectl package adopt, or install with --adopt " +
			"(spec.collisionProtection: IfNoController), or annotate it " + owner.Names.CollisionProtectionAnnotation + " in the package"
	}

	return "is controlled by " + ownerName(controller, owner) + ": leave it out here, or rename it; " +
		"spec.collisionProtection: None takes it over, as does the annotation " + owner.Names.CollisionProtectionAnnotation
}

// ownerName names the controller of an object that an owner wants. A controller in another cluster
// has a namespace, and can belong to another management cluster.
func ownerName(ref *objects.Reference, owner objects.Owner) string {
	if !ref.Remote {
		return ref.Kind + " " + ref.Name
	}
	name := objects.Key{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}.String()
	if owner.Remote() && ref.Cluster == owner.Cluster {
		return name
	}
	return name + " of another cluster"
}

// taker names the owner that took an object over.
func (c *DecisionInput) taker(controller *objects.Reference) string {
	if controller == nil {
		return "someone"
	}
	return ownerName(controller, c.Owner)
}

// otherManager names the manager that changed the object last, if known.
func otherManager(c DecisionInput) string {
	if f := c.Applied.Contention; f != nil && f.OtherManager != "" {
		return "field manager " + f.OtherManager
	}
	return "another writer"
}

// contested names the fields that another manager changed, if known.
func contested(c DecisionInput) string {
	if f := c.Applied.Contention; f != nil && len(f.Fields) > 0 {
		return counted(f.Fields)
	}
	return "it"
}

// by names the field manager that wrote the object last, unless it is the engine's.
func by(live *objects.Observed) string {
	if live.Writer == "" {
		return ""
	}
	return " by field manager " + live.Writer
}

func decideContent(c DecisionInput, live *objects.Observed) Decision {
	r := c.Applied
	if r.UID != live.UID {
		r.Content = objects.Digest{} // another object with the same name
	}

	compared, same := live.ProjectedBy == r.Template, live.Projection == r.Baseline
	if live.ProjectedBy.IsZero() && !r.Converted.IsZero() {
		same = live.Projection == r.Converted
		compared = same // otherwise it is read in the version of the template
	}

	switch {
	case r.Content.IsZero() && c.Outdated:
		return Decision{Action: Change}
	case r.Content.IsZero():
		return Decision{Action: Verify}
	case r.Content != c.Desired.Content:
		return Decision{Action: Change}
	case !compared:
		return Decision{Action: Verify}
	case live.Unrecorded && !c.Report:
		return correction(c, Correct, "someone wipes its managedFields again and again; written again after a pause: find out who does")
	case !same && c.Report:
		return Decision{Drift: "was changed" + by(live)}
	case !same:
		return correction(c, Correct, otherManager(c)+" changes "+contested(c)+" back again and again; corrected again after a pause: let only one of both set the field, or leave it to the other one by the annotation "+
			c.Owner.Names.IgnoredFieldsAnnotation)
	case r.Labels != c.Labels && c.Relabel:
		return Decision{Action: Relabel}
	}

	return Decision{Action: None}
}

// decideGone judges an object that should be removed.
func decideGone(c DecisionInput) Decision {
	live := c.Live.Object
	switch {
	case c.Applied.Gone && live == nil:
		return Decision{Action: None}
	case c.Live.Unserved, c.Live.Unstored:
		return Decision{Action: None} // objects are deleted with their API
	case !c.Live.Synced:
		return Decision{Action: Wait, Message: notSynced(c), Reason: c.Live.Reason}
	case c.removalFailed():
		f := c.Applied.Failure
		return Decision{Action: Wait, Message: f.Message, Reason: f.Reason, Retry: f.Until}
	case live == nil && !c.Confirm:
		return Decision{Action: None}
	case live == nil:
		return Decision{Action: Confirm}
	}

	if !c.owns(c.controller(live)) {
		switch {
		case c.Retained && c.Retain:
			return Decision{Action: None}
		case !c.Retained && c.abandoned(live):
			// If only the reference is missing, the garbage collector may have removed it on an
			// orphaning delete, which does not know our labels. Therefore never delete such an
			// object.
			return Decision{Action: Release}
		case !c.Retained:
			return Decision{Action: None}
		}
	}

	return decideRemoval(c, live)
}

// abandoned reports whether the object is still ours and has our label, but lacks the reference.
// A set of another deployment in its references can retain it, and finds it by that label.
func (c *DecisionInput) abandoned(live *objects.Observed) bool {
	ours := c.Applied.UID != "" && c.Applied.UID == live.UID || live.Wrote
	return ours && !c.Live.Unlabelled && !live.Terminating && live.Controller() == nil && !slices.ContainsFunc(live.Owners, c.rivalSet)
}

// rivalSet reports whether a reference names a set that is neither this owner's nor one that will
// hand their objects over to it.
func (c *DecisionInput) rivalSet(ref objects.Reference) bool {
	return strings.HasPrefix(ref.APIVersion, c.Owner.Names.GroupVersion.Group+"/") && strings.HasSuffix(ref.Kind, "ObjectSet") &&
		!c.owns(&ref) && !c.handsOver(&ref)
}

// removalFailed reports whether the removal of this very object failed and the next attempt is not
// due yet. A failed write is not evidence about a removal. Neither is a missing right to delete the
// object about its release, which does not need that right.
func (c *DecisionInput) removalFailed() bool {
	f, live := c.Applied.Failure, c.Live.Object
	if f == nil || !f.Content.IsZero() || f.UID != uidOf(live) || !c.Now.Before(f.Until) {
		return false
	}
	return f.Reason == "" || !c.Keep && c.Spared == "" && (live == nil || !live.Keep)
}

// decideRemoval judges an existing object of the owner that should be removed.
func decideRemoval(c DecisionInput, live *objects.Observed) Decision {
	switch {
	case live.Terminating && c.Reserved:
		return Decision{Action: None}
	case live.Terminating:
		return awaitDeletion(c, live)
	case c.Keep || live.Keep:
		return Decision{Action: Release}
	case c.Spared != "":
		return Decision{Action: Release, Message: c.Spared}
	case c.Retain:
		return Decision{Action: Retain}
	}

	return Decision{Action: Delete}
}

// correction throttles contention. The first corrections are immediate; then the pause doubles from
// one second to five minutes, and the message names the other manager.
func correction(c DecisionInput, a Action, message string) Decision {
	const longest = 5 * time.Minute
	contention := c.Applied.Contention
	if !contention.Throttled() {
		return Decision{Action: a}
	}

	pause := min(time.Second<<min(contention.Corrections-freeCorrections, 20), longest)
	due := contention.Corrected.Add(pause)
	if !c.Now.Before(due) {
		return Decision{Action: a}
	}
	return Decision{Action: Wait, Retry: due, Message: message}
}

func (c *DecisionInput) terminating(live *objects.Observed) string {
	message := "is being deleted"
	if live.Held != "" {
		message += "; " + live.Held
	}
	class := cmp.Or(c.Class, c.Desired.Class())
	if class == "" {
		return message
	}

	return fmt.Sprintf("%s: the agent of class %q removes its objects, and then the finalizer. Its conditions show the reason for the wait; to leave the objects where they are, annotate it with %s=true, "+
		"and if there is no such agent any more, remove the finalizer", message, class, c.Owner.Names.AbandonTargetAnnotation)
}

func notSynced(c DecisionInput) string {
	if c.Live.Err != "" {
		return "cannot be watched: " + c.Live.Err
	}
	return "the watch of its kind is starting"
}

func kindName(d *objects.Desired) string {
	if d.Key.Group == "" {
		return d.Version + " " + d.Key.Kind
	}
	return d.Key.Group + "/" + d.Version + " " + d.Key.Kind
}
