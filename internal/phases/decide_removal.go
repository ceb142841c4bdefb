package phases

import "lockstep.run/lockstep/internal/objects"

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

// abandoned reports whether the object is still ours and has our label, but lacks the reference.
func (c *DecisionInput) abandoned(live *objects.Observed) bool {
	ours := c.Applied.UID != "" && c.Applied.UID == live.UID || live.Wrote
	return ours && !c.Live.Unlabelled && !live.Terminating && live.Controller() == nil
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
