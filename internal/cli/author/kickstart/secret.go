package kickstart

import (
	"encoding/base64"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/cli/author/fields"
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
			values := fields.Map(o.value, field)
			for _, key := range fields.Keys(values) {
				if value := fields.Text(values, key); value != "" {
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
	encode := expression("")
	if field == "data" {
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil && utf8.Valid(plain) {
			value, encode = string(plain), " | b64enc"
		}
	}
	return m.config.set("The value of "+key+" in the Secret "+o.name()+".", map[string]any{"type": "string", "default": value}, "secrets", o.name(), key) + encode
}
