package intern_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"lockstep.run/lockstep/internal/kube/intern"
)

func TestSlab(t *testing.T) {
	t.Parallel()
	var s intern.Slab[[3]int64]
	one, two := s.Put([3]int64{1}), s.Put([3]int64{2})
	if uintptr(unsafe.Pointer(two))-uintptr(unsafe.Pointer(one)) != unsafe.Sizeof(*one) {
		t.Error("what is placed one after the other has to lie beside each other")
	}
	some, more := s.All([][3]int64{{3}, {4}}), s.Put([3]int64{5})
	if some = append(some, [3]int64{6}); one[0] != 1 || two[0] != 2 || some[0][0] != 3 || some[1][0] != 4 || more[0] != 5 {
		t.Error("what was placed changed:", one, two, some, more)
	}
	if many := s.All(make([][3]int64, 5000)); len(many) != 5000 || s.All(nil) != nil {
		t.Error("as many are placed as are given")
	}
}

func TestTextSlab(t *testing.T) {
	t.Parallel()
	var s intern.TextSlab
	whole := strings.Repeat("x", 4096) + "name"
	texts := []string{s.Put(whole[4096:]), s.Put(""), s.Put("other")}
	if texts[0] != "name" || texts[1] != "" || texts[2] != "other" {
		t.Errorf("%q", texts)
	}
	if unsafe.StringData(texts[0]) == unsafe.StringData(whole[4096:]) {
		t.Error("a part of a text keeps all of it")
	}
}

// What nobody holds any more is let go, a piece at a time.
func TestSlabsAreNotKept(t *testing.T) {
	var s intern.TextSlab
	before := liveBytes()
	for n := range 100_000 {
		s.Put(fmt.Sprintf("%0100d", n))
	}
	if kept := liveBytes() - before; kept > 1<<20 {
		t.Errorf("%d bytes are kept of ten millions that nobody holds", kept)
	}
	runtime.KeepAlive(&s)
}

func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
