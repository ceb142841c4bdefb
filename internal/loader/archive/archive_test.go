package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

type entry struct {
	name, body string
	kind       byte
	link       string
}

func file(name, body string) entry { return entry{name: name, body: body, kind: tar.TypeReg} }
func dir(name string) entry        { return entry{name: name, kind: tar.TypeDir} }

func tarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Size: int64(len(e.body)), Mode: 0o644}
		require.NoError(t, w.WriteHeader(h))
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

func zstded(data []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(data, nil)
}

func unpack(layers ...[]byte) (Files, error) {
	u := NewUnpacker(Selection{})
	for _, l := range layers {
		if err := u.Layer(context.Background(), bytes.NewReader(l)); err != nil {
			return nil, err
		}
	}
	return u.Files(), nil
}

func TestLayersAreLaidOverEachOther(t *testing.T) {
	t.Parallel()
	base := []entry{
		dir("package/"), file("package/manifest.yaml", "m"), file("package/a/x", "1"), file("package/a/y", "2"), file("package/b", "3"), file("etc/passwd", "root"),
	}

	for _, test := range []struct {
		reason string
		second []entry
		want   Files
	}{
		{"a later file wins", []entry{file("package/b", "4")}, Files{"manifest.yaml": []byte("m"), "a/x": []byte("1"), "a/y": []byte("2"), "b": []byte("4")}},
		{"the last of two in one layer wins", []entry{file("package/b", "4"), file("./package//b", "5")}, Files{"manifest.yaml": []byte("m"), "a/x": []byte("1"), "a/y": []byte("2"), "b": []byte("5")}},
		{"a whiteout hides a file", []entry{file("package/.wh.b", "")}, Files{"manifest.yaml": []byte("m"), "a/x": []byte("1"), "a/y": []byte("2")}},
		{"a whiteout hides a folder", []entry{file("package/.wh.a", "")}, Files{"manifest.yaml": []byte("m"), "b": []byte("3")}},
		{"an opaque whiteout hides lower entries, not its neighbours", []entry{file("package/a/z", "9"), file("package/a/.wh..wh..opq", "")}, Files{"manifest.yaml": []byte("m"), "a/z": []byte("9"), "b": []byte("3")}},
		{"the package as a whole", []entry{file(".wh.package", "")}, Files{}},
		{"everything", []entry{file(".wh..wh..opq", ""), file("package/n", "n")}, Files{"n": []byte("n")}},
		{"metadata of aufs is ignored", []entry{file("package/.wh..wh.plnk", "")}, Files{"manifest.yaml": []byte("m"), "a/x": []byte("1"), "a/y": []byte("2"), "b": []byte("3")}},
		{"a file in place of a folder", []entry{file("package/a", "f")}, Files{"manifest.yaml": []byte("m"), "a": []byte("f"), "b": []byte("3")}},
		{"a folder in place of a file", []entry{file("package/b/c", "f")}, Files{"manifest.yaml": []byte("m"), "a/x": []byte("1"), "a/y": []byte("2"), "b/c": []byte("f")}},
	} {
		for _, compress := range []func([]byte) []byte{func(b []byte) []byte { return b }, gzipped, zstded} {
			got, err := unpack(compress(tarball(t, base...)), compress(tarball(t, test.second...)))
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v %s", test.reason, err, diff)
			}
		}
	}
}

