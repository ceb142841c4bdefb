package kickstart

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/loader"
)

// RecordFolder has the record of the current release. Like all dot files, it is not
// part of the image.
const RecordFolder = ".kickstart"

const (
	recordFile = "record.yaml"
	baseFolder = "base/"
)

const recordHead = `# Written by kubectl package kickstart, which takes over new releases by what is here.
# Commit it, and leave it as it is. It is no part of the image.
`

// Record is the input and output of the last run.
type Record struct {
	Options Options `json:"options"`
	// Objects are the IDs by file.
	Objects map[string]string `json:"objects,omitempty"`
	// Notes of the last run, which are not repeated.
	Notes []string `json:"notes,omitempty"`
	// Base are the files as they were made.
	Base loader.Files `json:"-"`
}

// Record returns the files of the record of a package.
func (r *Result) Record(opts Options) (loader.Files, error) {
	data, err := yaml.Marshal(Record{Options: opts, Objects: r.IDs, Notes: r.Notes})
	if err != nil {
		return nil, err
	}
	out := loader.Files{recordFile: append([]byte(recordHead), data...)}
	for p, data := range r.Files {
		out[baseFolder+p] = data
	}
	return out, nil
}

// ReadRecord reads the files of a record.
func ReadRecord(files loader.Files) (*Record, error) {
	data, ok := files[recordFile]
	if !ok {
		return nil, errors.New("it has no " + recordFile)
	}
	var r Record
	if err := yaml.UnmarshalStrict(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", recordFile, err)
	}
	for _, p := range r.Options.Parameters {
		if _, err := ParseParameters([]string{string(p)}); err != nil {
			return nil, fmt.Errorf("%s: %w", recordFile, err)
		}
	}
	r.Base = loader.Files{}
	for p, data := range files {
		if base, ok := strings.CutPrefix(p, baseFolder); ok {
			r.Base[base] = data
		}
	}
	return &r, nil
}
