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

// Unpacker applies the layers of an image, oldest first. Its limits count over all.
type Unpacker struct {
	collector
	folder   string
	layers   int
	entries  int
	unpacked int64
}

// NewUnpacker returns an Unpacker for the folder of a package.
func NewUnpacker() *Unpacker { return NewUnpackerOf(root) }

// NewUnpackerOf is NewUnpacker for another folder at the root of the image.
func NewUnpackerOf(folder string) *Unpacker {
	return &Unpacker{collector: collector{files: Files{}}, folder: folder}
}

// Files returns the files of the folder as the layers so far make it up.
func (u *Unpacker) Files() Files { return u.files }

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
	// Padding is read to detect a truncated stream.
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return u.corrupt(err)
	}
	return u.apply(&o)
}

func (u *Unpacker) corrupt(err error) error {
	var own *Error
	if errors.As(err, &own) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Kind: KindCorrupt, Layer: u.layers, Details: "the layer is no complete tar archive", Remedy: "Build and push the image again.", Err: err}
}

func (u *Unpacker) entry(o *overlay, header *tar.Header, content io.Reader) error {
	u.entries++
	if u.entries > limits.ArchiveEntries {
		return limitError(u.layers, "", "Build the package image FROM scratch.", "the image has more than %d entries", limits.ArchiveEntries)
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	at, err := locate(u.layers, header.Name, u.folder)
	if err != nil {
		return err
	}
	hidden, opaque, ok, err := whiteout(u.layers, header.Name, at.path)
	if err != nil && at.inside {
		return err
	}
	switch {
	case ok && opaque:
		if at.inside || hidden == "" {
			o.opaque[hidden] = true
		}
		return nil
	case ok:
		// Others are not kept: their names may have a megabyte.
		if at.inside || hidden == u.folder {
			o.hidden[hidden] = true
		}
		return nil
	case !at.inside || isDotted(at.path):
		return nil
	}
	switch header.Typeflag {
	case tar.TypeDir:
		o.dirs[at.path] = true
		return nil
	case tar.TypeReg:
		return u.file(o, at.path, header, content)
	default:
		return entryError(u.layers, header.Name, "Only files and folders may be in a package.", "it is a %s", cmp.Or(typeNames[header.Typeflag], "special entry"))
	}
}

func (u *Unpacker) file(o *overlay, path string, header *tar.Header, content io.Reader) error {
	if path == u.folder {
		return entryError(u.layers, header.Name, "Put the files into a folder of that name.", "/%s is a file", u.folder)
	}
	if header.Size > limits.FileBytes {
		return limitError(u.layers, header.Name, "Leave it out or split it.", "the file has %d bytes; the limit is %d", header.Size, limits.FileBytes)
	}
	if err := u.add(o.files, path, u.layers, header.Name, content); err != nil {
		return u.corrupt(err)
	}
	for dir := parent(path); dir != ""; dir = parent(dir) {
		o.dirs[dir] = true
	}
	return nil
}

func (u *Unpacker) apply(o *overlay) error {
	for p := range o.files {
		if o.dirs[p] {
			return entryError(u.layers, p, "Build the image again.", "it is a file and a folder in one layer")
		}
	}
	for name := range u.files {
		if o.covers(u.folder + "/" + name) {
			delete(u.files, name)
		}
	}
	for p, data := range o.files {
		u.files[strings.TrimPrefix(p, u.folder+"/")] = data
	}
	return checkCount(u.layers, "", u.files)
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

func parent(p string) string { return p[:max(0, strings.LastIndexByte(p, '/'))] }

// decompress detects compression by the first bytes, as media types are often wrong.
func decompress(r io.Reader) (plain io.Reader, closePlain func(), err error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
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
		return n, limitError(c.u.layers, "", "Build the package image FROM scratch.",
			"the image has more than %d bytes unpacked", int64(limits.UnpackedBytes))
	}
	return n, err
}

var typeNames = map[byte]string{
	tar.TypeSymlink: "symbolic link", tar.TypeLink: "hard link", tar.TypeChar: "device", tar.TypeBlock: "device",
	tar.TypeFifo: "FIFO", tar.TypeGNUSparse: "sparse file",
}
