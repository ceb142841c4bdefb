package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// maxManifestSize is the largest manifest that the registry accepts, in bytes. The OCI distribution
// specification suggests this limit.
const maxManifestSize = 4 << 20

// manifestKeeper writes every accepted manifest to a file, because the underlying registry keeps
// manifests only in memory.
type manifestKeeper struct {
	next http.Handler
	dir  string // one file per URL path
}

// keptManifest is the content of one file.
type keptManifest struct {
	Path        string `json:"path"`
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

func (k *manifestKeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.Path, "/manifests/") || (r.Method != http.MethodPut && r.Method != http.MethodDelete) {
		k.next.ServeHTTP(w, r)
		return
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifestSize))
	if err != nil {
		http.Error(w, fmt.Sprintf("reading the manifest: %v", err), http.StatusRequestEntityTooLarge)
		return
	}

	status := &statusWriter{ResponseWriter: w}
	manifest := keptManifest{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Body: body}
	r.Body = io.NopCloser(bytes.NewReader(body))
	status.before = func(code int) error { return k.record(r.Method, code, manifest) }
	k.next.ServeHTTP(status, r)
}

// record updates the files after a request that was answered with code.
func (k *manifestKeeper) record(method string, code int, manifest keptManifest) error {
	file := filepath.Join(k.dir, fmt.Sprintf("%x.json", sha256.Sum256([]byte(manifest.Path))))
	switch {
	case method == http.MethodPut && code == http.StatusCreated:
		content, err := json.Marshal(manifest)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", manifest.Path, err)
		}
		return os.WriteFile(file, content, 0o644)
	case method == http.MethodDelete && code == http.StatusAccepted:
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return err
		}
	}

	return nil
}

// restore pushes every kept manifest again. An index is accepted only after the manifests that it
// names, so it repeats rounds as long as they make progress.
func (k *manifestKeeper) restore() error {
	if err := os.MkdirAll(k.dir, 0o755); err != nil {
		return fmt.Errorf("creating the folder for manifests: %w", err)
	}

	files, err := filepath.Glob(filepath.Join(k.dir, "*.json"))
	if err != nil {
		return err
	}

	for len(files) > 0 {
		var refused []string
		for _, file := range files {
			ok, err := k.put(file)
			if err != nil {
				return err
			}
			if !ok {
				refused = append(refused, file)
			}
		}
		if len(refused) == len(files) {
			return fmt.Errorf("restoring manifests: %s and %d more were refused: remove them or push again", refused[0], len(refused)-1)
		}
		files = refused
	}

	return nil
}

func (k *manifestKeeper) put(file string) (accepted bool, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("reading a kept manifest: %w", err)
	}

	var manifest keptManifest
	if err := json.Unmarshal(content, &manifest); err != nil {
		return false, fmt.Errorf("kept manifest %s is damaged: %w; remove it and push again", file, err)
	}

	request, err := http.NewRequest(http.MethodPut, manifest.Path, bytes.NewReader(manifest.Body))
	if err != nil {
		return false, fmt.Errorf("kept manifest %s is damaged: %w; remove it and push again", file, err)
	}

	request.Header.Set("Content-Type", manifest.ContentType)
	answer := &discard{header: http.Header{}}
	k.next.ServeHTTP(answer, request)
	return answer.code == http.StatusCreated, nil
}

// discard is a response whose status code is all that matters.
type discard struct {
	header http.Header
	code   int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(code int)        { d.code = code }

// statusWriter calls before with the status code before sending it, so that a client that saw a
// success finds the manifest after a restart.
type statusWriter struct {
	http.ResponseWriter
	before func(code int) error
}

func (s *statusWriter) WriteHeader(code int) {
	if err := s.before(code); err != nil {
		http.Error(s.ResponseWriter, fmt.Sprintf("keeping the manifest: %v", err), http.StatusInternalServerError)
		return
	}
	s.ResponseWriter.WriteHeader(code)
}
