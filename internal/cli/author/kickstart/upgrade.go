package kickstart

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cli/author/fields"
	"lockstep.run/lockstep/internal/cli/author/threeway"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
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

// Conflict is a field that the author and the new release changed differently.
type Conflict struct {
	File, Object string
	threeway.Conflict
}

// Upgrade is the merge of a new release into a package.
type Upgrade struct {
	// Files of the package after it.
	Files loader.Files
	// Added, Changed and Removed are paths of files; Kept are those that have changes
	// of the author as well.
	Added, Changed, Removed, Kept []string
	// Conflicts make Files unusable.
	Conflicts []Conflict
	Notes     []string
}

// Upgrade merges the changes between the recorded release and the made one into ours,
// object by object and field by field. prefer decides conflicts.
func (r *Record) Upgrade(ours loader.Files, made *Result, prefer threeway.Side) *Upgrade {
	former, now := byID(r.Objects), byID(made.IDs)
	u := &upgrade{out: &Upgrade{Files: maps.Clone(ours)}, prefer: prefer, where: places(ours), former: former, now: now}
	removed := maps.Clone(former)
	maps.DeleteFunc(removed, func(id, _ string) bool { return now[id] != "" })
	for _, id := range slices.Concat(slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(removed))) {
		base, had := r.Base[former[id]]
		u.object(id, base, made.Files[now[id]], had && former[id] != "")
	}
	for _, note := range made.Notes {
		if !slices.Contains(r.Notes, note) {
			u.out.Notes = append(u.out.Notes, note)
		}
	}
	for _, list := range []*[]string{&u.out.Added, &u.out.Changed, &u.out.Removed, &u.out.Kept} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return u.out
}

// byID returns the files of objects; that of the manifest is "".
func byID(ids map[string]string) map[string]string {
	out := map[string]string{"": manifestFile}
	for _, p := range slices.Sorted(maps.Keys(ids)) {
		out[ids[p]] = p
	}
	return out
}

// display returns an identity for messages.
func display(id string) string { return strings.Replace(id, " /", " ", 1) }

// places returns the file of each object that is not in a template.
func places(files loader.Files) map[string]string {
	out := map[string]string{}
	for _, p := range files.Paths() {
		if strings.HasSuffix(p, ".yaml") || strings.HasSuffix(p, ".yml") {
			each(p, files[p], func(id string, _ document.Span) {
				if _, known := out[id]; !known {
					out[id] = p
				}
			})
		}
	}
	return out
}

func each(p string, data []byte, use func(id string, at document.Span)) {
	_ = document.Each(p, data, func(d *document.Document) {
		gv, err := schema.ParseGroupVersion(fields.Text(d.Value, "apiVersion"))
		if err != nil {
			return
		}
		use(identity(gv.WithKind(fields.Text(d.Value, "kind")).GroupKind(), fields.Text(d.Value, "metadata", "namespace"), fields.Text(d.Value, "metadata", "name")), d.Span())
	})
}

// upgrade is one run of Record.Upgrade.
type upgrade struct {
	out    *Upgrade
	prefer threeway.Side
	// Files by object: of the package, of the recorded release, and of the new one.
	where, former, now map[string]string
}

// place is the location of an object in a package.
type place struct {
	path string
	// at is its document; nil if it is the whole file.
	at *document.Span
}

// find returns the place of an object: in its file, in others, or as a template of the
// same name in other folders.
func (u *upgrade) find(id string) (place, bool) {
	was, is := u.former[id], u.now[id]
	candidates := []string{was, strings.TrimSuffix(was, ".gotmpl"), was + ".gotmpl"}
	if was != "" || u.where[id] != "" || strings.HasSuffix(is, ".gotmpl") { // else the file has another object
		candidates = append(candidates, is, strings.TrimSuffix(is, ".gotmpl"), is+".gotmpl")
	}
	if id != "" {
		candidates = append(candidates, u.where[id])
	}
	for _, candidate := range candidates {
		if _, exists := u.out.Files[candidate]; !exists {
			continue
		}
		if at, ok := u.within(id, candidate); ok {
			return place{candidate, at}, true
		}
	}
	var moved []string
	for p := range u.out.Files {
		if was != "" && strings.HasSuffix(p, ".gotmpl") && strings.TrimSuffix(path.Base(p), ".gotmpl") == strings.TrimSuffix(path.Base(was), ".gotmpl") {
			moved = append(moved, p)
		}
	}
	if len(moved) == 1 && id != "" {
		return place{path: moved[0]}, true
	}
	return place{}, false
}

