package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"lockstep.run/lockstep/internal/limits"
)

// Unpacker applies the layers of an image, oldest first. Its limits apply to all of them together.
type Unpacker struct {
	collector
	layers   int
	entries  int
	unpacked int64
	// folders contains the folders of the files so far, if files are selected.
	folders map[string]bool
}

// NewUnpacker returns an Unpacker for some files of an image or of an archive.
func NewUnpacker(selection Selection) *Unpacker {
	selection.setDefaults()
	return &Unpacker{collector: collector{files: Files{}, selection: selection}}
}

// Files returns the files of the folder after the layers so far.
func (u *Unpacker) Files() Files { return u.files }

// overlay is the content of one layer until it is applied: its files and folders by their paths in
// the image, the paths that whiteouts hide, and the folders whose older content they hide.
type overlay struct {
	files  Files
	dirs   map[string]bool
	hidden map[string]bool
	opaque map[string]bool
}

// Layer reads the next layer, compressed or not, to its end.
func (u *Unpacker) Layer(ctx context.Context, r io.Reader) error {
	u.layers++
	if u.layers > limits.ImageLayers {
		return limitError(0, "", "Squash the image.", "the image has more than %d layers", limits.ImageLayers)
	}

	plain, closePlain, err := decompress(r)
	if err != nil {
		return u.corrupt(err)
	}

	defer closePlain()
	counted := &countingReader{ctx: ctx, r: plain, u: u}
	o := overlay{files: Files{}, dirs: map[string]bool{}, hidden: map[string]bool{}, opaque: map[string]bool{}}
	if u.selection.Keep != nil {
		u.folders = foldersOf(u.files)
	}

	archive := tar.NewReader(counted)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return u.corrupt(err)
		}
		if err := u.entry(&o, header, archive); err != nil {
			return err
		}
	}

	// The padding is read to detect a truncated stream.
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return u.corrupt(err)
	}

	return u.apply(&o)
}

// corrupt explains an error of the tar reader. Errors of this package and of the context pass
// unchanged, because they come through the reader as well.
func (u *Unpacker) corrupt(err error) error {
	var own *Error
	if errors.As(err, &own) || errors.Is(err, ErrRoom) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if u.selection.Plain {
		return &Error{Kind: KindCorrupt, Details: "it is not a complete tar archive", Remedy: "Make the archive again.", Err: err}
	}
	return &Error{Kind: KindCorrupt, Layer: u.layers, Details: "the layer is not a complete tar archive", Remedy: "Build and push the image again.", Err: err}
}

// layer returns the number of the layer for messages. Archives that are not images have none.
func (u *Unpacker) layer() int {
	if u.selection.Plain {
		return 0
	}
	return u.layers
}

// entry handles one entry: skip it, hide older files, or collect it. Entries outside the folder are
// counted, but have no other limits.
func (u *Unpacker) entry(o *overlay, header *tar.Header, content io.Reader) error {
	u.entries++
	if u.entries > u.selection.Entries {
		return limitError(u.layer(), "", leaveOut+".", "there are more than %d entries", u.selection.Entries)
	}
	// Archives of git start with one, which has a comment and no file.
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}

	at, err := u.selection.locate(u.layer(), header.Name)
	if err != nil {
		return err
	}
	if done, err := u.hide(o, header.Name, at); done || err != nil {
		return err
	}

	if !at.inside || u.selection.Keep == nil && isDotted(at.path) {
		if header.Typeflag != tar.TypeDir && u.folders[at.path] {
			o.hidden[at.path] = true // another entry replaces the folder
		}
		return nil
	}

	switch header.Typeflag {
	case tar.TypeDir:
		o.dirs[at.path] = true
		return nil
	case tar.TypeReg:
		return u.file(o, at.path, header, content)
	default:
		return entryError(u.layer(), header.Name, onlyFiles, "it is a %s", cmp.Or(typeNames[header.Typeflag], "special entry"))
	}
}

