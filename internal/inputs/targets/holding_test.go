package targets

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/quota"
)

// A session can take as much memory as its namespace has, and returns all of it.
func TestHolding(t *testing.T) {
	t.Parallel()
	account := quota.Of(1200)
	one, same := &holding{memory: account, key: quota.Key{Namespace: "one", ID: "1"}}, &holding{memory: account, key: quota.Key{Namespace: "one", ID: "2"}}
	if !one.change(500) || !one.change(-100) || one.change(500) || one.bytes != 400 || !same.change(100) || same.change(200) {
		t.Errorf("holds %d and %d", one.bytes, same.bytes)
	}

	one.end()
	one.end()
	if !one.change(10_000) || one.bytes != 0 {
		t.Errorf("holds %d after its end", one.bytes)
	}
	if !same.change(400) {
		t.Error("something is not given back")
	}
	if unlimited := (&holding{}); !unlimited.change(1 << 60) {
		t.Error("an account that does not exist has a limit")
	}
}

// The targets of a namespace are connected only as long as there is room next to other namespaces'
// targets. The rest report this, and connect once there is room.
func TestManyTargets(t *testing.T) {
	t.Parallel()
	const room = 8
	all := New(Options[int]{
		Get:    func(context.Context, sources.Ref) (*sources.Object, error) { return nil, nil },
		Listen: func(ctx context.Context, _ livestate.Selection, _ livestate.Listener) { <-ctx.Done() },
		Home:   func(context.Context) (types.UID, error) { return "home", nil },
		Open: func(context.Context, Ref, *rest.Config, types.UID, func(int64)) (int, error) {
			return 0, nil
		},
		Memory: quota.Of(room * targetMemory),
	})

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = all.Start(ctx) }()
	woken := make(chan struct{}, 100)
	use := func(namespace string, i int) Ref {
		ref := Ref{namespace, fmt.Sprintf("target-%d", i), "value"}
		all.Use(ref.String(), ref, func() { woken <- struct{}{} })
		return ref
	}

	refused := func(ref Ref) bool {
		_, _, state := all.Find(ref)
		if state.Reason == corev1alpha1.ReasonTargetLimitExceeded && !strings.Contains(state.Message, "the targets of the namespace "+ref.Namespace) {
			t.Errorf("message %q", state.Message)
		}
		return state.Reason == corev1alpha1.ReasonTargetLimitExceeded
	}

	var connected, waiting []Ref
	for i := range room {
		if ref := use("many", i); refused(ref) {
			waiting = append(waiting, ref)
		} else {
			connected = append(connected, ref)
		}
	}

	other := use("other", 0)
	if len(connected) != room/2 || refused(other) {
		t.Fatalf("%d of %d targets of one namespace are connected", len(connected), room)
	}

	for _, ref := range []Ref{other, connected[0]} {
		all.Release(ref.String())
		all.mu.Lock()
		one := all.targets[ref]
		all.mu.Unlock()
		all.retire(one)
	}

	for refused(waiting[0]) {
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatal("a target waits although there is room")
		}
	}

	if !refused(waiting[1]) {
		t.Error("two are connected in place of one")
	}
}