// within finds an object in a file by its ID, or as the only one, which its author may
// have renamed. A template is taken to have it.
func (u *upgrade) within(id, p string) (found *document.Span, ok bool) {
	if id == "" || strings.HasSuffix(p, ".gotmpl") {
		return nil, true
	}
	var all []string
	each(p, u.out.Files[p], func(have string, at document.Span) {
		all = append(all, have)
		if have == id {
			found = &at
		}
	})
	if len(all) == 1 && (found != nil || u.former[all[0]]+u.now[all[0]] == "") {
		return nil, true
	}
	return found, found != nil
}

func (u *upgrade) text(at place) []byte {
	data := u.out.Files[at.path]
	if at.at != nil {
		return data[at.at.Start:at.at.End]
	}
	return data
}

// object merges an object of one or both releases.
func (u *upgrade) object(id string, base, theirs []byte, had bool) {
	at, found := u.find(id)
	switch {
	case u.now[id] == "" && found:
		u.remove(id, base, at)
	case u.now[id] == "":
	case !had && !found:
		u.add(u.now[id], theirs)
	case found:
		u.change(id, base, theirs, at)
	case !bytes.Equal(base, theirs):
		u.out.Notes = append(u.out.Notes, fmt.Sprintf("%s, which you removed, changed in the new release; it stays out", display(id)))
	}
}

func (u *upgrade) add(is string, theirs []byte) {
	is = vacant(u.out.Files, is)
	u.out.Files[is] = theirs
	u.out.Added = append(u.out.Added, is)
}

// remove removes an object that the new release does not have, unless its author has
// changed it.
func (u *upgrade) remove(id string, base []byte, at place) {
	ours := u.text(at)
	if !threeway.Same(base, ours) && u.prefer != threeway.Theirs {
		if u.prefer == threeway.Neither {
			u.out.Conflicts = append(u.out.Conflicts, Conflict{at.path, display(id), threeway.Conflict{Base: "as it was made", Ours: "changed", Theirs: threeway.None}})
		}
		return
	}
	if at.at == nil {
		delete(u.out.Files, at.path)
		u.out.Removed = append(u.out.Removed, at.path)
		return
	}
	u.out.Files[at.path] = document.Without(u.out.Files[at.path], []document.Span{*at.at})
	u.out.Changed = append(u.out.Changed, at.path)
}

func (u *upgrade) change(id string, base, theirs []byte, at place) {
	ours, was, is := u.text(at), u.former[id], u.now[id]
	merged, conflicts := threeway.Merge(base, ours, theirs, u.prefer)
	for _, c := range conflicts {
		if hides(id, c.Field) {
			c.Base, c.Ours, c.Theirs = "(hidden)", "(hidden)", "(hidden)"
		}
		u.out.Conflicts = append(u.out.Conflicts, Conflict{at.path, display(id), c})
	}
	p := at.path
	if at.at == nil && p == was && was != is && !taken(u.out.Files, is) {
		delete(u.out.Files, p)
		u.out.Removed = append(u.out.Removed, p)
		p = is
	}
	switch {
	case p != at.path:
		u.out.Added = append(u.out.Added, p)
	case bytes.Equal(merged, ours):
		return
	default:
		u.out.Changed = append(u.out.Changed, p)
	}
	if !threeway.Same(base, ours) {
		u.out.Kept = append(u.out.Kept, p)
	}
	if at.at != nil {
		data := u.out.Files[p]
		merged = slices.Concat(data[:at.at.Start], merged, data[at.at.End:])
	}
	u.out.Files[p] = merged
}

// hides reports whether a field may have values of a Secret.
func hides(id, field string) bool {
	lines := strings.HasPrefix(field, "line ")
	if id == "" {
		return field == "" || lines || strings.HasPrefix("spec.config", field) || strings.HasPrefix(field, "spec.config")
	}
	return strings.HasPrefix(id, "Secret ") && !strings.HasPrefix(field, "metadata")
}
