package intern_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"lockstep.run/lockstep/internal/kube/intern"
	"lockstep.run/lockstep/internal/limits"
)

// content returns new memory with the n-th content.
func content(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%08d", n), 16) }

func TestBytes(t *testing.T) {
	t.Parallel()
	var s intern.Bytes
	first := s.Of(content(1))
	again, other, short := s.Of(content(1)), s.Of(content(2)), []byte("short")
	if &first[0] != &again[0] {
		t.Error("equal content has to use the same memory")
	}
	if !bytes.Equal(first, content(1)) || !bytes.Equal(other, content(2)) {
		t.Error("the content changed")
	}
	if &s.Of(short)[0] != &short[0] || len(s.Of(nil)) != 0 {
		t.Error("what is short is returned as it is")
	}
}

// What nobody holds any more is not kept here, and its place is used again.
func TestBytesAreNotKept(t *testing.T) {
	var s intern.Bytes
	kept := s.Of(content(0))
	var freed atomic.Int32
	for n := range 5000 {
		b := s.Of(content(n + 1))
		runtime.AddCleanup(&b[0], func(int) { freed.Add(1) }, 0)
		if n%1000 == 999 {
			runtime.GC()
		}
	}
	for range 100 {
		runtime.GC()
		if again := s.Of(content(0)); &again[0] != &kept[0] {
			t.Fatal("what is held was forgotten")
		}
		if freed.Load() >= 4000 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d of 5000 were let go", freed.Load())
}

func TestTexts(t *testing.T) {
	t.Parallel()
	var s intern.Texts
	whole := strings.Repeat("x", 4096) + "Available"
	first, again := s.Of(whole[4096:]), s.Of(strings.Clone("Available"))
	if first != "Available" || unsafe.StringData(first) != unsafe.StringData(again) {
		t.Errorf("%q and %q have to be the same text", first, again)
	}
	if unsafe.StringData(first) == unsafe.StringData(whole[4096:]) {
		t.Error("a part of a text keeps all of it")
	}
	if long := strings.Repeat("y", limits.SharedTextBytes+1); unsafe.StringData(s.Of(long)) != unsafe.StringData(long) {
		t.Error("a long text is returned as it is")
	}
	for n := range 3 * limits.SharedTexts {
		if text := fmt.Sprint(n); s.Of(text) != text {
			t.Fatalf("%s changed", text)
		}
	}
}
