package applies_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// written is a value that another writer has given a path.
type written struct {
	value any // absent if the writer removed it
	// optional means that it can also be absent, because a template has stated the path since.
	optional bool
	// must means that it has to stay even if kubectl apply removes it.
	must bool
}

// values are values by their paths.
type values map[string][]any

func (v values) has(path string, value any) bool {
	return slices.ContainsFunc(v[path], func(one any) bool { return reflect.DeepEqual(one, value) })
}

func (v values) add(some leaves) {
	for path, value := range some {
		if !v.has(path, value) {
			v[path] = append(v[path], value)
		}
	}
}

// absent is the value of a path that an object does not have.
type absentValue struct{}

var absent any = absentValue{}

// outcome is the result of one version of a template, or of an edit after it.
type outcome struct {
	live leaves
	// fresh are the leaves of a fresh object of the version, and stated the ones that the version
	// states itself.
	fresh, stated leaves
	// others are the values that other writers gave the live object.
	others map[string]written
	// twins are the objects of the kinds of kubectl apply that have carried out all steps.
	twins []leaves
	// said is the revision's message about the object.
	said string
	// former are the values that versions have stated, and defaults the API server's defaults for
	// them. A default that kubectl apply also leaves only counts as a difference if strict.
	former, defaults values
	strict           bool
	// free are paths that a controller writes, regardless of the version.
	free []string
}

// difference is a path whose value is wrong, and why.
type difference struct {
	path      string
	got, want any
	why       string
}

func (d difference) String() string {
	return fmt.Sprintf("%s is %s, want %s: %s", d.path, shown(d.got), shown(d.want), d.why)
}

func shown(value any) string {
	if value == absent {
		return "absent"
	}
	return describe(value)
}

// judge returns the differences between an object and its expected state. Each value has to equal
// the value of a freshly created object, or come from another writer if the version does not
// state the path. Such a value has to stay if it stays under both kinds of kubectl apply. A null
// states that a field is absent.
func judge(o *outcome) []difference {
	var wrong []difference
	for _, path := range paths(o.live, o.fresh, otherPaths(o.others)) {
		got, want := value(o.live, path), value(o.fresh, path)
		other, foreign := o.others[path]
		foreign = foreign && (!o.states(path) || o.isFree(path))
		switch {
		case foreign && reflect.DeepEqual(got, other.value):
		case foreign && o.stays(path, other):
			wrong = append(wrong, difference{path, got, other.value, "another writer gave it this value, which has to stay"})
		case reflect.DeepEqual(got, want), got == absent && want == nil, o.isFree(path) && !foreign, o.filled(path), o.saidOf(path), o.stale(path, got), o.neighbour(path):
		case o.states(path):
			wrong = append(wrong, difference{path, got, want, "the version states it"})
		default:
			wrong = append(wrong, difference{path, got, want, "a fresh create has it, and no other writer changed it"})
		}
	}
	return wrong
}

// stays reports whether another writer's value has to stay.
func (o *outcome) stays(path string, other written) bool {
	return other.must || o.isFree(path) || !other.optional && !o.inEmpty(path) && o.kept(path, other.value)
}

// inEmpty reports whether a path is in a map that the version states as empty, and to which the API
// server adds defaults: both readings, stated or not, are possible.
func (o *outcome) inEmpty(path string) bool {
	for p := path; strings.LastIndexByte(p, '/') > 0; p = p[:strings.LastIndexByte(p, '/')] {
		if stated, states := o.stated[p]; states && isEmpty(stated) {
			return true
		}
	}
	return false
}

func value(of leaves, path string) any {
	if v, has := of[path]; has {
		return v
	}
	return absent
}

// has reports whether there is a leaf at a path or below it.
func (l leaves) has(path string) bool {
	for leaf := range l {
		if leaf == path || strings.HasPrefix(leaf, path+"/") {
			return true
		}
	}
	return false
}

func otherPaths(others map[string]written) leaves {
	all := leaves{}
	for path := range others {
		all[path] = nil
	}
	return all
}