// file reads a regular file into the overlay.
func (u *Unpacker) file(o *overlay, path string, header *tar.Header, content io.Reader) error {
	if u.selection.Keep == nil && path == u.selection.Folder {
		return entryError(u.layer(), header.Name, "Put the files into a folder of that name.", "/%s is a file", u.selection.Folder)
	}
	if header.Size > limits.FileBytes {
		return limitError(u.layer(), header.Name, "Leave it out or split it.", "the file has %d bytes; the limit is %d", header.Size, limits.FileBytes)
	}
	if err := u.add(o.files, path, u.layer(), header.Name, content); err != nil {
		return u.corrupt(err)
	}

	// A file implies its folders, which some tools do not write as entries.
	for dir := parent(path); dir != ""; dir = parent(dir) {
		o.dirs[dir] = true
	}

	return nil
}

// apply removes the older files that the layer hides or replaces, and then adds its own. Whiteouts
// apply to lower layers only, and their place within a layer does not matter.
func (u *Unpacker) apply(o *overlay) error {
	for p := range o.files {
		if o.dirs[p] {
			return entryError(u.layer(), p, "Build the image again.", "it is a file and a folder in one layer")
		}
	}

	for name := range u.files {
		if o.covers(u.selection.prefix + name) {
			delete(u.files, name)
		}
	}

	for p, data := range o.files {
		u.files[strings.TrimPrefix(p, u.selection.prefix)] = data
	}

	return u.checkCount(u.layer(), "", u.files)
}

// covers reports whether the layer removes or replaces a file of older ones.
func (o *overlay) covers(p string) bool {
	if o.hidden[p] || o.dirs[p] {
		return true
	}
	for dir := parent(p); ; dir = parent(dir) {
		_, replaced := o.files[dir]
		if replaced || o.hidden[dir] || o.opaque[dir] {
			return true
		}
		if dir == "" {
			return false
		}
	}
}

// hide applies a whiteout. done is set if the entry is one. Plain archives have no whiteouts.
func (u *Unpacker) hide(o *overlay, entry string, at place) (done bool, err error) {
	if u.selection.Plain {
		return false, nil
	}

	hidden, opaque, ok, err := whiteout(u.layers, entry, at.path)
	_, isFile := u.files[hidden]
	switch {
	case err != nil && at.inside:
		return false, err
	case !ok:
		return false, nil
	case opaque:
		if at.inside || hidden == "" || u.folders[hidden] {
			o.opaque[hidden] = true
		}
	// Others are not kept, because their names can have a megabyte.
	case at.inside || hidden == u.selection.Folder || u.selection.Keep != nil && (isFile || u.folders[hidden]):
		o.hidden[hidden] = true
	}

	return true, nil
}

// foldersOf returns all folders that contain a file, directly or below.
func foldersOf(files Files) map[string]bool {
	folders := map[string]bool{}
	for p := range files {
		for dir := parent(p); dir != "" && !folders[dir]; dir = parent(dir) {
			folders[dir] = true
		}
	}
	return folders
}

// parent returns the folder of a path, or an empty string at the root.
func parent(p string) string { return p[:max(0, strings.LastIndexByte(p, '/'))] }

// decompress detects compression by the first bytes, because media types are often wrong.
func decompress(r io.Reader) (plain io.Reader, closePlain func(), err error) {
	buffered := bufio.NewReader(r)
	magic, err := buffered.Peek(4)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}

	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { _ = z.Close() }, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		// Without these options, the header of a frame and the number of processors decide how much
		// memory the decoder allocates.
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(limits.ZstdWindowBytes), zstd.WithDecoderMaxMemory(limits.UnpackedBytes))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	default:
		return buffered, func() {}, nil
	}
}

// countingReader ends a layer that unpacks to more than the limit, however little of it is kept,
// and ends with its context.
type countingReader struct {
	ctx context.Context
	r   io.Reader
	u   *Unpacker
}

func (c *countingReader) Read(b []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	n, err := c.r.Read(b)
	c.u.unpacked += int64(n)
	if c.u.unpacked > limits.UnpackedBytes {
		return n, limitError(c.u.layer(), "", leaveOut+".", "there are more than %d bytes unpacked", int64(limits.UnpackedBytes))
	}
	return n, err
}

// typeNames name refused entries in messages.
var typeNames = map[byte]string{
	tar.TypeSymlink: "symbolic link", tar.TypeLink: "hard link", tar.TypeChar: "device", tar.TypeBlock: "device",
	tar.TypeFifo: "FIFO", tar.TypeGNUSparse: "sparse file",
}
