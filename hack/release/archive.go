package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// file is an entry of an archive.
type file struct {
	path    string
	mode    int64
	content []byte
}

// readFolder reads all files below a folder, in order, through links to other folders.
func readFolder(folder string) ([]file, error) {
	var files []file
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, file{entry.Name(), 0o644, content})
			continue
		}
		below, err := readFolder(path)
		if err != nil {
			return nil, err
		}
		for _, f := range below {
			files = append(files, file{entry.Name() + "/" + f.path, f.mode, f.content})
		}
	}
	return files, nil
}

// writeTar writes an archive into the folder of the release, compressed where its name says so.
func (r *release) writeTar(name string, files []file) error {
	var buffer bytes.Buffer
	var out io.WriteCloser = nopCloser{&buffer}
	if strings.HasSuffix(name, "gz") {
		out = gzip.NewWriter(&buffer) // its header has no time
	}
	archive := tar.NewWriter(out)
	for _, f := range files {
		header := &tar.Header{
			Name: f.path, Mode: f.mode, Size: int64(len(f.content)), ModTime: r.created, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return r.write(name, buffer.Bytes())
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.folder, name), content, 0o644) // readable by all users
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
