package leadership

import (
	"context"
	"testing"
	"time"

	leasev1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testclock "k8s.io/utils/clock/testing"
)

// server keeps one Lease, and refuses updates of an older one.
type server struct {
	coordinationv1.LeaseInterface
	lease leasev1.Lease
}

func (s *server) Leases(string) coordinationv1.LeaseInterface { return s }

func (s *server) Get(context.Context, string, metav1.GetOptions) (*leasev1.Lease, error) {
	return s.lease.DeepCopy(), nil
}

func (s *server) Update(_ context.Context, lease *leasev1.Lease, _ metav1.UpdateOptions) (*leasev1.Lease, error) {
	if lease.ResourceVersion != s.lease.ResourceVersion {
		return nil, apierrors.NewConflict(leasev1.Resource("leases"), lease.Name, nil)
	}
	s.lease = *lease.DeepCopy()
	s.lease.ResourceVersion += "1"
	return s.lease.DeepCopy(), nil
}

// annotate is what an administrator does.
func (s *server) annotate(annotations map[string]string) {
	s.lease.Annotations = annotations
	s.lease.ResourceVersion += "2"
}

func TestPaused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	guard, s := NewGuard(testclock.NewFakePassiveClock(time.Now())), &server{}
	lock := watchLock(&resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Name: "l"}, LockConfig: resourcelock.ResourceLockConfig{Identity: me},
		Client: &leases{LeasesGetter: s, annotation: "example.com/paused", guard: guard},
	}, guard, func(error) {})
	// renew renews as client-go does: at once, and after a conflict what it has read then.
	renew := func() {
		t.Helper()
		ours := resourcelock.LeaderElectionRecord{HolderIdentity: me}
		if lock.Update(ctx, ours) == nil {
			return
		}
		if guard.Valid() {
			t.Error("valid after a failed renewal")
		}
		if _, _, err := lock.Get(ctx); err != nil {
			t.Fatal(err)
		}
		if err := lock.Update(ctx, ours); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	if !guard.Valid() {
		t.Fatal("not valid as the leader")
	}
	s.annotate(map[string]string{"example.com/paused": ""})
	for range 2 {
		if renew(); guard.Valid() {
			t.Error("valid while the Lease pauses the manager")
		}
	}
	if _, kept := s.lease.Annotations["example.com/paused"]; !kept {
		t.Error("a renewal took the annotation off")
	}
	s.annotate(nil)
	if renew(); !guard.Valid() {
		t.Error("not valid after the annotation was taken off")
	}
}
