package drift

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"lockstep.run/lockstep/internal/limits"
)

// fieldsReader reads fieldsV1, the JSON form of a set of fields: nested objects
// whose keys are "." for the field itself, f:<name> for a field, k:<keys as
// JSON> for an element of an associative list, v:<value as JSON> for one of a
// set, i:<index> for one of any other list. Reading stops at what is malformed:
// the worst that unread fields do is that a list counts as a whole.
type fieldsReader struct {
	text []byte
	at   int
	// known is not to be found again. It is read under its lock.
	known *KindShapes
	found findings
}

// fields reads the object at the current position, whose own path is given. It
// returns whether it is a leaf, and false in ok where it is malformed.
func (r *fieldsReader) fields(path pathID, depth int) (leaf, ok bool) {
	if depth > limits.FieldsDepth || !r.accept('{') {
		return false, false
	}
	if r.accept('}') {
		return true, true
	}
	leaf, isList := true, false
	for {
		key, valid := r.key()
		if !valid || !r.accept(':') {
			return false, false
		}
		if !bytes.Equal(key, []byte(".")) {
			leaf = false
		}
		isList = isList || r.list(path, key)
		if !r.child(path, key, depth) {
			return false, false
		}
		if r.accept('}') {
			return leaf, true
		}
		if !r.accept(',') {
			return false, false
		}
	}
}

// child reads the value of one key.
func (r *fieldsReader) child(path pathID, key []byte, depth int) bool {
	name, isField := bytes.CutPrefix(key, []byte("f:"))
	if depth == 0 && isField && skipped(name) {
		// Nothing in here is looked up, and keys of data are without end.
		return r.skip()
	}
	switch {
	case isField:
		path = field(path, name)
	case !bytes.Equal(key, []byte(".")):
		path = field(path, elements)
	}
	leaf, ok := r.fields(path, depth+1)
	switch {
	case !ok || !isField:
	case leaf && r.known.maps[path]&asLeaf == 0:
		r.found.leaves = append(r.found.leaves, path)
	case !leaf && r.known.maps[path]&asParent == 0:
		r.found.parents = append(r.found.parents, path)
	}
	return ok
}

func skipped(name []byte) bool {
	switch string(name) {
	case "metadata", "status", "data", "stringData", "binaryData":
		return true
	}
	return false
}

// list takes in what a key says about the list that it is an element of, and
// reports whether it says something.
func (r *fieldsReader) list(path pathID, key []byte) bool {
	isSet := bytes.HasPrefix(key, []byte("v:"))
	text, isKeys := bytes.CutPrefix(key, []byte("k:"))
	known, isKnown := r.known.lists[path]
	switch {
	case !isSet && !isKeys, isSet && isKnown && known.keys == nil, isKeys && isKnown && names(text, known.keys):
		return isSet || isKeys
	}
	var shape list
	if isKeys {
		var values map[string]any
		if json.Unmarshal(text, &values) != nil || len(values) == 0 {
			return false
		}
		shape.keys = slices.Sorted(maps.Keys(values))
	}
	if r.found.lists == nil {
		r.found.lists = map[pathID]list{}
	}
	r.found.lists[path] = shape
	return true
}

// names reports whether the keys of an element, as JSON, are those that are known: in
// the form that the API server writes, without a decoder.
func names(text []byte, keys []string) bool {
	for _, key := range keys {
		// The bracket or comma before, then the quote.
		rest, isKey := bytes.CutPrefix(text[min(2, len(text)):], []byte(key))
		if !isKey {
			return false
		}
		r := fieldsReader{text: rest}
		if !r.accept('"') || !r.accept(':') {
			return false
		}
		if _, quoted := r.key(); !quoted {
			r.at = max(r.at, r.at+bytes.IndexAny(rest[r.at:], ",}"))
		}
		if r.at >= len(rest) {
			return false
		}
		text = rest[r.at:]
	}
	return len(keys) > 0 && bytes.Equal(text, []byte("}"))
}

// key reads a string and returns its content.
func (r *fieldsReader) key() ([]byte, bool) {
	if !r.accept('"') {
		return nil, false
	}
	start, escaped := r.at, false
	for ; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case '\\':
			escaped = true
			r.at++
		case '"':
			r.at++
			if !escaped {
				return r.text[start : r.at-1], true
			}
			var content string
			err := json.Unmarshal(r.text[start-1:r.at], &content)
			return []byte(content), err == nil
		}
	}
	return nil, false
}

// accept passes white space and then c, if it comes next.
func (r *fieldsReader) accept(c byte) bool {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\n' || r.text[r.at] == '\t' || r.text[r.at] == '\r') {
		r.at++
	}
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// skip passes an object without looking into it.
func (r *fieldsReader) skip() bool {
	for depth := 0; r.at < len(r.text); {
		switch r.text[r.at] {
		case '"':
			if _, ok := r.key(); !ok {
				return false
			}
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		if r.at++; depth == 0 {
			return true
		}
	}
	return false
}
