package schemacheck

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"lockstep.run/lockstep/internal/limits"
)

// folderScheme is that of URLs which mean files below the package's folder.
const folderScheme = "package"

func toURL(location string) string {
	if strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://") {
		return location
	}
	return (&url.URL{Scheme: folderScheme, Path: path.Clean("/" + location)}).String()
}

// errOffline is that a download is not allowed.
var errOffline = errors.New("schemas of URLs are read only with --download-schemas")

// store reads JSON Schemas, each once. What is not there is fs.ErrNotExist.
type store struct {
	options   LocationOptions
	known     map[string]stored
	downloads int
}

type stored struct {
	schema any
	err    error
}

// Load implements jsonschema.URLLoader.
func (s *store) Load(location string) (any, error) {
	if found, done := s.known[location]; done {
		return found.schema, found.err
	}
	var found stored
	found.schema, found.err = s.read(location)
	if s.known == nil {
		s.known = map[string]stored{}
	}
	s.known[location] = found
	return found.schema, found.err
}

func (s *store) read(location string) (any, error) {
	parsed, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	var body io.ReadCloser
	switch parsed.Scheme {
	case folderScheme:
		body, err = s.open(parsed.Path)
	case "http", "https":
		body, err = s.download(location)
	default:
		return nil, fmt.Errorf("%s is neither a file of the package nor a URL of http", location)
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, limits.SchemaFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > limits.SchemaFileBytes {
		return nil, fmt.Errorf("more than %d bytes, which is the limit", limits.SchemaFileBytes)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, errors.New("it is no JSON")
	}
	return value, nil
}

// open opens a file below the package's folder; symbolic links do not lead out.
func (s *store) open(p string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(s.options.Folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(strings.TrimPrefix(p, "/"))
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is no file", p)
	}
	return f, nil
}

func (s *store) download(location string) (io.ReadCloser, error) {
	if !s.options.Download {
		return nil, fmt.Errorf("%w: %w", errOffline, fs.ErrNotExist)
	}
	if s.downloads++; s.downloads > limits.SchemaDownloads {
		return nil, fmt.Errorf("more than %d schemas to download, which is the limit", limits.SchemaDownloads)
	}
	client := http.Client{Timeout: limits.SchemaDownloadTime}
	answer, err := client.Get(location)
	if err != nil {
		return nil, err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return answer.Body, nil
	case http.StatusNotFound:
		answer.Body.Close()
		return nil, fmt.Errorf("%s: %w", location, fs.ErrNotExist)
	}
	answer.Body.Close()
	return nil, fmt.Errorf("the server answers %s", answer.Status)
}
