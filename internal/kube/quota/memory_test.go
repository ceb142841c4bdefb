package quota

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
)

const mebibyte = 1 << 20

// fill fills the share of a namespace, in pieces of a size.
func fill(a *Memory, namespace string, size int64) (held int64) {
	for i := 0; ; i++ {
		if a.Hold(Key{Namespace: namespace, Name: fmt.Sprintf("piece %d", i)}, size) != nil {
			return held
		}
		held += size
	}
}

// Regardless of the demand of some namespaces, later ones find room, and the sum stays within the
// budget.
func TestHoldLeavesRoom(t *testing.T) {
	t.Parallel()
	a := New(400 * mebibyte)
	last := int64(math.MaxInt64)
	for i := range 5 {
		held := fill(a, fmt.Sprintf("greedy-%d", i), mebibyte/4)
		if held < mebibyte || held > last {
			t.Errorf("number %d has %d KiB, the one before %d", i+1, held>>10, last>>10)
		}
		last = held
	}
	if got, most := a.tenants, a.budget*3/4+5*a.limit/limits.MemoryAllowanceShare; got > most {
		t.Errorf("namespaces hold %d, of %d at most", got, most)
	}
	if held := fill(a, "", mebibyte); held < a.budget/4-8*mebibyte {
		t.Errorf("%d MiB are left for the cluster", held/mebibyte)
	}
	if err := a.Hold(Key{Namespace: "modest", Name: "package"}, mebibyte); err != nil {
		t.Errorf("a modest namespace: %v", err)
	}
}

// A package of 20 MiB can be installed and upgraded by a namespace, in the memory that config
// gives.
func TestHoldOfOneNamespace(t *testing.T) {
	t.Parallel()
	a := New(math.MaxInt64)
	for _, revision := range []string{"first", "second"} {
		if err := a.Hold(Key{Namespace: "team", Name: revision}, 31*mebibyte); err != nil {
			t.Errorf("%s: %v", revision, err)
		}
	}
	err := a.Hold(Key{Namespace: "team", Name: "third"}, 31*mebibyte)
	var exceeded *Exceeded
	if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "GOMEMLIMIT (400 MiB)") || !strings.Contains(err.Error(), "third would take 31 MiB") {
		t.Fatalf("got %v", err)
	}
	a.Count(Key{Namespace: "other", Name: "found at the start"}, 100*mebibyte)
	if again := a.Hold(Key{Namespace: "team", Name: "third"}, 31*mebibyte); again.Error() != err.Error() {
		t.Errorf("the text depends on other holders: %v", again)
	}
	if err := a.Hold(Key{Namespace: "team", Name: "second"}, 20*mebibyte); err != nil {
		t.Errorf("less than before: %v", err)
	}
	for _, key := range []Key{{"team", "first", ""}, {"team", "second", ""}, {"other", "found at the start", ""}, {"never", "held", ""}} {
		if err := a.Hold(key, 0); err != nil {
			t.Error(err)
		}
	}
	if a.total != 0 || a.tenants != 0 || len(a.held)+len(a.of) != 0 {
		t.Errorf("%d bytes, %d entries remain", a.total, len(a.held)+len(a.of))
	}
}

// The live memory of a process fits into three quarters of its limit.
func TestSum(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{100 * mebibyte, 400 * mebibyte, 4096 * mebibyte} {
		a := New(limit)
		if sum := limit/limits.MemoryWorkShare + a.budget + limit/8; sum > limit/4*3 {
			t.Errorf("%d MiB of %d", sum/mebibyte, limit/mebibyte)
		}
		if loading := 3 * a.PackageBytes(); loading > limit/limits.MemoryWorkShare {
			t.Errorf("a package takes %d MiB while it is loaded", loading/mebibyte)
		}
	}
	var none *Memory
	if none.PackageBytes() != limits.PackageBytes || none.Hold(Key{}, math.MaxInt64) != nil || !none.Fits(Key{}, math.MaxInt64) {
		t.Error("without an account something is limited")
	}
	none.Count(Key{}, 1)
}
