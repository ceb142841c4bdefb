package measure

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestParallel(t *testing.T) {
	t.Parallel()
	var done [100]atomic.Int32
	if err := parallel(7, len(done), func(_, i int) error { done[i].Add(1); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range done {
		if n := done[i].Load(); n != 1 {
			t.Errorf("%d was done %d times", i, n)
		}
	}
	stop := errors.New("stop")
	if err := parallel(3, 1000, func(_, i int) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the first error", err)
	}
}
