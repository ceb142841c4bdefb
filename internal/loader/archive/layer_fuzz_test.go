package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
)

// checkOutcome fails unless the rest of the program can handle the files or the error.
func checkOutcome(t *testing.T, files Files, err error) {
	t.Helper()
	var own *Error
	if err != nil {
		if files != nil || !errors.As(err, &own) || own.Kind == "" || own.Details == "" {
			t.Fatalf("%d files and the error %#v", len(files), err)
		}
		return
	}

	total := 0
	for p, data := range files {
		total += len(data)
		segments := strings.Split(p, "/")
		dotted := slices.ContainsFunc(segments, func(s string) bool { return s == "" || s[0] == '.' })
		if dotted || strings.ContainsAny(p, "\\\x00\n\x1b") || len(p) > limits.PathBytes || len(segments) > limits.PathDepth {
			t.Fatalf("the path %q", p)
		}
		for dir := parent(p); dir != ""; dir = parent(dir) {
			if _, ok := files[dir]; ok {
				t.Fatalf("%q is a file and a folder", dir)
			}
		}
	}

	if len(files) > limits.PackageFiles || total > limits.PackageBytes {
		t.Fatalf("%d files of %d bytes", len(files), total)
	}
}

// FuzzLayer checks that any layer is refused with a reason, or its files have clean paths within
// the limits. Reading it twice, or over itself, gives the same result.
//
// Code: layer.go, name.go
func FuzzLayer(f *testing.F) {
	plain := tarball(f, dir("package/"), file("package/a/b", "1"), file("package/.wh.c", ""), file("etc/passwd", "x"))
	f.Add(plain)
	f.Add(gzipped(plain))
	f.Add(zstded(plain))
	f.Add(tarball(f, entry{name: "package/l", kind: tar.TypeSymlink, link: "../../etc/passwd"}))
	f.Add(tarball(f, file("package/"+strings.Repeat("long/", 30)+"x", "x"), file("package/ü", "x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		files, err := unpack(data)
		checkOutcome(t, files, err)
		again, errAgain := unpack(data, data)
		var limit *Error
		if errors.As(errAgain, &limit) && limit.Kind == KindLimit {
			return // both layers count
		}
		if err == nil && (errAgain != nil || !maps.EqualFunc(files, again, bytes.Equal)) {
			t.Fatalf("twice over itself: %v, %v, then %v, %v", files, err, again, errAgain)
		}
		if err != nil && (errAgain == nil || err.Error() != errAgain.Error()) {
			t.Fatalf("%v, then %v", err, errAgain)
		}
	})
}

// script writes the layers that a text describes. A line with = starts the next layer; other lines
// are the type of an entry and its name. The content of a file is its name.
func script(text string) (layers [][]byte, names map[string]bool, special bool) {
	names = map[string]bool{}
	types := map[byte]byte{'f': tar.TypeReg, 'd': tar.TypeDir, 's': tar.TypeSymlink, 'h': tar.TypeLink, 'c': tar.TypeChar, 'p': tar.TypeFifo}
	var b *bytes.Buffer
	var w *tar.Writer
	next := func() {
		if w != nil {
			_ = w.Close()
			layers = append(layers, b.Bytes())
		}
		b = &bytes.Buffer{}
		w = tar.NewWriter(b)
	}

	next()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) < 2 {
			if line == "=" {
				next()
			}
			continue
		}
		kind, ok := types[line[0]]
		if !ok {
			continue
		}
		name := line[1:]
		h := &tar.Header{Name: name, Typeflag: kind, Linkname: "/etc/passwd", Mode: 0o777}
		if kind == tar.TypeReg {
			h.Linkname, h.Size = "", int64(len(name))
		}
		if w.WriteHeader(h) != nil {
			continue
		}
		if kind == tar.TypeReg {
			_, _ = io.WriteString(w, name)
			names[name] = true
		}
		at, err := locate(1, name, root)
		special = special || err == nil && at.inside && !isDotted(at.path) && kind != tar.TypeReg && kind != tar.TypeDir
	}

	next()
	return layers, names, special
}

// FuzzEntries lays entries of files, folders, links and whiteouts over each other in any order.
// Every file in the result was in a layer, with its content and under its name. A package with a
// link or a device is refused.
//
// Code: layer.go, name.go
func FuzzEntries(f *testing.F) {
	for _, seed := range []string{
		"fpackage/a\nfpackage/b/c\n=\nfpackage/.wh.a\nfpackage/b",
		"dpackage\nfpackage/a/b\n=\nfpackage/a/.wh..wh..opq\nfpackage/a/c",
		"f./package//x\nfpackage/../x\nf/package/x\nfpackage/x/",
		"spackage/l\nfpackage/l/x", "hpackage/h", "cpackage/c\nppackage/p", "spackage", "fpackage", "f.wh.package\nfetc/x",
		"fpackage/a\nfpackage/a/b", "fpackage/.git/x\nfpackage/x/.y/z", "fpackage/a\u202eb", `fpackage/a\b`,
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			return
		}
		layers, names, special := script(text)
		files, err := unpack(layers...)
		checkOutcome(t, files, err)
		if special && err == nil {
			t.Fatalf("a special entry was taken: %v", files)
		}
		for p, data := range files {
			at, err := locate(1, string(data), root)
			if !names[string(data)] || err != nil || at.path != root+"/"+p {
				t.Fatalf("%q holds %q, %v", p, data, err)
			}
		}
		if again, errAgain := unpack(layers...); (err == nil) != (errAgain == nil) || !maps.EqualFunc(files, again, bytes.Equal) {
			t.Fatalf("%v, %v, then %v, %v", files, err, again, errAgain)
		}
	})
}
