package drift

import (
	"bytes"
	"encoding/json"
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
}

// fields reads the object at the current position, whose own path is given. It
// returns whether it is a leaf, and false in ok where it is malformed.
func (r *fieldsReader) fields(path pathID, depth int, found *findings) (leaf, ok bool) {
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
		if !isList {
			if shape, is := listOf(key); is {
				isList = true
				found.lists = append(found.lists, listFinding{path, shape})
			}
		}
		if !r.child(path, key, depth, found) {
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
func (r *fieldsReader) child(path pathID, key []byte, depth int, found *findings) bool {
	name, isField := bytes.CutPrefix(key, []byte("f:"))
	if depth == 0 && isField && skipped(name) {
		// Nothing in here is looked up, and keys of data are without end.
		return r.skip()
	}
	inner := path
	switch {
	case isField:
		inner = field(path, name)
	case !bytes.Equal(key, []byte(".")):
		inner = field(path, elements)
	}
	leaf, ok := r.fields(inner, depth+1, found)
	if ok && isField {
		if leaf {
			found.leaves = append(found.leaves, inner)
		} else {
			found.parents = append(found.parents, inner)
		}
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

// listOf returns what a key says about the list that it is an element of.
func listOf(key []byte) (shape list, isList bool) {
	if bytes.HasPrefix(key, []byte("v:")) {
		return list{}, true
	}
	text, isKeys := bytes.CutPrefix(key, []byte("k:"))
	if !isKeys {
		return list{}, false
	}
	var values map[string]any
	if json.Unmarshal(text, &values) != nil || len(values) == 0 {
		return list{}, false
	}
	for name := range values {
		shape.keys = append(shape.keys, name)
	}
	slices.Sort(shape.keys)
	return shape, true
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
