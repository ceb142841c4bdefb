package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
)

// webValidator is a web server's description of the file.
type webValidator struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	// SHA256 is for servers that send the file again although it has not changed.
	SHA256 string `json:"sha256"`
}

// http downloads the file, unless the server reports that it has not changed.
func (f *Fetcher) http(ctx context.Context, s Source, known string) (*Result, error) {
	spec := s.Spec.HTTP
	u, err := parseURL("http.url", spec.URL)
	if err != nil {
		return nil, err
	}

	folder, err := cleanSubPath("http.subPath", spec.SubPath)
	if err != nil {
		return nil, err
	}

	secret, err := s.credentials("http.secretRef", spec.SecretRef)
	if err != nil {
		return nil, err
	}

	c, err := f.client("http", u, secret, s.Namespace != "")
	if err != nil {
		return nil, err
	}

	defer c.close()
	d := &download{client: c, fetcher: f, namespace: s.Namespace, secret: secret, url: u, sha256: spec.SHA256}
	if json.Unmarshal([]byte(known), &d.known) != nil {
		d.known = webValidator{} // text of another form: the file is downloaded
	}
	defer d.close()
	where := "http: " + outbound.ShowURL(u)
	if err := d.get(ctx); err != nil {
		return nil, classify(ctx, where, secret, err)
	}

	validator, err := json.Marshal(d.got)
	if err != nil {
		return nil, err
	}
	if d.file == nil {
		return &Result{NotModified: true, Validator: string(validator)}, nil
	}

	files, err := f.unpack(ctx, &s, d.file, path.Base(u.Path), folder)
	if err != nil {
		return nil, classify(ctx, where, secret, err)
	}

	return &Result{Files: files, Revision: cmp.Or(d.got.ETag, "sha256:"+d.got.SHA256), Validator: string(validator)}, nil
}

// parseURL parses a URL without credentials.
func parseURL(field, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, permanent("", "%s is not a URL", field) // the error quotes the URL
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, permanent("Write it as https://host/path.", "%s has the scheme %.20q", field, u.Scheme)
	case u.User != nil:
		return nil, permanent("Put them into a Secret, and name it in secretRef.", "%s contains credentials", field)
	case u.Host == "":
		return nil, permanent("Write it as https://host/path.", "%s names no host", field)
	}
	return u, nil
}

// download is one file, with its validator before and after.
type download struct {
	*client
	fetcher    *Fetcher
	namespace  string
	secret     credentials
	url        *url.URL
	sha256     string
	known, got webValidator
	// file is nil if it has not changed.
	file *temporary
}

// close frees the download, if there is one.
func (d *download) close() {
	if d.file != nil {
		_ = d.file.Close()
	}
}

// get sends a conditional request, and saves the body if the file has changed.
func (d *download) get(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url.String(), nil)
	if err != nil {
		return err
	}
	if d.known.ETag != "" {
		r.Header.Set("If-None-Match", d.known.ETag)
	}
	if d.known.Modified != "" {
		r.Header.Set("If-Modified-Since", d.known.Modified)
	}

	resp, err := d.Do(r)
	if err != nil {
		return err
	}

	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotModified && d.known.SHA256 != "" {
		d.got = d.known
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		return statusError(resp)
	}

	d.got = webValidator{ETag: d.header(resp, "Etag"), Modified: d.header(resp, "Last-Modified")}
	return d.save(resp)
}

// save writes the body into an unnamed file.
func (d *download) save(resp *http.Response) error {
	if resp.ContentLength > limits.DownloadBytes {
		return permanent("Make the repository smaller.", "the file has %d bytes; the limit is %d", resp.ContentLength, limits.DownloadBytes)
	}

	file, err := d.fetcher.temporaryFile(d.namespace)
	if err != nil {
		return err
	}

	d.file = file
	hasher := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, hasher), resp.Body); err != nil {
		return err
	}

	d.got.SHA256 = hex.EncodeToString(hasher.Sum(nil))
	if d.sha256 != "" && d.sha256 != d.got.SHA256 {
		return permanent("Correct it, or ask the administrator of the server.", "the SHA-256 of the file differs from http.sha256")
	}
	// Some servers support no conditional requests: equal content is not a change.
	if d.got.SHA256 == d.known.SHA256 {
		d.close()
		d.file = nil
	}

	return nil
}

