package sensitive

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"index/suffixarray"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"lockstep.run/lockstep/internal/limits"
)

// Values are sensitive values in all forms. They are safe for concurrent use.
type Values struct {
	whole map[string]bool
	forms map[uint64][]string
	// filter has a bit for the hash of each key of forms.
	filter [1 << 10]uint64
	// readable is searched for parts in messages, short for words.
	readable, short []string
	work            atomic.Int64

	// pieces is an index of all parts of the values: the readable forms, and base64. It is built only
	// if a message has to be redacted.
	pieces func() *suffixarray.Index
}

// errTooAlike means that the search would take too long.
var errTooAlike = fmt.Errorf("values of Secrets repeat themselves so much that looking for them takes more than %d steps", limits.SensitiveWork)

// New returns the values, or nil if there are none. Its error names a limit.
func New(values []string) (*Values, error) {
	if len(values) == 0 {
		return nil, nil
	}

	v := &Values{whole: make(map[string]bool, len(values)), forms: map[uint64][]string{}}
	total := 0
	for _, value := range values {
		if v.whole[value] || value == "" {
			continue
		}
		v.whole[value] = true
		if total += len(value); total > limits.SensitiveBytes {
			return nil, fmt.Errorf("the values from Secrets have more than %d bytes", limits.SensitiveBytes)
		}
		readable := long(spellings(value)...)
		v.readable = append(v.readable, readable...)
		if n := len(value); n >= shortest && n < limits.SensitiveLength {
			v.short = append(v.short, value)
		}
		if len(strings.TrimSpace(value)) < limits.SensitiveLength {
			continue // its encodings occur elsewhere by chance
		}
		v.readable = append(v.readable, base64s(strings.TrimSpace(value))...)
		forms := append(readable, encodings(value)...)
		for _, form := range readable {
			forms = append(forms, blank.Replace(form))
		}
		for _, form := range long(forms...) {
			key := window(form)
			v.forms[key] = append(v.forms[key], form)
			v.filter[hash(key)>>6] |= 1 << (hash(key) & 63)
		}
	}

	slices.SortFunc(v.short, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	v.pieces = sync.OnceValue(func() *suffixarray.Index {
		return suffixarray.New([]byte(strings.Join(v.readable, "\xff"))) // which does not occur in any text
	})
	return v, nil
}

// Empty reports whether there are no values.
func (v *Values) Empty() bool { return v == nil || len(v.whole) == 0 }

// window returns the first eight bytes of a form, which is at least as long.
func window(text string) uint64 { return binary.LittleEndian.Uint64([]byte(text[:8])) }

// hash has 16 bits.
func hash(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> 48 }

// In reports whether a text contains a value. Its error names a limit.
func (v *Values) In(text string) (bool, error) {
	if v.Empty() || len(text) < limits.SensitiveLength {
		return false, nil
	}
	found, err := v.scan(text)
	if flat := blank.Replace(text); !found && err == nil && flat != text {
		return v.scan(flat)
	}
	return found, err
}

// scan looks up each window of eight bytes. The filter answers most of them without the map.
func (v *Values) scan(text string) (bool, error) {
	work := int64(0)
	defer func() { v.work.Add(work) }()
	data := []byte(text)
	for i := 0; i+8 <= len(data); i++ {
		key := binary.LittleEndian.Uint64(data[i:])
		if h := hash(key); v.filter[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, form := range v.forms[key] {
			work += int64(len(form))
			if strings.HasPrefix(text[i:], form) {
				return true, nil
			}
		}
		if v.work.Load()+work > limits.SensitiveWork {
			return false, errTooAlike
		}
	}

	return false, nil
}

// Is reports whether a value is sensitive as a whole, or contains a sensitive one.
func (v *Values) Is(value any) bool {
	if v.Empty() {
		return false
	}

	switch value := value.(type) {
	case string:
		found, err := v.In(value)
		return v.whole[value] || found || err != nil
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), v.Is)
	case []any:
		return slices.ContainsFunc(value, v.Is)
	default:
		return v.whole[fmt.Sprint(value)]
	}
}
