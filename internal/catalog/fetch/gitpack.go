package fetch

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
)

// gitObjects are the objects of a pack, by their hashes in hex.
type gitObjects struct {
	objects map[string]gitObject
	// offsets are the objects by their offset in the pack.
	offsets map[int64]gitObject
	// waiting are deltas whose base has not been read yet, by the hash or offset of the base.
	waiting map[any][]delta
	bytes   int64
	// limit is the limit of bytes, and exceeded the error beyond it.
	limit    int64
	exceeded error
}

// gitObject is an object. It has no data if it exceeds the size of a file.
type gitObject struct {
	kind  plumbing.ObjectType
	data  []byte
	large bool
}

// delta is an object that is stored as a difference to another one.
type delta struct {
	offset int64
	data   []byte
}

// readPack reads a pack. It hashes every object, so that a commit leads to exactly the objects it
// names. It reads within room bytes or, if room is zero, up to limit bytes.
func readPack(ctx context.Context, r io.ReadSeeker, room, limit int64) (*gitObjects, error) {
	o := &gitObjects{objects: map[string]gitObject{}, offsets: map[int64]gitObject{}, waiting: map[any][]delta{}, limit: limit, exceeded: gitLimit(limit)}
	if room > 0 {
		o.limit, o.exceeded = room, archive.ErrRoom
	}

	scanner := packfile.NewScanner(r)
	_, n, err := scanner.Header()
	if err != nil {
		return nil, gitDamaged("%v", err)
	}
	if n > limits.GitObjects {
		return nil, permanent("Keep packages in a repository of their own, or serve an archive.", "the commit has %d objects; the limit is %d", n, limits.GitObjects)
	}

	for range n {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := o.readObject(scanner); err != nil {
			return nil, err
		}
	}

	if _, err := scanner.Checksum(); err != nil {
		return nil, gitDamaged("%v", err)
	}

	return o, nil
}

// readObject reads the next object of the pack. Its declared size is counted before memory is
// allocated for it.
func (o *gitObjects) readObject(scanner *packfile.Scanner) error {
	h, err := scanner.NextObjectHeader()
	if err != nil {
		return gitDamaged("%v", err)
	}
	if err := o.count(h.Length); err != nil {
		return err
	}
	if h.Length > limits.FileBytes {
		return o.skipObject(scanner, h)
	}

	content := &exactBuffer{data: make([]byte, 0, h.Length)}
	if _, _, err := scanner.NextObject(content); err != nil {
		return gitDamaged("%v", err)
	}
	if int64(len(content.data)) != h.Length {
		return gitDamaged("an object has %d bytes, not %d", len(content.data), h.Length)
	}

	d := delta{offset: h.Offset, data: content.data}
	switch h.Type {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		return o.add(h.Offset, gitObject{kind: h.Type, data: d.data})
	case plumbing.OFSDeltaObject:
		if base, ok := o.offsets[h.OffsetReference]; ok {
			return o.patch(base, d)
		}
		// The base of a delta can follow it in the pack.
		o.waiting[h.OffsetReference] = append(o.waiting[h.OffsetReference], d)
	case plumbing.REFDeltaObject:
		hash := h.Reference.String()
		if base, ok := o.objects[hash]; ok {
			return o.patch(base, d)
		}
		o.waiting[hash] = append(o.waiting[hash], d)
	default:
		return gitDamaged("an object is of the type %d", h.Type)
	}

	return nil
}

// skipObject skips an object that exceeds the size of any file. The object might never be read;
// otherwise it is refused then.
func (o *gitObjects) skipObject(scanner *packfile.Scanner, h *packfile.ObjectHeader) error {
	if h.Type != plumbing.BlobObject {
		return permanent("Keep packages in a repository of their own, or serve an archive.", "an object of the commit other than a file has %d bytes; the limit is %d", h.Length, limits.FileBytes)
	}
	hasher := plumbing.NewHasher(h.Type, h.Length)
	if n, _, err := scanner.NextObject(hasher); err != nil {
		return gitDamaged("%v", err)
	} else if n != h.Length {
		return gitDamaged("an object has %d bytes, not %d", n, h.Length)
	}
	o.objects[hasher.Sum().String()] = gitObject{kind: h.Type, large: true}
	return nil
}

// exactBuffer takes exactly as many bytes as it was made for. Unlike a bytes.Buffer, it never
// grows.
type exactBuffer struct{ data []byte }

