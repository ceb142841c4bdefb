package kickstart

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/fields"
	"lockstep.run/lockstep/internal/cli/author/threeway"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
)

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
	u := &upgrade{out: &Upgrade{Files: maps.Clone(ours)}, prefer: prefer, where: places(ours), known: map[string]bool{}}
	former, now := byID(r.Objects), byID(made.IDs)
	former[""], now[""] = manifestFile, manifestFile
	ids := slices.Sorted(maps.Keys(now))
	for _, id := range slices.Sorted(maps.Keys(former)) {
		if _, ok := now[id]; !ok {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		u.known[id] = true
	}
	for _, id := range ids {
		base, had := r.Base[former[id]]
		u.object(id, former[id], now[id], base, made.Files[now[id]], had && former[id] != "")
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

func byID(ids map[string]string) map[string]string {
	out := map[string]string{}
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
	where  map[string]string
	// known are the objects of both releases.
	known map[string]bool
}

// place is the location of an object in a package.
type place struct {
	path string
	// at is its document; nil if it is the whole file.
	at *document.Span
}

// find looks for an object in its file, in others, and as a template of the same name
// in other folders.
func (u *upgrade) find(id, was, is string) (place, bool) {
	for _, p := range []string{was, is} {
		if p == is && was == "" && u.where[id] == "" && !strings.HasSuffix(p, ".gotmpl") {
			break // the file has another object
		}
		for _, candidate := range []string{p, strings.TrimSuffix(p, ".gotmpl"), p + ".gotmpl"} {
			data, there := u.out.Files[candidate]
			if p == "" || !there {
				continue
			}
			if at, ok := u.within(id, candidate, data); ok {
				return place{candidate, at}, true
			}
		}
	}
	if p, ok := u.where[id]; ok && id != "" {
		if at, ok := u.within(id, p, u.out.Files[p]); ok {
			return place{p, at}, true
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
func (u *upgrade) within(id, p string, data []byte) (*document.Span, bool) {
	if id == "" || strings.HasSuffix(p, ".gotmpl") {
		return nil, true
	}
	var found *document.Span
	var all []string
	each(p, data, func(have string, at document.Span) {
		all = append(all, have)
		if have == id {
			found = &at
		}
	})
	if len(all) == 1 && (found != nil || !u.known[all[0]]) {
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

// object merges an object; was and is are its files in both releases.
func (u *upgrade) object(id, was, is string, base, theirs []byte, had bool) {
	at, found := u.find(id, was, is)
	switch {
	case is == "":
		u.remove(id, base, at, found)
	case !had && !found:
		u.add(is, theirs)
	case !found:
		if !bytes.Equal(base, theirs) {
			u.out.Notes = append(u.out.Notes, fmt.Sprintf("%s, which you removed, changed in the new release; it stays out", display(id)))
		}
	default:
		u.change(id, was, is, base, theirs, at)
	}
}

func (u *upgrade) add(is string, theirs []byte) {
	is = vacant(u.out.Files, is)
	u.out.Files[is] = theirs
	u.out.Added = append(u.out.Added, is)
}

// remove removes an object that the new release does not have, unless its author has
// changed it.
func (u *upgrade) remove(id string, base []byte, at place, found bool) {
	if !found {
		return
	}
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

func (u *upgrade) change(id, was, is string, base, theirs []byte, at place) {
	ours := u.text(at)
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