// header returns a header for a status, if it is short text and does not repeat credentials.
func (d *download) header(resp *http.Response, name string) string {
	v := resp.Header.Get(name)
	if len(v) > limits.ValidatorBytes || d.secret.hide(v) != v || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return v
}

// statusError reports the status of a server's answer.
func statusError(resp *http.Response) *Error {
	e := &Error{Details: fmt.Sprintf("the server %s answered %d %s", resp.Request.URL.Hostname(), resp.StatusCode, http.StatusText(resp.StatusCode)), Permanent: true}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		e.Remedy = "Check the Secret that secretRef names."
	case code == http.StatusNotFound || code == http.StatusGone:
		e.Remedy = "Check the URL, and that the credentials grant access to it."
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		e.Permanent = false
	}
	return e
}

// unpack reads the content of a download: an archive, or a single file with this name.
func (f *Fetcher) unpack(ctx context.Context, s *Source, file io.ReaderAt, name, folder string) (files map[string][]byte, err error) {
	err = s.inRoom(func(room int64) (err error) {
		files, err = f.unpackWithin(ctx, s.Namespace, file, name, folder, room)
		return err
	})
	return files, err
}

// unpackWithin reads a download with a limit on memory; zero means the maximum. The content decides
// whether it is an archive, and not its name.
func (f *Fetcher) unpackWithin(ctx context.Context, namespace string, file io.ReaderAt, name, folder string, room int64) (map[string][]byte, error) {
	release, err := f.unpacks.Acquire(ctx, namespace, 1)
	if err != nil {
		return nil, err
	}

	defer release()
	isTar, err := archive.IsTar(io.NewSectionReader(file, 0, limits.DownloadBytes))
	if err != nil {
		return nil, contentError(err)
	}

	r := io.NewSectionReader(file, 0, limits.DownloadBytes)
	if !isTar {
		return single(r, name, folder, room, min(limits.FileBytes, f.opts.Bytes))
	}

	u := archive.NewUnpacker(archive.Selection{
		Keep:  func(p string) bool { return keeps(p, folder) },
		Plain: true, Entries: limits.RepositoryEntries, Files: limits.RepositoryFiles, Bytes: f.opts.Bytes, Room: room,
	})

	if err := u.Layer(ctx, r); errors.Is(err, archive.ErrRoom) {
		return nil, err
	} else if err != nil {
		return nil, contentError(err)
	}

	return choose(u.Files(), "http.subPath", folder)
}

// single reads a file that is not an archive.
func single(r io.Reader, name, folder string, room, limit int64) (map[string][]byte, error) {
	if folder != "" {
		return nil, permanent("Leave it out, or serve a tar archive.", "http.subPath: the file is not a tar archive")
	}

	data, err := archive.ReadPlain(r, cmp.Or(room, limit))
	switch {
	case err != nil && room > 0:
		return nil, archive.ErrRoom
	case err != nil:
		return nil, contentError(err)
	}

	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return nil, permanent("Serve one of these.", "the file is neither a tar archive, with or without gzip, nor YAML")
	}
	if trimmed := strings.TrimSpace(string(data[:min(len(data), 1<<10)])); strings.HasPrefix(trimmed, "<") {
		return nil, permanent("Check the URL.", "the file is a page for browsers, no YAML")
	}
	if name = strings.TrimSuffix(name, ".gz"); pathProblem(name) != "" {
		name = "repository.yaml"
	}

	return map[string][]byte{name: data}, nil
}
