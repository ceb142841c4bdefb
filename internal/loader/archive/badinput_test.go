package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// raw writes one header with fields that tar.Writer would not write.
func raw(change func(block []byte), body string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "package/a", Typeflag: tar.TypeReg, Size: int64(len(body)), Mode: 0o644, Format: tar.FormatUSTAR})
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	data := b.Bytes()
	change(data[:512])
	copy(data[148:156], "        ")
	sum := 0
	for _, c := range data[:512] {
		sum += int(c)
	}

	copy(data[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return data
}

func withSize(size string) func([]byte) {
	return func(block []byte) { copy(block[124:136], size) }
}

// extended writes a file with a name, size or content that a PAX record overrides.
func extended(t *testing.T, records map[string]string, body string) []byte {
	t.Helper()
	var text strings.Builder
	for key, value := range records {
		for n := len(key) + len(value) + 3; ; n++ {
			if line := fmt.Sprintf("%d %s=%s\n", n, key, value); len(line) == n {
				text.WriteString(line)
				break
			}
		}
	}

	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: int64(text.Len()), Format: tar.FormatUSTAR}))
	_, err := io.WriteString(w, text.String())
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	header := b.Bytes()
	header[156] = tar.TypeXHeader
	copy(header[148:156], "        ")
	sum := 0
	for _, c := range header[:512] {
		sum += int(c)
	}

	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return append(bytes.Clone(header), tarball(t, file("package/a", body))...)
}