func TestLayerSkips(t *testing.T) {
	t.Parallel()
	got, err := unpack(tarball(t,
		dir("./"), dir("/"),
		file("other/file", "x"), file("packages/x", "x"), file(`usr/lib/systemd/a\x2db`, "x"), file("etc/\xff", "x"),
		entry{name: "etc/link", kind: tar.TypeSymlink, link: "/"}, entry{name: "dev/null", kind: tar.TypeChar},
		file("package/.git/config", "x"), file("package/a/.hidden", "x"), entry{name: "package/.link", kind: tar.TypeSymlink, link: ".."},
		file("./package/keep", "k"),
	))
	if diff := cmp.Diff(Files{"keep": []byte("k")}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestLayerRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", limits.PathBytes)
	for _, test := range []struct {
		name  string
		entry entry
		kind  Kind
		want  string
	}{
		{"parent", file("../x", ""), KindEntry, `layer 1: entry "../x": the path leads out of its folder`},
		{"parent inside", file("package/../../x", ""), KindEntry, "leads out of its folder"},
		{"parent that stays", file("package/../package/x", ""), KindEntry, "leads out of its folder"},
		{"absolute package", file("/package/x", ""), KindEntry, "the path is absolute"},
		{"symbolic link", entry{name: "package/l", kind: tar.TypeSymlink, link: "/etc/passwd"}, KindEntry, `entry "package/l": it is a symbolic link. Only files and folders are read; replace it by a copy.`},
		{"package is a link", entry{name: "package", kind: tar.TypeSymlink, link: "/etc"}, KindEntry, "it is a symbolic link"},
		{"package is a file", file("package", "x"), KindEntry, "/package is a file"},
		{"hard link", entry{name: "package/l", kind: tar.TypeLink, link: "etc/passwd"}, KindEntry, "it is a hard link"},
		{"device", entry{name: "package/l", kind: tar.TypeChar}, KindEntry, "it is a device"},
		{"FIFO", entry{name: "package/l", kind: tar.TypeFifo}, KindEntry, "it is a FIFO"},
		{"backslash", file(`package\..\..\x`, ""), "", ""},
		{"backslash inside", file(`package/..\x`, ""), KindEntry, "the path has a backslash"},
		{"not UTF-8", file("package/\xff", ""), KindEntry, "the path is not UTF-8"},
		{"line end", file("package/a\nb", ""), KindEntry, "control character U+000A"},
		{"bidi control", file("package/a\u202eb", ""), KindEntry, "control character U+202E"},
		{"long path", file("package/"+long+"/x", ""), KindLimit, fmt.Sprintf("the limit is %d", limits.PathBytes)},
		{"deep path", file("package/"+strings.Repeat("a/", limits.PathDepth)+"x", ""), KindLimit, fmt.Sprintf("the limit is %d", limits.PathDepth)},
		{"large file", file("package/x", strings.Repeat("x", limits.FileBytes+1)), KindLimit, fmt.Sprintf("the file has %d bytes; the limit is %d", limits.FileBytes+1, limits.FileBytes)},
		{"whiteout without a target", file("package/.wh.", ""), KindEntry, "the whiteout names nothing"},
	} {
		_, err := unpack(tarball(t, test.entry))
		checkError(t, test.name, err, test.kind, test.want)
	}

	_, err := unpack(tarball(t, file("package/a", ""), file("package/a/b", "")))
	checkError(t, "file and folder", err, KindEntry, "it is a file and a folder in one layer")
}

func checkError(t *testing.T, name string, err error, kind Kind, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	var own *Error
	if !errors.As(err, &own) || own.Kind != kind || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q of kind %q", name, err, want, kind)
	}
}

// bomb streams n entries, or n bytes of one entry, without holding them in memory.
func bomb(compress func(io.Writer) io.WriteCloser, write func(*tar.Writer) error) io.Reader {
	r, w := io.Pipe()
	go func() {
		z := compress(w)
		err := write(tar.NewWriter(z))
		_ = z.Close()
		_ = w.CloseWithError(err)
	}()
	return r
}

func zeros(w io.Writer, n int64) error {
	block := make([]byte, 1<<20)
	for ; n > 0; n -= int64(len(block)) {
		if _, err := w.Write(block[:min(n, int64(len(block)))]); err != nil {
			return err
		}
	}
	return nil
}

func fastGzip(w io.Writer) io.WriteCloser { z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed); return z }
func fastZstd(w io.Writer) io.WriteCloser {
	z, _ := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	return z
}

