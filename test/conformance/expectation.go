package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Expectation is the expected result of a row. The decision of production code is compared with it
// key by key. A key that the row does not state is not compared.
type Expectation struct {
	stated   map[string]json.RawMessage
	compared map[string]bool
	err      error // for an unknown shape
	// otherwise are the differences on purpose, by key.
	otherwise   map[string]Difference
	differences []string
	onPurpose   []Difference
}

// Otherwise states that Lockstep decides differently on purpose on some keys, or on all. Use it for
// values that follow from the input, or from the decision.
func (e *Expectation) Otherwise(d Difference, keys ...string) {
	if len(keys) == 0 {
		keys = slices.Collect(maps.Keys(e.stated))
	}
	for _, key := range keys {
		e.otherwise[key] = cmp.Or(e.otherwise[key], d)
	}
}

func (e *Expectation) differs() bool { return len(e.differences)+len(e.onPurpose) > 0 }

// Is compares a value. A missing value, null and an empty value are equal.
func (e *Expectation) Is(key string, got any, about ...any) {
	e.compare(key, got, reflect.DeepEqual, about)
}

// Set compares lists and ignores their order.
func (e *Expectation) Set(key string, got []string, about ...any) {
	e.compare(key, got, func(want, got any) bool { return reflect.DeepEqual(sorted(want), sorted(got)) }, about)
}

// Has compares the part of nested maps that a row states.
func (e *Expectation) Has(key string, got any, about ...any) { e.compare(key, got, within, about) }

// Fails compares whether there is an error. A row can state this by a word, a kind or true.
func (e *Expectation) Fails(key string, failed bool, about ...any) {
	e.compare(key, failed, func(want, got any) bool { return (want != nil && want != false) == (got == true) }, about)
}

// Holds compares with a function, which gets the row's value in its own type. The type needs all
// fields of the value.
func Holds[T any](e *Expectation, key string, holds func(want T) bool, about ...any) {
	raw, is := e.stated[key]
	if !is {
		return
	}
	var want T
	if err := Strict(raw, &want); err != nil {
		e.compared[key] = true
		e.differences = append(e.differences, fmt.Sprintf("%s cannot be read: %v", key, err))
		return
	}
	e.compare(key, nil, func(any, any) bool { return holds(want) }, about)
}

func (e *Expectation) compare(key string, got any, equal func(want, got any) bool, about []any) {
	raw, is := e.stated[key]
	if !is {
		return
	}

	e.compared[key] = true
	if equal(plain(raw), plain(got)) {
		return
	}

	text := fmt.Sprintf("%s is %v", key, got)
	if len(about) > 0 {
		text += fmt.Sprintf(" (%v)", about)
	}
	if why := e.otherwise[key]; why != "" {
		e.onPurpose = append(e.onPurpose, why)
		return
	}

	e.differences = append(e.differences, text)
}

// missed returns the keys that were not compared.
func (e *Expectation) missed() (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(e.stated)) {
		if !e.compared[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// plain returns a value in JSON's types; nil for an empty one.
func plain(value any) (is any) {
	data, err := json.Marshal(value)
	if err != nil || json.Unmarshal(data, &is) != nil {
		panic(fmt.Sprintf("%v is not JSON: %v", value, err))
	}
	return withoutEmpty(is)
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case string:
		if value == "" {
			return nil
		}
	case []any:
		if len(value) == 0 {
			return nil
		}
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
	case map[string]any:
		if len(value) == 0 {
			return nil
		}
		for key := range value {
			value[key] = withoutEmpty(value[key])
		}
	}

	return value
}

func sorted(value any) []string {
	list, _ := value.([]any)
	var all []string
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	slices.Sort(all)
	return all
}

// within reports whether everything wanted is there: the stated keys of maps, and every item of
// lists.
func within(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		of, _ := got.(map[string]any)
		for key := range want {
			if !within(want[key], of[key]) {
				return false
			}
		}
		return true
	case []any:
		of, _ := got.([]any)
		return slices.EqualFunc(want, of, within)
	}

	return reflect.DeepEqual(want, got)
}