// states reports whether the version states a path, or an atomic value that contains the path. An
// empty map that it states has no fields, unless the API server drops it, or it is the whole spec:
// in these cases it is like a null, and states no field.
func (o *outcome) states(path string) bool {
	for p := path; p != ""; p = p[:strings.LastIndexByte(p, '/')] {
		stated, states := o.stated[p]
		open := isEmpty(stated) && (stated == nil || strings.LastIndexByte(p, '/') == 0 || !reflect.DeepEqual(value(o.fresh, p), stated))
		if states && !open {
			return true
		}
	}
	return false
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func (o *outcome) isFree(path string) bool {
	for _, free := range o.free {
		if path == free || strings.HasPrefix(path, free+"/") {
			return true
		}
	}
	return false
}

// kept reports whether a path has a value under every kind of kubectl apply that completed the
// steps. It ignores a kind that accepted the version, but did not write all stated values.
func (o *outcome) kept(path string, of any) bool {
	some := false
	for _, twin := range o.twins {
		if !o.complete(twin) {
			continue
		}
		if some = true; !reflect.DeepEqual(value(twin, path), of) {
			return false
		}
	}
	return some
}

// complete reports whether an object has all values that the version states.
func (o *outcome) complete(twin leaves) bool {
	for path := range o.stated {
		if !reflect.DeepEqual(value(twin, path), value(o.fresh, path)) && !o.isFree(path) {
			return false
		}
	}
	return true
}

// filled reports whether other writers have filled a map that the version leaves empty.
func (o *outcome) filled(path string) bool {
	return !o.states(path) && isEmpty(value(o.fresh, path)) && value(o.live, path) == absent && o.live.has(path)
}

// stale reports whether a value is a default that kubectl apply also leaves, from a former
// version or another writer's fields.
func (o *outcome) stale(path string, got any) bool {
	if o.strict || o.states(path) || o.former.has(path, got) {
		return false
	}
	for _, twin := range o.twins {
		if reflect.DeepEqual(value(twin, path), got) {
			return true
		}
	}
	return len(o.twins) == 0 && o.defaults.has(path, got)
}

// neighbour reports whether a path that no version has stated can be a default next to another
// writer's fields: both are in a map that a freshly created object does not have.
func (o *outcome) neighbour(path string) bool {
	if o.states(path) || o.former[path] != nil {
		return false
	}
	for parent := path[:strings.LastIndexByte(path, '/')]; parent != ""; parent = parent[:strings.LastIndexByte(parent, '/')] {
		for other, by := range o.others {
			if strings.HasPrefix(other, parent+"/") && by.value != absent && !o.fresh.has(parent) {
				return true
			}
		}
	}
	return false
}

var (
	// elements matches the key of a list's element in a path, here and in messages.
	elements = regexp.MustCompile(`/\{[^/]*|\[[^]]*\]`)
	fields   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9]+)*`)
)

// saidOf reports whether the revision's message names a field that stays as it is, or one of its
// parents.
func (o *outcome) saidOf(path string) bool {
	field := strings.ReplaceAll(strings.TrimPrefix(elements.ReplaceAllString(path, ""), "/"), "/", ".")
	for _, said := range fields.FindAllString(elements.ReplaceAllString(o.said, ""), -1) {
		if field == said || strings.HasPrefix(field, said+".") {
			return true
		}
	}
	return false
}

// wrote adds the changes of an edit to the values of other writers.
func wrote(others map[string]written, before, after leaves) {
	for _, path := range paths(before, after) {
		if was, is := value(before, path), value(after, path); !reflect.DeepEqual(was, is) {
			others[path] = written{value: is}
		}
	}
}

// claimed drops the values of other writers that a version states, because Lockstep owns them now.
// A writer of the same value keeps it, so that it can stay if a later version does not state it.
func (o *outcome) claimed() map[string]written {
	left := maps.Clone(o.others)
	for path, other := range left {
		switch {
		case !o.states(path) || o.isFree(path):
		case reflect.DeepEqual(other.value, value(o.live, path)):
			left[path] = written{value: other.value, optional: true}
		default:
			delete(left, path)
		}
	}
	return left
}
