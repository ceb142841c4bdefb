package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// file is an entry of an archive. A path that ends in a slash is a folder.
type file struct {
	path    string
	mode    int64
	content []byte
	owner   int
}

// readFolder reads all files below a folder, in order, following links to other folders.
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
			files = append(files, file{path: entry.Name(), mode: 0o644, content: content})
			continue
		}
		below, err := readFolder(path)
		if err != nil {
			return nil, err
		}
		for _, f := range below {
			f.path = entry.Name() + "/" + f.path
			files = append(files, f)
		}
	}

	return files, nil
}

// writeTar writes an archive into the folder of the release. The extension of the name decides
// about compression.
func (r *release) writeTar(name string, files []file) error {
	content, err := r.tar(files)
	if err != nil || !strings.HasSuffix(name, "gz") {
		return errors.Join(err, r.write(name, content))
	}

	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer) // its header has no time
	if _, err := zipped.Write(content); err != nil {
		return err
	}
	if err := zipped.Close(); err != nil {
		return err
	}

	return r.write(name, buffer.Bytes())
}

// tar returns an archive.
func (r *release) tar(files []file) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, f := range files {
		header := &tar.Header{
			Name: f.path, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: r.created, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if strings.HasSuffix(f.path, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}

	err := archive.Close()
	return buffer.Bytes(), err
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.folder, name), content, 0o644) // readable by all users
}
