package queueing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// acquired records the order of acquisitions.
type acquired struct {
	t      *testing.T
	shares *Semaphore
	names  []string
	holds  map[string]func()
}

func (a *acquired) begin(ctx context.Context, namespace, name string, n int64) {
	go func() {
		release, err := a.shares.Acquire(ctx, namespace, n)
		if err != nil {
			return
		}
		a.names = append(a.names, name) // one at a time: each start and release is awaited
		a.holds[name] = release
	}()
	synctest.Wait()
}

func (a *acquired) release(name string) {
	a.holds[name]()
	synctest.Wait()
}

func (a *acquired) want(reason string, names ...string) {
	a.t.Helper()
	if !slices.Equal(a.names, names) {
		a.t.Errorf("%s: %v, want %v", reason, a.names, names)
	}
}

func TestSemaphore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &acquired{t: t, shares: NewSemaphore(4, 4), holds: map[string]func(){}}
		a.begin(t.Context(), "many", "m1", 4)
		for i := 2; i <= 4; i++ {
			a.begin(t.Context(), "many", fmt.Sprintf("m%d", i), 4)
		}
		a.begin(t.Context(), "few", "f1", 1)
		a.begin(t.Context(), "few", "f2", 9) // counts as the whole capacity
		a.want("others wait", "m1")
		a.release("m1")
		a.want("the one that waited first has the turn", "m1", "m2")
		a.release("m2")
		a.want("then the other namespace has, and free capacity is reserved for the next", "m1", "m2", "f1")
		if _, ok := a.shares.TryAcquire("", 1); ok {
			t.Error("a TryAcquire precedes the waiters")
		}
		a.release("f1")
		a.want("in turn", "m1", "m2", "f1", "m3")
		a.release("m3")
		a.want("the whole capacity is never too little", "m1", "m2", "f1", "m3", "f2")
		a.holds["f2"]()
		a.release("f2") // again
		a.want("released once", "m1", "m2", "f1", "m3", "f2", "m4")
		a.release("m4")
		if release, ok := a.shares.TryAcquire("", 4); !ok {
			t.Error("something is not released")
		} else {
			release()
		}
	})
}

func TestSemaphoreOfThoseWhoGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &acquired{t: t, shares: NewSemaphore(2, 2), holds: map[string]func(){}}
		a.begin(t.Context(), "a", "a1", 1)
		cause := errors.New("deleted")
		ctx, cancel := context.WithCancelCause(t.Context())
		a.begin(ctx, "b", "large", 2)
		a.begin(t.Context(), "c", "c1", 1)
		a.want("the large one has its turn", "a1")
		cancel(cause)
		synctest.Wait()
		a.want("the turn passes on", "a1", "c1")
		if _, err := a.shares.Acquire(ctx, "b", 2); !errors.Is(err, cause) {
			t.Errorf("it ends with %v", err)
		}
		a.release("a1")
		a.release("c1")
		if a.shares.used != 0 || len(a.shares.waiting.order) > 0 || len(a.shares.waiting.waiting) > 0 {
			t.Errorf("%d are used, %v wait", a.shares.used, a.shares.waiting.order)
		}
	})
}

// Regardless of the demand of one namespace, another one only waits for the running piece, and for
// one of each waiting namespace.
func TestSemaphoreIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shares := NewSemaphore(1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		use := func(namespace string) time.Duration {
			began := time.Now()
			release, err := shares.Acquire(ctx, namespace, 1)
			if err != nil {
				return 0 // the test is over
			}
			defer release()
			waited := time.Since(began)
			time.Sleep(time.Second)
			return waited
		}
		for range 1000 {
			go use("flood")
		}
		synctest.Wait()
		for range 3 {
			if waited := use("other"); waited == 0 || waited > 2*time.Second {
				t.Errorf("it waited for %s", waited)
			}
		}
		cancel()
		time.Sleep(time.Second)
	})
}

func TestRequests(t *testing.T) {
	t.Parallel()
	var woken []string
	s := NewRequests(2, func(r string) { woken = append(woken, r) })
	begin := func(key, request string) func() {
		end, _ := s.Start(key, request)
		return end
	}
	expect := func(reason string, want ...string) {
		t.Helper()
		if !slices.Equal(woken, want) {
			t.Errorf("%s: woken %v, want %v", reason, woken, want)
		}
		woken = nil
	}
	first := begin("a", "a1")
	if first == nil || begin("a", "a2") != nil || begin("a", "a3") != nil {
		t.Fatal("one at a time for each key")
	}
	second := begin("b", "b1")
	if second == nil || begin("c", "c1") != nil {
		t.Fatal("as many as there are in all")
	}
	expect("no request has ended")
	first()
	expect("the first of the key whose turn it is", "a2")
	if begin("a", "a3") != nil || begin("c", "c1") != nil {
		t.Error("a request was started before its turn")
	}
	third := begin("a", "a2")
	if third == nil {
		t.Fatal("it is the turn of a2")
	}
	third()
	expect("then of another key", "c1")
	s.Leave("c", "c1")
	expect("one that needs it no more", "a3")
	s.Leave("c", "c1")
	expect("it did not wait")
	second()
	expect("it was admitted before")
	if begin("a", "a3") == nil || begin("d", "d1") == nil || len(s.waiting) > 0 {
		t.Errorf("all is free: %+v", s.waiting)
	}
}

// For any sequence of requests, the limits hold, all waiting requests are admitted in the end, and
// no state is left.
func TestRequestsProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		queue := []string{}
		most := rapid.IntRange(1, 3).Draw(t, "most")
		s := NewRequests(int64(most), func(r string) { queue = append(queue, r) })
		running, wanted := map[string]func(){}, map[string]bool{}
		visit := func(request string) {
			key := request[:1]
			if !wanted[request] {
				s.Leave(key, request)
				return
			}
			if end, ok := s.Start(key, request); ok {
				delete(wanted, request)
				if running[key] != nil || len(running) == most {
					t.Fatalf("%s starts along with %d others", request, len(running))
				}
				running[key] = end
			}
		}
		drain := func() {
			for len(queue) > 0 {
				next := queue[0]
				queue = queue[1:]
				visit(next)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			request := fmt.Sprintf("%c%d", rapid.ByteRange('a', 'd').Draw(t, "key"), rapid.IntRange(0, 3).Draw(t, "n"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				wanted[request] = true
				visit(request)
			case 2:
				delete(wanted, request)
				visit(request)
			case 3:
				if end := running[request[:1]]; end != nil {
					delete(running, request[:1])
					end()
				}
			}
			if rapid.Bool().Draw(t, "drain") {
				drain()
			}
		}
		for drain(); len(running) > 0; drain() {
			for key, end := range running {
				delete(running, key)
				end()
				break
			}
		}
		if used, waiting := s.namespaces.Depth(); len(wanted)+len(s.waiting) > 0 || used+waiting > 0 {
			t.Fatalf("left: %v %+v, %d are used, %d wait", wanted, s.waiting, used, waiting)
		}
	})
}