// Write implements io.Writer.
func (b *exactBuffer) Write(p []byte) (int, error) {
	if len(p) > cap(b.data)-len(b.data) {
		return 0, io.ErrShortBuffer
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

// count adds bytes in memory, up to the limit.
func (o *gitObjects) count(n int64) error {
	if o.bytes += max(n, 0); n < 0 || o.bytes > o.limit {
		return o.exceeded
	}
	return nil
}

// resolved is an object whose content is known.
type resolved struct {
	offset int64
	object gitObject
}

// add keeps an object, and then the objects that waited for it.
func (o *gitObjects) add(offset int64, object gitObject) error {
	for queue := []resolved{{offset, object}}; len(queue) > 0; {
		next := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		hash := plumbing.ComputeHash(next.object.kind, next.object.data).String()
		o.objects[hash], o.offsets[next.offset] = next.object, next.object
		for _, key := range []any{hash, next.offset} {
			waiting := o.waiting[key]
			delete(o.waiting, key)
			for _, d := range waiting {
				object, err := o.apply(next.object, d)
				if err != nil {
					return err
				}
				queue = append(queue, resolved{d.offset, object})
			}
		}
	}

	return nil
}

// patch adds the object that a delta makes of its base.
func (o *gitObjects) patch(base gitObject, d delta) error {
	object, err := o.apply(base, d)
	if err != nil {
		return err
	}
	return o.add(d.offset, object)
}

// apply builds an object from its base and a delta, which starts with the sizes of both.
func (o *gitObjects) apply(base gitObject, d delta) (gitObject, error) {
	_, n := binary.Uvarint(d.data)
	if n <= 0 {
		return gitObject{}, gitDamaged("a delta has no sizes")
	}

	size, m := binary.Uvarint(d.data[n:])
	if m <= 0 {
		return gitObject{}, gitDamaged("a delta has no sizes")
	}
	if err := o.count(int64(min(size, limits.GitBytes+1))); err != nil {
		return gitObject{}, err
	}
	if size > limits.FileBytes {
		return gitObject{}, permanent("Keep packages in a repository of their own, or serve an archive.", "an object of the commit that is a difference makes %d bytes; the limit is %d", size, limits.FileBytes)
	}

	data, err := packfile.PatchDelta(base.data, d.data)
	if err != nil {
		return gitObject{}, gitDamaged("%v", err)
	}

	// The delta itself is garbage from here on.
	o.bytes -= int64(len(d.data))
	return gitObject{kind: base.kind, data: data}, nil
}

// The modes of entries of a tree.
const (
	modeFolder    = "40000"
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// treeEntry is a file or folder in a tree, with the hash of its object.
type treeEntry struct{ mode, name, hash string }

// checkout reads the files below a folder of a commit.
func (o *gitObjects) checkout(ctx context.Context, commit, folder string) (files map[string][]byte, err error) {
	tree, err := o.treeOf(commit)
	if err != nil {
		return nil, err
	}
	c := checkout{gitObjects: o, ctx: ctx, folder: folder, files: collection{files: map[string][]byte{}}}
	if err := c.walk(tree, "", 0); err != nil {
		return nil, err
	}
	return c.files.files, nil
}

// treeOf returns the hash of the tree of a commit, or of the commit that a tag names.
func (o *gitObjects) treeOf(hash string) (string, error) {
	// A tag can name a tag. The bound ends a chain that a server makes longer than anyone needs.
	for range 8 {
		object, ok := o.objects[hash]
		if !ok {
			return "", gitDamaged("the object %s is missing", hash)
		}
		field := map[plumbing.ObjectType]string{plumbing.CommitObject: "tree ", plumbing.TagObject: "object "}[object.kind]
		line, _, _ := bytes.Cut(object.data, []byte("\n"))
		next, ok := strings.CutPrefix(string(line), field)
		if field == "" || !ok || !isCommit(next) {
			return "", permanent("Name a commit, or a branch or tag of one.", "the object %s is not a commit", hash)
		}
		if hash = next; object.kind == plumbing.CommitObject {
			return hash, nil
		}
	}

	return "", gitDamaged("a tag names a tag, eight times")
}

// checkout walks the trees of one commit.
type checkout struct {
	*gitObjects
	ctx     context.Context
	folder  string
	entries int
	files   collection
}

// walk reads a tree, and the trees below it that can contain wanted files.
func (c *checkout) walk(hash, at string, depth int) error {
	object, ok := c.objects[hash]
	if !ok || object.kind != plumbing.TreeObject {
		return gitDamaged("the tree %s of /%s is missing", hash, at)
	}
	if depth > limits.PathDepth {
		return permanent("Use fewer folders.", "the path %.200q has more than %d folders", at, limits.PathDepth)
	}

	entries, err := parseTree(object.data)
	if err != nil {
		return err
	}

	for _, e := range entries {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		if c.entries++; c.entries > limits.RepositoryEntries {
			return treeLimit()
		}
		if err := c.entry(e, path.Join(at, e.name), depth); err != nil {
			return err
		}
	}

	return nil
}

// treeLimit is the error of a commit with too many entries.
func treeLimit() *Error {
	return permanent("Keep packages in a repository of their own.", "the commit has more than %d files and folders", limits.RepositoryEntries)
}

// entry reads a file or folder, and skips submodules and links.
func (c *checkout) entry(e treeEntry, p string, depth int) error {
	switch e.mode {
	case modeFolder:
		if strings.HasPrefix(e.name, ".") || !below(p, c.folder) && !below(c.folder, p) {
			return nil
		}
		return c.walk(e.hash, p, depth+1)
	case modeSubmodule, modeLink:
		return nil
	}

	if !keeps(p, c.folder) {
		return nil
	}
	object, ok := c.objects[e.hash]
	// A file beyond the limit is an error, because offering a repository without it would withdraw
	// versions.
	if !ok || object.large || len(object.data) > limits.FileBytes {
		return permanent("Split it.", "the file %.200q has more than %d bytes", p, limits.FileBytes)
	}
	if object.kind != plumbing.BlobObject {
		return gitDamaged("the entry %.200q is not a file", p)
	}
	return c.files.add(p, object.data, "git")
}

// parseTree parses entries of mode, space, name, zero byte and hash.
func parseTree(data []byte) ([]treeEntry, error) {
	var entries []treeEntry
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte(" "))
		name, hash, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 || len(hash) < 20 || len(mode) > 6 {
			return nil, gitDamaged("a tree cannot be read")
		}
		e := treeEntry{mode: string(mode), name: string(name), hash: hex.EncodeToString(hash[:20])}
		if e.name == "" || e.name == "." || e.name == ".." || strings.Contains(e.name, "/") {
			return nil, permanent("", "a folder of the commit has an entry with the name %.100q", e.name)
		}
		if len(entries) == limits.RepositoryEntries {
			return nil, treeLimit()
		}
		entries = append(entries, e)
		data = hash[20:]
	}

	return entries, nil
}