func TestBombsAreRefusedInBoundedMemory(t *testing.T) {
	oneFile := func(name string, size int64) func(*tar.Writer) error {
		return func(w *tar.Writer) error {
			if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size, Format: tar.FormatPAX}); err != nil {
				return err
			}
			return zeros(w, size)
		}
	}

	files := func(name func(int) string, n, size int) func(*tar.Writer) error {
		return func(w *tar.Writer) error {
			body := make([]byte, size)
			for i := range n {
				if err := w.WriteHeader(&tar.Header{Name: name(i), Typeflag: tar.TypeReg, Size: int64(size)}); err != nil {
					return err
				}
				if _, err := w.Write(body); err != nil {
					return err
				}
			}
			return w.Close()
		}
	}

	manyFiles := func(prefix string, n, size int) func(*tar.Writer) error {
		return files(func(i int) string { return fmt.Sprintf("%s%d", prefix, i) }, n, size)
	}

	sameFile := func(name string, n, size int) func(*tar.Writer) error {
		return files(func(int) string { return name }, n, size)
	}

	for _, test := range []struct {
		name   string
		stream io.Reader
		want   string
	}{
		{"10 GB next to the package, gzip", bomb(fastGzip, oneFile("big", 10<<30)), fmt.Sprintf("more than %d bytes unpacked", limits.UnpackedBytes)},
		{"10 GB next to the package, zstd", bomb(fastZstd, oneFile("big", 10<<30)), fmt.Sprintf("more than %d bytes unpacked", limits.UnpackedBytes)},
		{"10 GB file", bomb(fastGzip, oneFile("package/big", 10<<30)), fmt.Sprintf("the limit is %d", limits.FileBytes)},
		{"a size of 2^62", bomb(fastGzip, oneFile("package/big", math.MaxInt64>>1)), fmt.Sprintf("the limit is %d", limits.FileBytes)},
		{"a million files next to the package", bomb(fastGzip, manyFiles("f", 1_000_000, 0)), fmt.Sprintf("more than %d entries", limits.ArchiveEntries)},
		{"a million files in the package", bomb(fastGzip, manyFiles("package/f", 1_000_000, 0)), fmt.Sprintf("more than %d files", limits.PackageFiles)},
		{"many files of legal size", bomb(fastGzip, manyFiles("package/f", 100, 1<<20)), fmt.Sprintf("more than %d bytes", limits.PackageBytes)},
		{"one path again and again", bomb(fastGzip, sameFile("package/f", 100, 1<<20)), fmt.Sprintf("more than %d bytes", limits.PackageBytes)},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := NewUnpacker(Selection{}).Layer(context.Background(), test.stream)
			runtime.ReadMemStats(&after)
			checkError(t, test.name, err, KindLimit, test.want)
			if grown := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && grown > 3*limits.PackageBytes {
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
		})
	}
}

func TestLayerIsCorrupt(t *testing.T) {
	t.Parallel()
	good := tarball(t, file("package/a", strings.Repeat("a", 10_000)))
	z := gzipped(good)
	for name, data := range map[string][]byte{
		"text":               []byte("this is not an archive, but long enough for a header of one"),
		"truncated tar":      good[:3000],
		"truncated gzip":     z[:len(z)-5],
		"garbage after gzip": append(bytes.Clone(z), "garbage"...),
		"gzip of gzip":       gzipped(z),
		"wrong checksum":     append(bytes.Clone(z[:len(z)-8]), 0, 0, 0, 0, 0, 0, 0, 0),
		"truncated zstd":     zstded(good)[:20],
		"zstd window":        {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00},
	} {
		_, err := unpack(data)
		checkError(t, name, err, KindCorrupt, "the layer is not a complete tar archive")
	}

	if files, err := unpack(nil, good, append(gzipped(tarball(t)), z...)); err != nil || len(files) != 1 {
		t.Error("an empty layer, or several gzip members, are valid", err)
	}
}

func TestLayerHonoursContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := NewUnpacker(Selection{}).Layer(ctx, bytes.NewReader(tarball(t))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCheckManifest(t *testing.T) {
	t.Parallel()
	layers := func(n int, d v1.Descriptor) *v1.Manifest {
		m := &v1.Manifest{}
		for range n {
			m.Layers = append(m.Layers, d)
		}
		return m
	}

	ok := v1.Descriptor{MediaType: types.DockerLayer, Size: 1}
	large, huge, negative, foreign, other := ok, ok, ok, ok, ok
	large.Size, huge.Size, negative.Size = limits.LayerBytes, 10<<30, -1
	foreign.URLs, other.MediaType = []string{"https://example.com"}, "text/plain"
	for _, test := range []struct {
		name     string
		manifest *v1.Manifest
		kind     Kind
		want     string
	}{
		{"fine", layers(2, ok), "", ""},
		{"many layers", layers(limits.ImageLayers+1, ok), KindLimit, fmt.Sprintf("the image has %d layers; the limit is %d", limits.ImageLayers+1, limits.ImageLayers)},
		{"10 GB layer", layers(1, huge), KindLimit, fmt.Sprintf("in layer 1: the layer has %d bytes; the limit is %d", 10<<30, limits.LayerBytes)},
		{"large image", layers(3, large), KindLimit, fmt.Sprintf("the limit is %d", limits.ImageBytes)},
		{"negative size", layers(1, negative), KindCorrupt, "declares -1 bytes"},
		{"foreign layer", layers(1, foreign), KindEntry, "stored outside the registry"},
		{"media type", layers(1, other), KindEntry, `the media type "text/plain"`},
	} {
		checkError(t, test.name, CheckManifest(test.manifest), test.kind, test.want)
	}
}

func TestReadFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, body string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	}

	write("manifest.yaml", "m")
	write("a/b.yaml", "b")
	write(".git/config", "x")
	write("a/.hidden", "x")
	write(".test-fixtures/case/x.yaml", "x")
	files, err := ReadFolder(dir)
	if diff := cmp.Diff(Files{"manifest.yaml": []byte("m"), "a/b.yaml": []byte("b")}, files); diff != "" || err != nil {
		t.Error(err, diff)
	}

	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	_, err = ReadFolder(dir)
	checkError(t, "link", err, KindEntry, `entry "link": it is not a regular file`)
	require.NoError(t, os.Remove(filepath.Join(dir, "link")))
	require.NoError(t, os.Truncate(filepath.Join(dir, "manifest.yaml"), limits.FileBytes+1))
	_, err = ReadFolder(dir)
	checkError(t, "large file", err, KindLimit, fmt.Sprintf("more than %d bytes", limits.FileBytes))
	if _, err := ReadFolder(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestPathOrder(t *testing.T) {
	t.Parallel()
	files := Files{"b": nil, "a.yaml": nil, "a/b/c": nil, "a/b.yaml": nil, "a-b": nil, "ab": nil}
	require.Equal(t, []string{"a/b/c", "a/b.yaml", "a-b", "a.yaml", "ab", "b"}, files.Paths())
	require.Equal(t, Files{"b/c": nil, "b.yaml": nil}, files.Below("a"))
}

// The name of an entry can have a megabyte. A whiteout that does not hide a file of the package is
// not kept.
func TestWhiteoutsBesideThePackage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		kept int
	}{{"etc/.wh.passwd", 0}, {"etc/.wh..wh..opq", 0}, {".wh.etc", 0}, {".wh.package", 1}, {".wh..wh..opq", 1}, {"package/.wh.a", 1}, {"package/a/.wh..wh..opq", 1}} {
		o := overlay{files: Files{}, dirs: map[string]bool{}, hidden: map[string]bool{}, opaque: map[string]bool{}}
		require.NoError(t, NewUnpacker(Selection{}).entry(&o, &tar.Header{Name: test.name, Typeflag: tar.TypeReg}, strings.NewReader("")))
		require.Equal(t, test.kept, len(o.hidden)+len(o.opaque), test.name)
	}
}
