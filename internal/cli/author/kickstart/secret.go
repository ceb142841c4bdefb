package kickstart

import (
	"encoding/base64"
	"maps"
	"slices"
	"unicode/utf8"
)

// secrets makes configuration of the values of Secrets. Their defaults, the values of
// the input, are readable in the image.
func (m *maker) secrets(all []*object) {
	n := 0
	for _, o := range all {
		if !o.is("", "Secret") {
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			values, _ := o.value[field].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(values)) {
				if value, isText := values[key].(string); isText && value != "" {
					values[key] = m.secretValue(o, field, key, value)
					n++
				}
			}
		}
	}
	if n > 0 {
		m.note("values of Secrets (%d) became configuration below secrets. Everybody who can pull the image can read their defaults: let others come from spec.configFrom, or leave the Secrets out", n)
	}
}

// secretValue returns the expression for one value. The configuration has encoded text
// decoded.
func (m *maker) secretValue(o *object, field, key, value string) expression {
	encode := ""
	if field == "data" {
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil && utf8.Valid(plain) {
			value, encode = string(plain), " | b64enc"
		}
	}
	return m.set("The value of "+key+" in the Secret "+o.name()+".", map[string]any{"type": "string", "default": value}, "secrets", o.name(), key) + expression(encode)
}
