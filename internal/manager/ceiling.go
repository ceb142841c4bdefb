package manager

import (
	"context"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/permissions"
)

// ceiling watches only the ClusterRole that bounds the rights of packages.
type ceiling struct {
	listen sources.Listen
	// changed is called after each change; it must not wait.
	changed func()

	mu   sync.Mutex
	last permissions.Ceiling
}

// get returns the ceiling as it was read last.
func (c *ceiling) get() permissions.Ceiling {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Start watches until the context ends.
func (c *ceiling) Start(ctx context.Context) error {
	if role := c.get().Role; role != "" {
		c.listen(ctx, livestate.Selection{Resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles"), Name: role, Whole: true}, c)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader watches.
func (c *ceiling) NeedLeaderElection() bool { return true }

// set changes the ceiling and notifies. The listener runs in a goroutine of its own, because events
// of the watch must not wait for the queue of packages.
func (c *ceiling) set(change func(*permissions.Ceiling)) {
	c.mu.Lock()
	change(&c.last)
	c.mu.Unlock()
	panics.Go(context.Background(), "enqueueing packages that ask for rights", c.changed)
}

// Listed implements livestate.Listener.
func (c *ceiling) Listed(all []metav1.Object) {
	if len(all) == 0 {
		c.Deleted(nil)
		return
	}
	c.Changed(all[0])
}

// Changed implements livestate.Listener.
func (c *ceiling) Changed(obj metav1.Object) {
	role := rbacv1.ClusterRole{}
	whole, ok := obj.(*unstructured.Unstructured)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, &role) != nil {
		c.Deleted(obj) // the API server has no such ClusterRole
		return
	}
	c.set(func(last *permissions.Ceiling) {
		*last = permissions.Ceiling{Role: last.Role, Known: true, Found: true, Rules: role.Rules}
	})
}

// Deleted implements livestate.Listener.
func (c *ceiling) Deleted(metav1.Object) {
	c.set(func(last *permissions.Ceiling) { *last = permissions.Ceiling{Role: last.Role, Known: true} })
}

// Failed implements livestate.Listener.
func (c *ceiling) Failed(err error) {
	c.set(func(last *permissions.Ceiling) { last.Err = err })
}
