package drift

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// encoder appends canonical JSON to a reusable buffer.
type encoder struct {
	buf []byte
	// keys is a stack of the sorted keys of the maps in progress.
	keys []string
}

// sorted pushes the keys of fields in order, as keys[start:end]. The caller has to truncate keys to
// start afterwards.
func (e *encoder) sorted(fields map[string]any) (start, end int) {
	start = len(e.keys)
	for key := range fields {
		e.keys = append(e.keys, key)
	}
	end = len(e.keys)
	slices.Sort(e.keys[start:end])
	return start, end
}

// value appends any decoded JSON.
func (e *encoder) value(value any) {
	switch value := value.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case bool:
		e.buf = strconv.AppendBool(e.buf, value)
	case string:
		e.text(value)
	case []any:
		e.buf = append(e.buf, '[')
		for i, element := range value {
			if i > 0 {
				e.buf = append(e.buf, ',')
			}
			e.value(element)
		}
		e.buf = append(e.buf, ']')
	case map[string]any:
		e.fields(value)
	case map[string]string: // labels; a copy is cheaper than a round trip through JSON
		fields := make(map[string]any, len(value))
		for k, v := range value {
			fields[k] = v
		}
		e.fields(fields)
	default:
		if !e.number(value) {
			e.value(decoded(value))
		}
	}
}

func (e *encoder) fields(fields map[string]any) {
	e.buf = append(e.buf, '{')
	start, end := e.sorted(fields)
	for i := start; i < end; i++ {
		if i > start {
			e.buf = append(e.buf, ',')
		}
		key := e.keys[i]
		e.text(key)
		e.buf = append(e.buf, ':')
		e.value(fields[key])
	}

	e.keys = e.keys[:start]
	e.buf = append(e.buf, '}')
}

// number appends a number in canonical form: 1, 1.0 and 1e0 are the same.
func (e *encoder) number(value any) bool {
	switch value := value.(type) {
	case int64:
		e.buf = strconv.AppendInt(e.buf, value, 10)
	case int:
		e.buf = strconv.AppendInt(e.buf, int64(value), 10)
	case int32:
		e.buf = strconv.AppendInt(e.buf, int64(value), 10)
	case float64:
		if whole, isWhole := wholeNumber(value); isWhole {
			e.buf = strconv.AppendInt(e.buf, whole, 10)
		} else {
			e.buf = strconv.AppendFloat(e.buf, value, 'g', -1, 64)
		}
	default:
		return false
	}

	return true
}

// wholeNumber returns a float64 as the int64 of the same value, if there is one.
func wholeNumber(value float64) (int64, bool) {
	if value != math.Trunc(value) || value < math.MinInt64 || value >= math.MaxInt64 {
		return 0, false
	}
	return int64(value), true
}

const hexDigits = "0123456789abcdef"

// text appends a JSON string. It escapes only characters that require it.
func (e *encoder) text(value string) {
	e.buf = append(e.buf, '"')
	from := 0
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"' || c == '\\':
			e.buf = append(append(e.buf, value[from:i]...), '\\', c)
			from = i + 1
		case c < ' ':
			e.buf = append(append(e.buf, value[from:i]...), '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			from = i + 1
		}
	}

	e.buf = append(append(e.buf, value[from:]...), '"')
}

// decoded converts a Go value to decoded JSON, and panics if that is impossible.
func decoded(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic("drift: no JSON value: " + err.Error())
	}
	var result any
	if err := unmarshal(text, &result); err != nil {
		panic("drift: no JSON value: " + err.Error())
	}

	return result
}
