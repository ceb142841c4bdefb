package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// Store keeps the records that have to survive this process. The caller returns the records of a
// revision by Revision.Restore, and the records of Jobs by Want.Jobs. A method that returns no
// error has made its record durable.
type Store interface {
	// Claimed records that all objects of a revision are claimed, and that its first phase is open.
	Claimed(ctx context.Context, rev *Revision) error
	// Opened records which phases of a revision are open.
	Opened(ctx context.Context, rev *Revision) error
	// Started is called when a phase starts that has been open since the claim. It does not have to
	// record that.
	Started(ctx context.Context, rev *Revision) error
	// SucceedsAt returns when a revision whose probes are all true succeeds; zero for at once.
	SucceedsAt(ctx context.Context, rev *Revision) (time.Time, error)
	// Succeeded records that a revision has succeeded.
	Succeeded(ctx context.Context, rev *Revision) error

	// Retained records the objects that a revision retains, before these are released from control.
	Retained(ctx context.Context, rev *Revision, keys sets.Set[objects.Key]) error

	// Noted records notes for users about objects that were written.
	Noted(ctx context.Context, notes map[objects.Key]string) error
	// Spared records objects that are released instead of deleted, and why, before that is done.
	Spared(ctx context.Context, objects []phases.Spared) error

	// RecordJobs records Jobs that have finished. Overflow is called with the Jobs that do not fit
	// into the record, also if there are none.
	RecordJobs(ctx context.Context, runs map[objects.Key]phases.Run) error
	Overflow(jobs []objects.Key)
	// Namespace reads the UID of a namespace that Jobs ran in. If it does not exist, the UID is empty
	// or the error is apply.IsAbsent.
	Namespace(ctx context.Context, name string) (types.UID, error)
}

// References receives the owners whose references are put on existing objects that lack them,
// because an orphaning deletion of an owner might have passed these objects by.
type References interface {
	// Take is called before the write, and Release when it is done or has failed. If Take returns
	// an error, the write is not sent.
	Take(ctx context.Context, owners []types.UID) error
	Release(ctx context.Context, owners []types.UID) error
}
