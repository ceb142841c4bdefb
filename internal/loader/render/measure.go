package render

import (
	"fmt"
	"reflect"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// limitError is a limit that a template exceeds.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

func limitf(format string, args ...any) error { return &limitError{fmt.Sprintf(format, args...)} }

// itemBytes is the size of an element of a list or a key of a map.
const itemBytes = 16

// measure returns the size that a value would have if it were printed, up to the limits.
func measure(v reflect.Value) (int, error) {
	m := meter{}
	err := m.add(v, 0)
	return m.n, err
}

// meter is the size of one value so far.
type meter struct {
	n int
	// scalars counts the texts, numbers and booleans in it, including keys.
	scalars int
	// lines means that indent counts two characters per level before each line of each value.
	lines  bool
	indent int
}

// scalar adds a text, number or boolean of n bytes.
func (m *meter) scalar(text string, n, depth int) error {
	m.scalars++
	if m.lines {
		m.indent += 2 * depth * (1 + strings.Count(text, "\n"))
	}
	return m.spend(n)
}

// spend adds bytes up to the limit.
func (m *meter) spend(n int) error {
	if m.n += n; m.n > limits.TemplateValueBytes {
		return limitf("a value has more than %d bytes", limits.TemplateValueBytes)
	}
	return nil
}

// add walks a value. A value can contain itself, because set can put a mapping into itself; the
// depth ends the walk.
func (m *meter) add(v reflect.Value, depth int) error {
	if depth > limits.TemplateValueDepth {
		return limitf("a value nests deeper than %d levels, or contains itself", limits.TemplateValueDepth)
	}

	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return m.add(v.Elem(), depth+1)
	case reflect.String:
		return m.scalar(v.String(), v.Len(), depth)
	case reflect.Map:
		return m.addMap(v, depth)
	case reflect.Slice, reflect.Array:
		return m.addList(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if err := m.add(v.Field(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	default:
		return m.scalar("", 8, depth)
	}
}

// addMap adds keys and values.
func (m *meter) addMap(v reflect.Value, depth int) error {
	var plain map[string]any // of JSON values, which needs no reflection
	if v.CanInterface() {
		plain, _ = v.Interface().(map[string]any)
	}
	if plain != nil {
		for key, value := range plain {
			if err := m.scalar(key, itemBytes+len(key), depth); err != nil {
				return err
			}
			if err := m.addAny(value, depth+1); err != nil {
				return err
			}
		}
		return nil
	}

	for it := v.MapRange(); it.Next(); {
		if err := m.spend(itemBytes); err != nil {
			return err
		}
		if err := m.add(it.Key(), depth+1); err != nil {
			return err
		}
		if err := m.add(it.Value(), depth+1); err != nil {
			return err
		}
	}

	return nil
}

// addList adds the elements; bytes count as a number each.
func (m *meter) addList(v reflect.Value, depth int) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		m.scalars += v.Len()
		return m.spend(v.Len())
	}
	if err := m.spend(itemBytes * v.Len()); err != nil {
		return err
	}

	for i := range v.Len() {
		if err := m.add(v.Index(i), depth+1); err != nil {
			return err
		}
	}

	return nil
}

// addAny is add without reflection for the common kinds of values.
func (m *meter) addAny(v any, depth int) error {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return m.scalar(v, len(v), depth)
	case bool, float64, int, int64:
		return m.scalar("", 8, depth)
	default:
		return m.add(reflect.ValueOf(v), depth)
	}
}
