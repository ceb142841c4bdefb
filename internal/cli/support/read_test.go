package support_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/cli/support"
	"lockstep.run/lockstep/internal/limits"
)

// entry is a file of an archive that is written by hand.
type entry struct {
	name string
	kind byte
	size int64
	text io.Reader
}

func file(name, text string) entry {
	return entry{name, tar.TypeReg, int64(len(text)), strings.NewReader(text)}
}

// packed streams an archive, which may be larger than the memory.
func packed(t *testing.T, entries ...entry) io.Reader {
	t.Helper()
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = reader.Close() })
	go func() {
		zipped := gzip.NewWriter(writer)
		archive := tar.NewWriter(zipped)
		for _, e := range entries {
			head := &tar.Header{Name: e.name, Typeflag: e.kind, Size: e.size, Mode: 0o644, ModTime: time.Unix(1, 0), Linkname: map[bool]string{true: "/etc/passwd"}[e.kind != tar.TypeReg]}
			if archive.WriteHeader(head) != nil {
				break
			}
			if _, err := io.Copy(archive, e.text); err != nil {
				break
			}
		}
		_ = archive.Close()
		_ = zipped.Close()
		_ = writer.Close()
	}()
	return reader
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// An archive of a stranger is refused as soon as it is larger, or another thing, than what support writes. It measures
// allocations, hence it does not run beside other tests.
func TestHostileArchives(t *testing.T) {
	contents := func() entry { return file("support/CONTENTS.txt", "x") }
	list := func(items string) string { return `{"items":[` + items + `]}` }
	for name, test := range map[string]struct {
		entries []entry
		want    string
	}{
		"a file of 40 GiB":          {[]entry{contents(), {"support/objects/package.json", tar.TypeReg, 40 << 30, io.LimitReader(endless('x'), 40<<30)}}, "none, or too large"},
		"many files of 4 MiB":       {append([]entry{contents()}, large(500)...), "which such archives do not have"},
		"many small files":          {append([]entry{contents()}, small(limits.ArchiveFiles+10)...), "which such archives do not have"},
		"values that grow":          {[]entry{contents(), file("support/logs/a", strings.Repeat(",", 2_100_000)), file("support/logs/b", strings.Repeat(",", 2_100_000))}, "which such archives do not have"},
		"a link":                    {[]entry{contents(), {"support/objects/package.json", tar.TypeSymlink, 0, strings.NewReader("")}}, "none, or too large"},
		"the same file twice":       {[]entry{contents(), file("support/a", ""), file("support/a", "")}, "twice"},
		"lists within lists":        {[]entry{contents(), file("support/objects/package.json", list(strings.Repeat("[", 200_000)+strings.Repeat("]", 200_000)))}, "no JSON"},
		"an object without a name":  {[]entry{contents(), file("support/objects/package.json", list(`{"apiVersion":"v1","kind":"Package"}`))}, "an object in it is none"},
		"an object that is a text":  {[]entry{contents(), file("support/objects/package.json", list(`"x"`))}, "an object in it is none"},
		"another archive":           {[]entry{file("a", "")}, "no CONTENTS.txt"},
		"a name that is a path out": {[]entry{contents(), file("../../support/objects/package.json", list(`{"apiVersion":"v1","kind":"Package"}`))}, ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := support.Read(packed(t, test.entries...))
		runtime.ReadMemStats(&after)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		case after.TotalAlloc-before.TotalAlloc > 400<<20:
			t.Errorf("%s: %d MiB were allocated", name, (after.TotalAlloc-before.TotalAlloc)>>20)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := support.Read(holes(t, 100))
	if runtime.ReadMemStats(&after); err == nil || !strings.Contains(err.Error(), "none, or too large") || after.TotalAlloc-before.TotalAlloc > 400<<20 {
		t.Errorf("files of holes: got %v, %d MiB were allocated", err, (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	if _, err := support.Read(bytes.NewReader([]byte("PK\x03\x04"))); err == nil {
		t.Error("a zip file is read")
	}
}

// holes is an archive of n sparse files of 8 MiB, each of which takes some hundred bytes of the stream. The writer of archive/tar
// makes none, so that their PAX records are written as an entry of their own.
func holes(t *testing.T, n int) io.Reader {
	t.Helper()
	var stream bytes.Buffer
	write := func(name string, kind byte, text string) {
		var one bytes.Buffer
		archive := tar.NewWriter(&one)
		err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644, ModTime: time.Unix(1, 0), Format: tar.FormatUSTAR})
		if err == nil {
			_, err = archive.Write([]byte(text))
		}
		if err == nil {
			err = archive.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		raw := one.Bytes()
		raw[156] = kind
		copy(raw[148:156], "        ") // the checksum counts itself as spaces
		sum := 0
		for _, b := range raw[:512] {
			sum += int(b)
		}
		copy(raw[148:156], fmt.Sprintf("%06o\x00 ", sum))
		stream.Write(raw)
	}
	record := func(key, value string) string {
		size := len(key) + len(value) + 3 // and the digits of the size itself, which are two
		return fmt.Sprintf("%d %s=%s\n", size+2, key, value)
	}
	write("support/CONTENTS.txt", tar.TypeReg, "x")
	for i := range n {
		name := fmt.Sprintf("support/logs/%d", i)
		write("pax", tar.TypeXHeader, record("GNU.sparse.major", "1")+record("GNU.sparse.minor", "0")+record("GNU.sparse.name", name)+
			record("GNU.sparse.realsize", fmt.Sprint(support.MaxFileBytes+limits.ArchiveOverhead)))
		write(name, tar.TypeReg, "0\n"+strings.Repeat("\x00", 510)) // no part of it is data
	}
	var zipped bytes.Buffer
	to := gzip.NewWriter(&zipped)
	if _, err := stream.WriteTo(to); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return &zipped
}

func large(n int) (all []entry) {
	for i := range n {
		all = append(all, entry{fmt.Sprintf("support/logs/%d", i), tar.TypeReg, support.MaxFileBytes, io.LimitReader(endless('x'), support.MaxFileBytes)})
	}
	return all
}

func small(n int) (all []entry) {
	for i := range n {
		all = append(all, file(fmt.Sprintf("support/logs/%d", i), "x"))
	}
	return all
}