// The rows A of the checklist of bad input (docs/development/invariants.md): each is
// refused with a reason, or changes nothing.
func TestBadInput(t *testing.T) {
	long, deep := strings.Repeat("x", 4<<10), strings.Repeat("d/", 10_000)
	plain := tarball(t, file("package/a", "body"))
	for _, test := range []struct {
		name  string
		layer []byte
		kind  Kind
		// want is part of the error. If it is empty, the layer is read, and files are the result.
		want  string
		files Files
	}{
		{"A1 path leads out", tarball(t, file("../x", "")), KindEntry, "the path leads out of its folder", nil},
		{"A1 path leads out from within", tarball(t, file("a/../../x", "")), KindEntry, "the path leads out of its folder", nil},
		{"A1 path leads out of the package", tarball(t, file("package/../x", "")), KindEntry, "the path leads out of its folder", nil},
		{"A1 absolute", tarball(t, file("/package/x", "")), KindEntry, "the path is absolute", nil},
		{"A1 absolute outside of the package", tarball(t, file("/etc/x", ""), file("package/a", "")), "", "", Files{"a": {}}},
		{"A1 drive", tarball(t, file(`C:\x`, ""), file("package/a", "")), "", "", Files{"a": {}}},
		{"A1 drive in the package", tarball(t, file(`package/C:\x`, "")), KindEntry, "the path has a backslash", nil},
		{"A1 backslash leads out", tarball(t, file(`package/..\x`, "")), KindEntry, "the path has a backslash", nil},
		{"A1 dot", tarball(t, file(".", "")), "", "", Files{}},
		{"A1 two dots", tarball(t, file("..", "")), KindEntry, "the path leads out of its folder", nil},
		{"A1 no name", raw(func(block []byte) { clear(block[:100]) }, ""), "", "", Files{}},
		{"A1 4 KiB", tarball(t, file("package/"+long, "")), KindLimit, fmt.Sprintf("the limit is %d", limits.PathBytes), nil},
		{"A1 not UTF-8", tarball(t, file("package/\xff", "")), KindEntry, "the path is not UTF-8", nil},
		{"A1 NUL", extended(t, map[string]string{"path": "package/a\x00b"}, ""), KindCorrupt, "not a complete tar archive", nil},
		{"A1 dot at the end", tarball(t, file("package/a./b", "")), KindEntry, "ends with a dot or a space", nil},
		{"A1 space at the end", tarball(t, file("package/a ", "")), KindEntry, "ends with a dot or a space", nil},
		{"A2 symbolic link", tarball(t, entry{name: "package/l", kind: tar.TypeSymlink, link: "/etc"}), KindEntry, "it is a symbolic link", nil},
		{"A2 file through a link", tarball(t, entry{name: "package", kind: tar.TypeSymlink, link: "/etc"}, file("package/passwd", "")), KindEntry, "it is a symbolic link", nil},
		{"A2 link next to the package", tarball(t, entry{name: "l", kind: tar.TypeSymlink, link: "package"}, file("l/a", "x")), "", "", Files{}},
		{"A2 chain of links", tarball(t, entry{name: "package/a", kind: tar.TypeSymlink, link: "b"}, entry{name: "package/b", kind: tar.TypeSymlink, link: "a"}), KindEntry, "it is a symbolic link", nil},
		{"A2 hard link", tarball(t, entry{name: "package/l", kind: tar.TypeLink, link: "../etc/passwd"}), KindEntry, "it is a hard link", nil},
		{"A2 character device", tarball(t, entry{name: "package/l", kind: tar.TypeChar}), KindEntry, "it is a device", nil},
		{"A2 block device", tarball(t, entry{name: "package/l", kind: tar.TypeBlock}), KindEntry, "it is a device", nil},
		{"A2 FIFO", tarball(t, entry{name: "package/l", kind: tar.TypeFifo}), KindEntry, "it is a FIFO", nil},
		{"A2 socket", raw(func(block []byte) { block[156] = 's' }, ""), KindEntry, "it is a special entry", nil},
		{"A2 setuid and mode 000", raw(func(block []byte) { copy(block[100:108], "0004000\x00") }, "x"), "", "", Files{"a": []byte("x")}},
		{"A3 same path twice", tarball(t, file("package/a", "1"), file("package/a", "2")), "", "", Files{"a": []byte("2")}},
		{"A3 twins by case", tarball(t, file("package/a", "1"), file("package/A", "2")), "", "", Files{"a": []byte("1"), "A": []byte("2")}},
		{"A3 twins in Unicode", tarball(t, file("package/\u00e9", "1"), file("package/e\u0301", "2")), "", "", Files{"\u00e9": []byte("1"), "e\u0301": []byte("2")}},
		{"A3 whiteout without a target", tarball(t, file("package/.wh...", "")), KindEntry, "the whiteout names nothing", nil},
		{"A4 nested gzip", gzipped(gzipped(plain)), KindCorrupt, "not a complete tar archive", nil},
		{"A4 trailing garbage", append(gzipped(plain), "garbage"...), KindCorrupt, "not a complete tar archive", nil},
		{"A4 truncated", gzipped(plain)[:40], KindCorrupt, "not a complete tar archive", nil},
		{"A4 members one after the other", append(gzipped(plain[:512]), gzipped(plain[512:])...), "", "", Files{"a": []byte("body")}},
		{"A5 negative size", raw(withSize("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ""), KindCorrupt, "not a complete tar archive", nil},
		{"A5 size of 2^63", raw(withSize("\x80\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00"), ""), KindCorrupt, "not a complete tar archive", nil},
		{"A5 size above the body", raw(withSize("00000777777\x00"), "x"), KindCorrupt, "not a complete tar archive", nil},
		{"A5 size below the body", raw(withSize("00000000001\x00"), strings.Repeat("x", 2000)), KindCorrupt, "not a complete tar archive", nil},
		{"A5 PAX path", extended(t, map[string]string{"path": "../x"}, ""), KindEntry, "the path leads out of its folder", nil},
		{"A5 PAX size", extended(t, map[string]string{"size": "9223372036854775807"}, "x"), KindLimit, fmt.Sprintf("the limit is %d", limits.FileBytes), nil},
		{"A5 sparse file", extended(t, map[string]string{"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": "1099511627776", "GNU.sparse.map": "0,1", "GNU.sparse.numblocks": "1"}, "x"), KindLimit, fmt.Sprintf("the limit is %d", limits.FileBytes), nil},
		{"A5 GNU long name", tarball(t, entry{name: "package/" + strings.Repeat("y", limits.PathBytes+1), kind: tar.TypeReg}), KindLimit, fmt.Sprintf("the limit is %d", limits.PathBytes), nil},
		{"A6 deep folders", tarball(t, file("package/"+deep[:2*limits.PathDepth]+"x", "")), KindLimit, fmt.Sprintf("the limit is %d", limits.PathDepth), nil},
		{"A6 10,000 folders deep", tarball(t, file("package/"+deep+"x", "")), KindLimit, "the limit is", nil},
		{"A6 no package folder", tarball(t, file("etc/passwd", "")), "", "", Files{}},
		{"A6 empty image", nil, "", "", Files{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := unpack(test.layer)
			checkError(t, test.name, err, test.kind, test.want)
			require.Equal(t, test.files, got)
		})
	}

	t.Run("A3 whiteouts over layers", func(t *testing.T) {
		got, err := unpack(tarball(t, file("package/a", "1"), file("package/d/b", "2")), tarball(t, file("package/.wh.a", ""), file("package/d/.wh..wh..opq", "")))
		if len(got) != 0 || err != nil {
			t.Error(got, err)
		}
	})

	t.Run("A4 bomb in a bomb", func(t *testing.T) {
		var inner bytes.Buffer
		z := fastGzip(&inner)
		require.NoError(t, zeros(z, 200<<20))
		require.NoError(t, z.Close())
		_, err := unpack(gzipped(inner.Bytes()))
		checkError(t, "a bomb in a bomb", err, KindCorrupt, "not a complete tar archive")
	})

	t.Run("A4 wrong media type", func(t *testing.T) {
		if err := CheckManifest(&v1.Manifest{Layers: []v1.Descriptor{{MediaType: types.OCILayerZStd, Size: 1}}}); err != nil {
			t.Error(err)
		}
		if got, err := unpack(gzipped(plain), zstded(plain)); err != nil || len(got) != 1 {
			t.Error("the first bytes decide about the compression, not the media type:", err)
		}
	})

	t.Run("A6 10,000 layers", func(t *testing.T) {
		layers := make([][]byte, 10_000)
		for i := range layers {
			layers[i] = plain
		}
		_, err := unpack(layers...)
		checkError(t, "layers", err, KindLimit, fmt.Sprintf("more than %d layers", limits.ImageLayers))
	})

	// A million files, 1 GiB in one file and bombs of 10 GB are in
	// TestBombsAreRefusedInBoundedMemory, which measures.
	t.Run("A6 1 GiB in one file", func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := NewUnpacker(Selection{}).Layer(context.Background(), bomb(fastGzip, func(w *tar.Writer) error {
			if err := w.WriteHeader(&tar.Header{Name: "package/a", Typeflag: tar.TypeReg, Size: 1 << 30}); err != nil {
				return err
			}
			return zeros(w, 1<<30)
		}))
		runtime.ReadMemStats(&after)
		checkError(t, "1 GiB", err, KindLimit, fmt.Sprintf("the file has %d bytes; the limit is %d", 1<<30, limits.FileBytes))
		if after.HeapSys > before.HeapSys+3*limits.FileBytes {
			t.Errorf("the heap grew by %d MiB", (after.HeapSys-before.HeapSys)>>20)
		}
	})
}
