package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/limits"
)

// Input is a file of objects. Messages use its name.
type Input struct {
	Name string
	Data []byte
}

// Inputs reads files of objects within common limits.
type Inputs struct {
	stdin io.Reader
	Out   []Input
	bytes int
}

// NewInputs returns a reader of objects. The name - means stdin.
func NewInputs(stdin io.Reader) *Inputs { return &Inputs{stdin: stdin} }

// All reads files, folders, patterns and URLs, in their order.
func (in *Inputs) All(ctx context.Context, names []string) ([]Input, error) {
	for _, name := range names {
		if err := in.One(ctx, name); err != nil {
			return nil, err
		}
	}
	return in.Out, nil
}

// One reads one of them.
func (in *Inputs) One(ctx context.Context, name string) error {
	if name == "-" {
		return in.read("standard input", in.stdin)
	}
	if strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://") {
		return in.fetch(ctx, name)
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return in.folder(name)
	case err == nil:
		return in.file(name)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", name, err)
	}

	return in.pattern(name)
}

// pattern reads the files that match a pattern, in alphabetical order. The shell can leave a
// pattern as it is.
func (in *Inputs) pattern(pattern string) error {
	if !doublestar.ValidatePathPattern(pattern) {
		return fmt.Errorf("%q is not a valid file pattern", pattern)
	}
	paths, err := doublestar.FilepathGlob(pattern, doublestar.WithFilesOnly())
	if err != nil {
		return fmt.Errorf("read %s: %w", pattern, err)
	}

	if len(paths) == 0 {
		return fmt.Errorf("there is no file %s", pattern)
	}
	slices.Sort(paths)

	for _, p := range paths {
		if err := in.file(p); err != nil {
			return err
		}
	}

	return nil
}

// folder reads the YAML and JSON files below a folder. Names that start with a dot belong to other
// tools.
func (in *Inputs) folder(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "Chart.yaml")); err == nil {
		return fmt.Errorf("%s is a chart of Helm: render it first, for example with helm template NAME %s | kubectl package kickstart NAME -f -", dir, dir)
	}
	before := len(in.Out)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != dir && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(p)):
			return in.file(p)
		}
		return nil
	})
	if err == nil && len(in.Out) == before {
		return fmt.Errorf("there is no YAML or JSON file in %s", dir)
	}

	return err
}

// file reads one file.
func (in *Inputs) file(p string) error {
	f, err := os.Open(p)
	if err != nil {
		return fmt.Errorf("read the input: %w", err)
	}
	defer f.Close()
	return in.read(p, f)
}

// fetch reads a file from a web server. Errors show its address without credentials.
func (in *Inputs) fetch(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("an input looks like a URL but is not valid: correct the address")
	}

	// Queries and passwords might be credentials.
	plain := *request.URL
	plain.RawQuery = ""
	shown := plain.Redacted()
	request.Header.Set("User-Agent", "kubectl-package/"+version.Get())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		var failure *url.Error
		// The text of url.Error has the whole address, so only its cause is shown.
		if errors.As(err, &failure) {
			err = failure.Err
		}
		return fmt.Errorf("read %s: %w", shown, err)
	}

	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("read %s: the server answers %s", shown, response.Status)
	}
	return in.read(shown, response.Body)
}

// read adds one input. It reads one byte more than the limit, to notice a larger input.
func (in *Inputs) read(name string, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, int64(limits.KickstartBytes-in.bytes)+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if in.bytes += len(data); in.bytes > limits.KickstartBytes {
		return fmt.Errorf("%s: the input has more than %d bytes: name fewer files, or create several packages", name, limits.KickstartBytes)
	}
	in.Out = append(in.Out, Input{Name: name, Data: data})
	return nil
}
