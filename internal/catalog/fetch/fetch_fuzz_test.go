package fetch

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// checkContent fails unless the rest of the program can handle the files or the error.
func checkContent(t *testing.T, files map[string][]byte, err error) {
	t.Helper()
	var own *Error
	if err != nil {
		if files != nil || !errors.As(err, &own) || own.Details == "" || strings.ContainsAny(err.Error(), "\x00\n\x1b") || len(err.Error()) > 4<<10 {
			t.Fatalf("%d files and the error %q", len(files), err)
		}
		return
	}

	total := 0
	for p, data := range files {
		if problem := pathProblem(p); problem != "" {
			t.Fatalf("the path %q %s", p, problem)
		}
		total += len(data)
	}

	if total > limits.RepositoryBytes || len(files) > limits.RepositoryFiles {
		t.Fatalf("%d files with %d bytes", len(files), total)
	}
}

// FuzzDownload checks any answer of a web server. It is refused with a reason, or its files have
// clean paths within the limits. Both attempts give the same result.
//
// Code: web.go, files.go, archive/selection.go, archive/plain.go
func FuzzDownload(f *testing.F) {
	archive := tarOf(f, map[string]string{"packages/a.yaml": "a", "b/c.json": "{}", "README": "r"})
	f.Add(archive, "")
	f.Add(gzipped(archive), "packages")
	f.Add([]byte("kind: x\n"), "")
	f.Add(gzipped([]byte("kind: x\n")), "")
	f.Add(tarOf(f, map[string]string{"../x.yaml": "x", "/y.yaml": "y", "a/./b.yaml": "b", "a\\c.yaml": "c"}), "a")
	f.Fuzz(func(t *testing.T, data []byte, subPath string) {
		if len(data) > 64<<10 {
			return
		}
		folder, err := cleanSubPath("http.subPath", subPath)
		if err != nil {
			checkContent(t, nil, err)
			return
		}
		file, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		if _, err := file.Write(data); err != nil {
			t.Fatal(err)
		}
		files, err := New(Options{}).unpack(context.Background(), &Source{}, file, "x.yaml", folder)
		err = fuzzed(err)
		checkContent(t, files, err)
		again, errAgain := New(Options{}).unpack(context.Background(), &Source{}, file, "x.yaml", folder)
		if (err == nil) != (errAgain == nil) || !maps.EqualFunc(files, again, bytes.Equal) || digestOf(files) != digestOf(again) {
			t.Fatalf("%v, %v, then %v, %v", files, err, again, errAgain)
		}
	})
}

// fuzzed returns the error as a user sees it.
func fuzzed(err error) error {
	if err == nil {
		return nil
	}
	return typed(context.Background(), classify(context.Background(), "http", credentials{}, err))
}

// packed is an object of a pack, with the bytes before its data.
type packed struct {
	kind   plumbing.ObjectType
	before []byte
	data   []byte
}

func hashOf(o packed) string { return plumbing.ComputeHash(o.kind, o.data).String() }

// packOf writes a pack with its checksum.
func packOf(objects ...packed) []byte {
	b := bytes.NewBufferString("PACK")
	_ = binary.Write(b, binary.BigEndian, []uint32{2, uint32(len(objects))})
	for _, o := range objects {
		head, n := byte(o.kind)<<4|byte(len(o.data)&15), len(o.data)>>4
		for ; n > 0; n >>= 7 {
			b.WriteByte(head | 0x80)
			head = byte(n & 0x7f)
		}
		b.WriteByte(head)
		b.Write(o.before)
		z := zlib.NewWriter(b)
		_, _ = z.Write(o.data)
		_ = z.Close()
	}

	sum := sha1.Sum(b.Bytes())
	return append(b.Bytes(), sum[:]...)
}

