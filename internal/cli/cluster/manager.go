package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// leaseKey is the Lease of the manager in its default namespace.
var leaseKey = client.ObjectKey{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}

// slowAnswer is the duration of a single read that is reported as a reason for a stuck manager.
const slowAnswer = 2 * time.Second

// Delay returns why a manager might have reported nothing, at the cost of one request: no Lease, a
// Lease that is not renewed, or an API server that refuses or is slow. It is empty if no reason is
// known.
func (c *Cluster) Delay(ctx context.Context) string {
	var lease coordinationv1.Lease
	begin := time.Now()
	err := c.Get(ctx, leaseKey, &lease)
	took := time.Since(begin)

	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("there is no Lease %s, so no manager has led in that namespace: is lockstep-manager running?", leaseKey)
	// A user without rights on Leases gets no reason.
	case apierrors.IsForbidden(err):
	case err != nil:
		return "the API server answers: " + err.Error()
	case c.silence(&lease) > 0:
		return fmt.Sprintf("no manager has renewed its Lease for %s: is lockstep-manager running?", duration.HumanDuration(c.silence(&lease)))
	}

	if took > slowAnswer {
		return fmt.Sprintf("the API server took %s for one read: check its load with kubectl get --raw '/readyz?verbose'", duration.HumanDuration(took))
	}
	return ""
}

// Silence returns how long no manager has renewed its Lease, at the cost of one request. It is zero
// if a manager runs, or if the Lease cannot be read: it might be in another namespace, or
// forbidden.
func (c *Cluster) Silence(ctx context.Context) time.Duration {
	var lease coordinationv1.Lease
	if c.Get(ctx, leaseKey, &lease) != nil {
		return 0
	}
	return c.silence(&lease)
}

// silence is zero for a Lease that is renewed. The clocks of the API server and of the manager can
// differ by the duration of the Lease.
func (c *Cluster) silence(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.RenewTime == nil {
		return 0
	}
	if silence := c.Now().Sub(lease.Spec.RenewTime.Time); silence > 2*limits.LeaseDuration {
		return silence
	}
	return 0
}

// Now is the time of the API server, because a workstation's clock can be wrong by minutes. It is the
// local time before the first answer.
func (c *Cluster) Now() time.Time { return time.Now().Add(time.Duration(c.clock.ahead.Load())) }

// clock is how far the API server's clock is ahead of the local one.
type clock struct{ ahead atomic.Int64 }

// dated reads the time from each answer, which has it in seconds.
type dated struct {
	http.RoundTripper
	clock *clock
}

// RoundTrip implements http.RoundTripper.
func (d dated) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		d.clock.ahead.Store(int64(time.Until(date)))
	}
	return answer, nil
}
