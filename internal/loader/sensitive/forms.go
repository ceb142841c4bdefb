package sensitive

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// spellings returns the readable forms of a value: as it is, trimmed, and escaped for YAML, Go and
// JSON.
func spellings(value string) []string {
	out := []string{value, strings.TrimSpace(value)}
	quoted := strconv.Quote(value)
	out = append(out, quoted[1:len(quoted)-1], strings.ReplaceAll(value, "'", "''"))
	if data, err := json.Marshal(value); err == nil {
		out = append(out, string(data[1:len(data)-1]))
	}

	var plain strings.Builder
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err == nil {
		text := strings.TrimSuffix(plain.String(), "\n")
		out = append(out, text[1:len(text)-1])
	}

	return out
}

// encodings returns the texts that appear in encodings of any text with the value.
func encodings(value string) []string {
	value = strings.TrimSpace(value)
	inHex := hex.EncodeToString([]byte(value))
	out := []string{url.QueryEscape(value), url.PathEscape(value), inHex, strings.ToUpper(inHex)}
	once := base64s(value)
	out = append(out, once...)
	for _, text := range once {
		out = append(out, base64s(text)...) // as in a Secret within a Secret
	}
	return out
}

// base64s returns the value in base64 at the three possible alignments, in both alphabets.
func base64s(value string) []string {
	var out []string
	for offset := range 3 {
		out = append(out, aligned(base64.RawStdEncoding, offset, value), aligned(base64.RawURLEncoding, offset, value))
	}
	return long(out...)
}

// blank removes white space, also escaped, in which an indented or wrapped value differs.
var blank = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", `\t`, "", `\r`, "", `\n`, "")

// aligned returns the encoded characters that depend only on the value, if it starts offset bytes
// into a text.
func aligned(encoding *base64.Encoding, offset int, value string) string {
	text := encoding.EncodeToString(append(make([]byte, offset), value...))
	first := (offset*8 + 5) / 6
	last := (offset + len(value)) * 8 / 6
	return text[first:max(first, last)]
}

// long returns the texts that are long enough to search for, without duplicates.
func long(texts ...string) []string {
	seen := map[string]bool{}
	out := texts[:0:0]
	for _, text := range texts {
		if len(text) >= limits.SensitiveLength && !seen[text] {
			seen[text] = true
			out = append(out, text)
		}
	}
	return out
}