// bombPack has an object that declares 8 bytes and decompresses to 256 MiB.
func bombPack() []byte {
	b := bytes.NewBufferString("PACK\x00\x00\x00\x02\x00\x00\x00\x01")
	b.WriteByte(byte(plumbing.BlobObject)<<4 | 8)
	z, _ := zlib.NewWriterLevel(b, zlib.BestSpeed)
	for zeros := make([]byte, 1<<20); b.Len() < 256<<10; {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	sum := sha1.Sum(b.Bytes())
	return append(b.Bytes(), sum[:]...)
}

func treeOf(entries ...string) packed {
	var b bytes.Buffer
	for i := 0; i < len(entries); i += 3 {
		hash, _ := hex.DecodeString(entries[i+2])
		b.WriteString(entries[i] + " " + entries[i+1] + "\x00")
		b.Write(hash)
	}
	return packed{kind: plumbing.TreeObject, data: b.Bytes()}
}

func commitOf(tree packed) packed {
	return packed{kind: plumbing.CommitObject, data: []byte("tree " + hashOf(tree) + "\n\nx\n")}
}

// copyDelta is an object that copies its base, referenced by hash.
func copyDelta(base packed, size int) packed {
	hash, _ := hex.DecodeString(hashOf(base))
	sizes := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(base.data))), uint64(size))
	for range size / max(1, len(base.data)) {
		sizes = append(sizes, 0x90, byte(len(base.data)))
	}
	return packed{kind: plumbing.REFDeltaObject, before: hash, data: sizes}
}

func packs() map[string][]byte {
	blob := packed{kind: plumbing.BlobObject, data: []byte("kind: x\n")}
	double := packed{kind: plumbing.BlobObject, data: []byte("kind: x\nkind: x\n")}
	flat := treeOf("100644", "a.yaml", hashOf(blob), "100644", "b.yaml", hashOf(double))
	up := treeOf("100644", "..", hashOf(blob))
	slash := treeOf("100644", "../../etc/x.yaml", hashOf(blob))
	link := treeOf("120000", "a.yaml", hashOf(blob), "160000", "sub", hashOf(blob), "100644", "c.yaml", hashOf(blob))
	deep := flat
	wide := []packed{flat, blob, double}
	for range 20 {
		deep = treeOf("40000", "a", hashOf(deep), "40000", "b", hashOf(deep))
		wide = append(wide, deep)
	}

	lying := copyDelta(blob, 0)
	lying.data = binary.AppendUvarint(lying.data[:1], 1<<30)
	widest := packed{kind: plumbing.TreeObject, data: bytes.Repeat(treeOf("100644", "a", hashOf(blob)).data, limits.RepositoryEntries+1)}
	return map[string][]byte{
		"plain":     packOf(blob, double, flat, commitOf(flat)),
		"delta":     packOf(copyDelta(blob, 16), commitOf(flat), flat, blob),
		"up":        packOf(blob, up, commitOf(up)),
		"slash":     packOf(blob, slash, commitOf(slash)),
		"link":      packOf(blob, link, commitOf(link)),
		"tree bomb": packOf(append(wide, commitOf(deep))...),
		"lying":     packOf(blob, lying),
		"bomb":      bombPack(),
		"wide tree": packOf(blob, widest, commitOf(widest)),
		"missing":   packOf(commitOf(flat)),
		"truncated": packOf(blob, double)[:40],
		"empty":     packOf(),
	}
}

// checkoutAny reads the files of the first commit of a pack.
func checkoutAny(data []byte) (map[string][]byte, error) {
	objects, err := readPack(context.Background(), bytes.NewReader(data), 0, limits.GitBytes)
	if err != nil {
		return nil, err
	}
	first := strings.Repeat("0", 40)
	for hash, object := range objects.objects {
		if object.kind == plumbing.CommitObject && hash > first {
			first = hash
		}
	}
	files, err := objects.checkout(context.Background(), first, "")
	return files, err
}

