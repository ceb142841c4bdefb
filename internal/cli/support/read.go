package support

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

// Snapshot is the cluster of an archive, which may be of a stranger: all of it is bounded, and nothing of it is a path.
type Snapshot struct {
	Created time.Time
	// Lacking is what the archive says is missing, and why.
	Lacking []string

	items []item
	// kinds that the archive has a list of.
	kinds map[string]bool
	// explanations are Diagnoses as JSON, by the key of a package.
	explanations map[string][]byte
}

// item is an object, of which only the metadata was decoded.
type item struct {
	Version  string `json:"apiVersion"`
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Involved map[string]string `json:"involvedObject"`

	raw []byte
}

// Open reads an archive that Write made.
func Open(file string) (*Snapshot, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	s, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as an archive of kubectl package support: %w", file, err)
	}
	return s, nil
}

// errLarge is of an archive that no run of support makes.
var errLarge = fmt.Errorf("it has more than %d MiB, %d files or %d values, which such archives do not have", (MaxBytes+limits.ArchiveOverhead)>>20, limits.ArchiveFiles, limits.ArchiveValues)

// Read is Open for a stream.
func Read(r io.Reader) (*Snapshot, error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	bounded := &io.LimitedReader{R: zipped, N: MaxBytes + limits.ArchiveOverhead}
	s := &Snapshot{kinds: map[string]bool{}, explanations: map[string][]byte{}}
	seen, values, size := map[string]bool{}, 0, 0
	for t := tar.NewReader(bounded); ; {
		head, err := t.Next()
		switch {
		case bounded.N <= 0 || len(seen) > limits.ArchiveFiles:
			return nil, errLarge
		case errors.Is(err, io.EOF) && s.Created.IsZero():
			return nil, errors.New("it has no CONTENTS.txt")
		case errors.Is(err, io.EOF):
			return s, nil
		case err != nil:
			return nil, err
		case seen[head.Name]:
			return nil, errors.New("a file is in it twice")
		case head.Typeflag != tar.TypeReg || head.Size > MaxFileBytes+limits.ArchiveOverhead || sparse(head):
			return nil, errors.New("a file of it is none, or too large")
		}
		seen[head.Name] = true
		content, err := io.ReadAll(t)
		if err != nil {
			if bounded.N <= 0 {
				return nil, errLarge
			}
			return nil, err
		}
		// The content of a file may be larger than its part of the stream.
		size += len(content)
		if values += bytes.Count(content, []byte(",")); values > limits.ArchiveValues || size > MaxBytes+limits.ArchiveOverhead {
			return nil, errLarge
		}
		if err := s.add(head, content); err != nil {
			return nil, err
		}
	}
}

// sparse reports whether a file has holes, which the reader fills with zeros that are not in the stream.
func sparse(head *tar.Header) bool {
	for key := range head.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func (s *Snapshot) add(head *tar.Header, content []byte) error {
	folder, name := path.Split(head.Name)
	switch {
	case head.Name == "support/CONTENTS.txt":
		s.Created = head.ModTime.UTC()
		_, missing, _ := strings.Cut(string(content), "\nMissing\n")
		for line := range strings.Lines(missing) {
			if len(s.Lacking) < limits.ArchiveLacking {
				s.Lacking = append(s.Lacking, strings.TrimSpace(line))
			}
		}
	case folder == "support/objects/" && strings.HasSuffix(name, ".json"):
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(content, &list); err != nil {
			return fmt.Errorf("a list of objects in it is no JSON: %w", err)
		}
		s.kinds[strings.TrimSuffix(name, ".json")] = true
		for _, raw := range list.Items {
			o := item{raw: raw}
			if err := json.Unmarshal(raw, &o); err != nil || o.Metadata.Name == "" || o.Kind == "" {
				return errors.New("an object in it is none")
			}
			s.items = append(s.items, o)
		}
	case folder == "support/explain/" && strings.HasSuffix(name, ".json"):
		s.explanations[strings.TrimSuffix(name, ".json")] = content
	}
	return nil
}

// ExplanationName is what the files with the explanation of a package are called, before their endings.
func ExplanationName(kind, namespace, name string) string {
	return strings.Join(slices.DeleteFunc([]string{strings.ToLower(kind), namespace, name}, func(s string) bool { return s == "" }), "_")
}

// Explanation is what explain said of a package as JSON, nil where the archive has none.
func (s *Snapshot) Explanation(kind, namespace, name string) []byte {
	return s.explanations[ExplanationName(kind, namespace, name)]
}

// find returns the items that are wanted, in the order of namespaces and names.
func (s *Snapshot) find(wanted func(*item) bool) (found []*item) {
	for i := range s.items {
		if wanted(&s.items[i]) {
			found = append(found, &s.items[i])
		}
	}
	slices.SortStableFunc(found, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return found
}
