package queueing

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

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
