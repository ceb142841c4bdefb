package leadership

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// NewLock returns the lock on the Lease in the given namespace that keeps the
// guard informed. It is meant for controller-runtime's
// LeaderElectionResourceLockInterface, with the times of package limits and
// LeaderElectionReleaseOnCancel. The configuration must not be wrapped by the
// guard.
func NewLock(config *rest.Config, namespace string, guard *Guard) (resourcelock.Interface, error) {
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
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: corev1alpha1.LeaderElectionLease},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, guard), nil
}

// lock notes what every request on the Lease tells about who leads.
type lock struct {
	resourcelock.Interface
	guard *Guard
}

func watchLock(inner resourcelock.Interface, guard *Guard) resourcelock.Interface {
	return &lock{Interface: inner, guard: guard}
}

// Get reads the Lease; another holder ends our leadership at once.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.guard.drop()
	}
	return record, raw, err
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
	ours := record.HolderIdentity == l.Identity()
	if !ours {
		// Released: nothing may be written from before the request leaves.
		l.guard.drop()
	}
	// Others count the lease from when the server has it, which is later.
	sent := l.guard.clock.Now()
	if err := send(ctx, record); err != nil {
		return err
	}
	if ours {
		l.guard.renew(sent)
	}
	return nil
}
