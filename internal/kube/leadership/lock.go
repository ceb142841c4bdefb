package leadership

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/internal/limits"
)

// NewLock returns the lock on the Lease of that namespace and name that keeps the
// guard informed. It is meant for controller-runtime's
// LeaderElectionResourceLockInterface, with the times of package limits and
// LeaderElectionReleaseOnCancel. The configuration must not be wrapped by the
// guard. restored is called with ErrRestored, at most once, if the Lease shows
// that the cluster went back to an earlier state. The process then has to end.
func NewLock(config *rest.Config, namespace, name string, guard *Guard, restored func(error)) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the host name for the identity of the leader: %w", err)
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	// One hung request must leave time for another one before the deadline.
	config.Timeout = limits.LeaseRenewDeadline / 2
	// A renewal must not queue behind other requests of this process.
	config.QPS, config.RateLimiter = -1, nil
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the leader lease: %w", err)
	}

	return watchLock(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, guard, restored), nil
}

// lock records the leader's state from every response about the Lease. client-go calls its methods
// from one goroutine.
type lock struct {
	resourcelock.Interface
	guard    *Guard
	restored func(error)
	// known is the last record of the Lease, nil before the first answer.
	known *resourcelock.LeaderElectionRecord
	// lost is set once the Lease went back.
	lost bool
}

func watchLock(inner resourcelock.Interface, guard *Guard, restored func(error)) resourcelock.Interface {
	return &lock{Interface: inner, guard: guard, restored: restored}
}

// Get reads the Lease; another holder ends the leadership at once.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.lost {
		return nil, nil, ErrRestored
	}

	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	if record.HolderIdentity != l.Identity() {
		l.guard.drop()
	}
	// It is logged once for each other holder that this process waits.
	if holder := record.HolderIdentity; holder != "" && holder != l.Identity() && (l.known == nil || l.known.HolderIdentity != holder) {
		log.FromContext(ctx).Info("another manager leads; waiting for the Lease", "holder", holder, "lease", l.Describe())
	}
	if l.known != nil && wentBack(l.known, record) {
		l.lost = true
		l.guard.drop()
		l.restored(ErrRestored)
		return nil, nil, ErrRestored
	}

	l.known = record
	return record, raw, nil
}

// wentBack reports whether a Lease has a record from before the known one. A holder only
// ever renews to a later time of its own clock, and the Lease counts changes of the holder.
func wentBack(known, now *resourcelock.LeaderElectionRecord) bool {
	// The API keeps microseconds.
	renewed := known.RenewTime.Truncate(time.Microsecond)
	return now.LeaderTransitions < known.LeaderTransitions ||
		now.HolderIdentity == known.HolderIdentity && now.RenewTime.Time.Before(renewed)
}

// Create acquires a Lease that did not exist.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update acquires, renews or releases the Lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lock) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if l.lost {
		return ErrRestored // not even released: a standby has to see that the Lease went back, too
	}
	ours := record.HolderIdentity == l.Identity()
	if !ours {
		// Released: no write is allowed once the request is on its way.
		l.guard.drop()
	}
	// Others count the lease from when the server has it, which is later.
	sent := l.guard.clock.Now()
	if err := send(ctx, record); err != nil {
		// No write is allowed until a renewal succeeds: after an outage, the process
		// has to learn first whether the caches still show this cluster.
		l.guard.drop()
		return err
	}
	l.known = &record
	if ours {
		l.guard.renew(sent)
	}
	return nil
}