// Forbidden contents of a pack are refused within bounds. A delta can come before its base.
func TestPacks(t *testing.T) {
	t.Parallel()
	packs := packs()
	for name, want := range map[string]string{
		"plain": "", "delta": "", "link": "",
		"up":        `a folder of the commit has an entry with the name ".."`,
		"slash":     `a folder of the commit has an entry with the name "../../etc/x.yaml"`,
		"tree bomb": "the commit has more than 300000 files and folders. Keep packages in a repository of their own.",
		"lying":     "the files of the commit have more than 67108864 bytes, the limit",
		"bomb":      "the answer of the server cannot be read: ",
		"wide tree": "the commit has more than 300000 files and folders",
		"missing":   "is missing",
		"truncated": "the answer of the server cannot be read: ",
		"empty":     "is missing",
	} {
		files, err := checkoutAny(packs[name])
		if want != "" {
			checkContent(t, files, fuzzed(err))
			require.ErrorContains(t, err, want, name)
			continue
		}
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An object that exceeds the size of any file is not kept in memory. It is refused only if it is
// read.
func TestLargeObjectsOfPacks(t *testing.T) {
	t.Parallel()
	blob := packed{kind: plumbing.BlobObject, data: []byte("kind: x\n")}
	large := packed{kind: plumbing.BlobObject, data: make([]byte, limits.FileBytes+1)}
	for name, wrong := range map[string]bool{"asset.bin": false, "b.yaml": true} {
		tree := treeOf("100644", "a.yaml", hashOf(blob), "100644", name, hashOf(large))
		objects, err := readPack(t.Context(), bytes.NewReader(packOf(blob, large, tree, commitOf(tree))), 0, limits.GitBytes)
		require.NoError(t, err)
		if object, ok := objects.objects[hashOf(large)]; !ok || object.data != nil {
			t.Errorf("%s: %d bytes are kept of it, %t", name, len(object.data), ok)
		}
		files, err := objects.checkout(t.Context(), hashOf(commitOf(tree)), "")
		if wrong != (err != nil) || !wrong && len(files) != 1 {
			t.Errorf("%s: %d files, %v", name, len(files), err)
		}
	}

	tree := packed{kind: plumbing.TreeObject, data: large.data}
	if _, err := readPack(t.Context(), bytes.NewReader(packOf(tree)), 0, limits.GitBytes); err == nil || !strings.Contains(err.Error(), "other than a file has 16777217 bytes") {
		t.Errorf("a large tree: %v", err)
	}
}

// FuzzPack checks any pack. It is refused with a reason, or its files have clean paths within the
// limits.
//
// Code: gitpack.go
func FuzzPack(f *testing.F) {
	for name, data := range packs() {
		if len(data) <= 16<<10 && name != "tree bomb" {
			f.Add(data)
		}
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 16<<10 {
			return
		}
		files, err := checkoutAny(data)
		checkContent(t, files, fuzzed(err))
		// The checksum is corrected because it would hide the rest.
		if len(data) > 20 {
			sum := sha1.Sum(data[:len(data)-20])
			files, err = checkoutAny(append(data[:len(data)-20:len(data)-20], sum[:]...))
			checkContent(t, files, fuzzed(err))
		}
	})
}

// answers is a server that sends texts in turn.
type answers struct{ texts []string }

func (a *answers) next() (io.ReadCloser, error) {
	if len(a.texts) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	text := a.texts[0]
	a.texts = a.texts[1:]
	return io.NopCloser(strings.NewReader(text)), nil
}

func (a *answers) advertise(context.Context) (io.ReadCloser, error) { return a.next() }
func (a *answers) request(context.Context, []byte) (io.ReadCloser, error) {
	return a.next()
}
func (a *answers) close() {}

// FuzzGitAnswers checks any answers of a git server. The session ends with an error of one line, or
// with references to commits and a pack.
//
// Code: gitprotocol.go
func FuzzGitAnswers(f *testing.F) {
	commit := strings.Repeat("1", 40)
	f.Add(packet("# service=git-upload-pack")+"0000"+packet("version 2")+packet("ls-refs")+packet("fetch=shallow filter")+"0000",
		packet("%s refs/tags/v1 peeled:%s", commit, commit)+"0000", packet("shallow-info")+"0001"+packet("packfile")+packet("\x01PACK")+"0000")
	f.Add(packet("%s HEAD\x00shallow side-band-64k", commit)+packet("%s refs/tags/v1^{}", commit)+"0000", packet("NAK")+packet("\x02x")+packet("\x03no"), "")
	f.Add(packet("%s HEAD shallow side-band-64k", commit)+"0000", "", "") // no NUL before the capabilities
	f.Add(packet("ERR no\x1b"), "0003", "ffff")
	f.Fuzz(func(t *testing.T, first, second, third string) {
		g, err := beginGit(context.Background(), &answers{[]string{first, second, third}})
		if err != nil {
			checkContent(t, nil, fuzzed(err))
			return
		}
		refs, err := g.refs(context.Background(), []string{"HEAD"})
		if err != nil {
			checkContent(t, nil, fuzzed(err))
			return
		}
		for name, commit := range refs {
			if !isCommit(commit) || strings.Contains(name, " ") {
				t.Fatalf("%q: %q", name, commit)
			}
		}
		if err := g.fetch(context.Background(), strings.Repeat("1", 40), io.Discard); err != nil {
			checkContent(t, nil, fuzzed(err))
		}
	})
}
