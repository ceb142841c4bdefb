package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"lockstep.run/lockstep/internal/cli/terminal"
)

// Limits of an archive, in bytes before compression. A longer file keeps its start. A longer log
// keeps its end.
const (
	MaxBytes     = 20 << 20
	MaxFileBytes = 4 << 20
)

// File of an archive.
type File struct {
	Name string `json:"name"`
	Size int    `json:"bytes"`
	// About describes the source of the content.
	About string `json:"about"`

	content []byte
}

// Missing is a missing part of an archive, and the reason.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Archive has the information about a cluster that a maintainer needs. Its JSON fields are stable.
type Archive struct {
	Created time.Time `json:"created"`
	Files   []File    `json:"files"`
	Missing []Missing `json:"missing"`

	size int
}

// Add adds a file, or records its missing part.
func (a *Archive) Add(name, about string, content []byte) {
	if len(content) > MaxFileBytes {
		a.Lack(name, fmt.Sprintf("the first %d bytes of %d are in the archive", MaxFileBytes, len(content)))
		content = content[:MaxFileBytes]
	}
	// A file that is too large for the rest of the archive is left out. Smaller ones can still fit.
	if a.size+len(content) > MaxBytes {
		a.Lack(name, fmt.Sprintf("the archive would be larger than %d MiB", MaxBytes>>20))
		return
	}
	a.size += len(content)
	a.Files = append(a.Files, File{Name: name, Size: len(content), About: about, content: content})
}

// End reads a log to its end, and returns its last lines, up to the size of a file plus some room,
// because redaction can make it longer. cut means that there were more.
func End(r io.Reader) (last []byte, cut bool, err error) {
	const most = MaxFileBytes * 3 / 4
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		if last = append(last, buffer[:n]...); len(last) > 2*most {
			last, cut = append(last[:0], last[len(last)-most:]...), true
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		if err != nil {
			break
		}
	}

	if len(last) > most {
		last, cut = last[len(last)-most:], true
	}
	if cut { // a line without its start might have the end of a secret
		_, last, _ = bytes.Cut(last, []byte("\n"))
	}

	return last, cut, nil
}

// Lack records a missing part.
func (a *Archive) Lack(what, why string) { a.Missing = append(a.Missing, Missing{what, why}) }

// Contents lists the files of the archive, and the missing parts.
func (a *Archive) Contents() string {
	t := terminal.Writer{}
	rows := [][]string{{"FILE", "BYTES", "CONTENT"}}
	for _, f := range a.Files {
		rows = append(rows, []string{f.Name, fmt.Sprint(f.Size), f.About})
	}

	t.Rows("", rows)
	if len(a.Missing) > 0 {
		t.Line("\nMissing")
	}
	for _, m := range a.Missing {
		t.Line("  " + terminal.Line(m.What+": "+m.Why))
	}

	return t.String()
}

// about precedes the contents in the archive. It describes the redaction, so that readers know its
// limits.
const about = `Data that kubectl package support read from a cluster, with the rights of the user who ran it.

Each object has only the fields that show its state: no config, no content of objects of packages, no template, no patch, no
label or annotation but the engine's own, no Secret. In texts, such as messages, Events and logs, values of config and of Secrets in
packages are replaced by [redacted], and so are likely credentials. Read it before you pass it on.

`

// Write writes the archive as a tar compressed with gzip. Its first file lists the others.
func (a *Archive) Write(w io.Writer) error {
	zipped := gzip.NewWriter(w)
	t := tar.NewWriter(zipped)
	contents := File{Name: "CONTENTS.txt", content: []byte(about + a.Contents())}
	for _, f := range slices.Concat([]File{contents}, a.Files) {
		head := &tar.Header{Name: "support/" + f.Name, Mode: 0o644, Size: int64(len(f.content)), ModTime: a.Created, Format: tar.FormatPAX}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if _, err := io.Copy(t, bytes.NewReader(f.content)); err != nil {
			return err
		}
	}

	if err := t.Close(); err != nil {
		return err
	}
	return zipped.Close()
}
